//! Two linear maps with an activation and dropout between them.

use crate::testing::gradients_are_right;
use bochner_numerics::{Buffers, DropoutMask, Seed, operations};
use bochner_ops::{
    Activation, FeedForward, Operation, PackedAffine, PackedFeedForward, apply, apply_vjp, filled,
};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

#[test]
fn the_map_that_does_not_fit_is_named() {
    let operation = FeedForward {
        mask: None,
        hidden: Activation::Relu,
        activation: Activation::Identity,
    };
    let fitting: [&[usize]; 5] = [&[2, 4], &[6, 4], &[6], &[5, 6], &[5]];
    let names = ["first weight", "first bias", "second weight", "second bias"];
    for (at, name) in names.into_iter().enumerate() {
        let mut shapes = fitting;
        shapes[at + 1] = &[7, 7, 7];
        let error = Operation::<f64>::output_shapes(&operation, &shapes).unwrap_err();
        assert_eq!(error.name(), name);
    }
}

#[test]
fn packed_maps_give_the_bits_of_the_operation() {
    let numbers =
        |n: usize, step: f64| -> Vec<f64> { (0..n).map(|i| (i as f64 * step).sin()).collect() };
    let (x, first, second) = (
        numbers(12, 0.7),
        [numbers(24, 0.3), numbers(6, 1.1)],
        [numbers(30, 0.9), numbers(5, 0.4)],
    );
    let shapes: [&[usize]; 5] = [&[3, 4], &[6, 4], &[6], &[5, 6], &[5]];
    let values = [&x, &first[0], &first[1], &second[0], &second[1]];
    let inputs = values.into_iter().zip(shapes);
    let inputs = inputs.map(|(x, shape)| ArrayViewD::from_shape(shape, x).unwrap());
    let inputs: Vec<_> = inputs.collect();
    let packed = |[weight, bias]: &[Vec<f64>; 2]| PackedAffine::new(weight, bias.len(), Some(bias));
    for hidden in [Activation::Relu, Activation::Gelu] {
        for activation in [Activation::Identity, Activation::Elu] {
            let operation = FeedForward {
                mask: None,
                hidden,
                activation,
            };
            let [want] = filled([15], |[y]| {
                operation.forward(&inputs, vec![y]).unwrap();
            });
            let packed = PackedFeedForward::new([&first, &second].map(packed), &operation);
            let mut got = vec![f64::NAN; 15];
            packed.apply(&x, &Buffers::default(), &mut got);
            assert_eq!(got, want);
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let sizes: [&[usize]; 5] = [&[3, 2, 4], &[6, 4], &[6], &[5, 6], &[5]];
    for mask in [None, DropoutMask::new(0.4, Seed::new(3)).ok()] {
        for hidden in [Activation::Relu, Activation::Gelu, Activation::Identity] {
            for activation in [Activation::Identity, Activation::Relu, Activation::Elu] {
                let operation = FeedForward {
                    mask,
                    hidden,
                    activation,
                };
                gradients_are_right(operation, &sizes);
            }
        }
    }
}

/// The multiplications of a backward pass along these of the inputs: five rows, and two, three and one number a row.
fn cost(wanted: [bool; 5]) -> u64 {
    let shapes: [&[usize]; 5] = [&[5, 2], &[3, 2], &[3], &[1, 3], &[1]];
    let inputs = shapes.map(ArrayD::<f64>::ones);
    let inputs: Vec<_> = inputs.iter().map(|x| x.view()).collect();
    let layers = FeedForward {
        mask: None,
        hidden: Activation::Relu,
        activation: Activation::Identity,
    };
    let (_, saved) = apply(&layers, &inputs).unwrap();
    let dy = ArrayD::ones(IxDyn(&[5, 1]));
    let pull = || apply_vjp(&layers, &inputs, &saved, &[dy.view()], &wanted);
    let (gradients, counted) = operations::count(pull);
    assert!(gradients.unwrap().iter().map(Option::is_some).eq(wanted));
    counted.multiply_adds
}

#[test]
fn gradients_that_nobody_wants_cost_nothing() {
    let [first, second] = [5 * 2 * 3, 5 * 3];
    assert_eq!(cost([false; 5]), 0);
    // Every layer multiplies twice: along its weights, and along its input.
    assert_eq!(cost([true; 5]), 2 * first + 2 * second);
    assert_eq!(cost([false, true, true, true, true]), first + 2 * second);
    assert_eq!(cost([false, false, false, true, true]), second);
    assert_eq!(cost([true, false, false, false, false]), first + second);
}
