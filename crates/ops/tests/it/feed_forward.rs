//! Two linear maps with an activation and dropout between them.

use crate::testing::gradients_are_right;
use bochner_numerics::{Buffers, DropoutMask, Seed};
use bochner_ops::{Activation, FeedForward, Operation, PackedAffine, PackedFeedForward, filled};
use ndarray::ArrayViewD;

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
