//! The gradients of the layer as one operation on the tape.

use super::{PASS, WIDTH, build};
use bochner_attention::layer::MultiHeadOperation;
use bochner_attention::mechanism::PrimalWeights;
use bochner_attention::{
    Cat, Copula, IkanDirect, Mask, Mikan, MultiHeadConfig, PositionBias, Posterior, Primal,
    RbfOnly, Rotary, Variant,
};
use bochner_numerics::check::assert_gradient;
use bochner_numerics::operations::count;
use bochner_numerics::{Operations, Seed, standard_normal};
use bochner_ops::{apply, apply_vjp};
use dfdx::prelude::*;
use ndarray::{ArrayD, ArrayViewD};

/// A layer as an operation on one sequence or two, and standard normal arrays of its inputs.
fn operation(
    sequences: usize,
    config: &MultiHeadConfig,
) -> (MultiHeadOperation<f64>, Vec<ArrayD<f64>>) {
    let layer = build::<f64>(config.clone());
    let mask = Mask::none().with_key_lengths(vec![2, 3]);
    let operation = match sequences {
        1 => layer.operation(&mask, PASS),
        _ => layer.cross_operation(&mask, PASS).unwrap(),
    };
    let mut shapes = vec![vec![2, 3, WIDTH]; sequences];
    for map in layer.maps.iter().chain([&layer.output]) {
        let (outputs, inputs) = *map.weight.shape();
        shapes.push(vec![outputs, inputs]);
        shapes.extend(map.bias.as_ref().map(|_| vec![outputs]));
    }
    let table = layer.position_bias.as_ref().map(|table| *table.shape());
    shapes.extend(table.map(|(heads, columns)| vec![heads, columns]));
    let (kernel,) = *layer.kernel.shape();
    shapes.extend((kernel > 0).then(|| vec![kernel]));
    let mut stream = Seed::new(2).stream("inputs");
    let array = |shape| ArrayD::from_shape_simple_fn(shape, || standard_normal(&mut stream));
    (operation, shapes.into_iter().map(array).collect())
}

fn views(arrays: &[ArrayD<f64>]) -> Vec<ArrayViewD<'_, f64>> {
    arrays.iter().map(|x| x.view()).collect()
}

/// Fails unless all gradients of an operation are those of finite differences.
fn check(sequences: usize, config: &MultiHeadConfig) {
    let (operation, inputs) = operation(sequences, config);
    let operation = &operation;
    let (outputs, saved) = apply(operation, &views(&inputs)).unwrap();
    let mut stream = Seed::new(3).stream("cotangents");
    let mut random = |y: &ArrayD<f64>| y.mapv(|_| standard_normal(&mut stream));
    let cotangents: Vec<_> = outputs.iter().map(&mut random).collect();
    let (all, along) = (vec![true; inputs.len()], views(&cotangents));
    let found = apply_vjp(operation, &views(&inputs), &saved, &along, &all).unwrap();
    for (i, gradient) in found.into_iter().enumerate() {
        assert_gradient(&gradient.unwrap(), &inputs[i], |at| {
            let mut inputs = views(&inputs);
            inputs[i] = at;
            let (outputs, _) = apply(operation, &inputs).unwrap();
            let pairs = outputs.into_iter().zip(&cotangents);
            pairs.map(|(y, c)| (y * c).sum()).sum()
        });
    }
}

/// The gradients of some inputs, and what they cost, given ones for the cotangents.
fn wanted(
    operation: &MultiHeadOperation<f64>,
    inputs: &[ArrayD<f64>],
    is_wanted: impl Fn(usize) -> bool,
) -> (Vec<Option<ArrayD<f64>>>, Operations) {
    let inputs = views(inputs);
    let (outputs, saved) = apply(operation, &inputs).unwrap();
    let ones: Vec<_> = outputs.iter().map(|y| ArrayD::ones(y.raw_dim())).collect();
    let wanted: Vec<bool> = (0..inputs.len()).map(is_wanted).collect();
    let pull = || apply_vjp(operation, &inputs, &saved, &views(&ones), &wanted);
    let (gradients, cost) = count(pull);
    (gradients.unwrap(), cost)
}

/// Each gradient is what it is among all others, and where only those of the last map are wanted, nothing but
/// their product is computed.
#[test]
fn gradients_that_nobody_wants_cost_nothing() {
    let (operation, inputs) = operation(
        2,
        &MultiHeadConfig {
            position_bias: PositionBias::Learned { reach: 1 },
            ..config(points())
        },
    );
    let (all, whole) = wanted(&operation, &inputs, |_| true);
    for (i, own) in all.iter().enumerate() {
        let (one, _) = wanted(&operation, &inputs, |j| i == j);
        for (j, gradient) in one.iter().enumerate() {
            let want = if i == j { own } else { &None };
            assert_eq!(gradient, want, "{j}, given {i}");
        }
    }
    // Two sequences, three maps before.
    let (_, cost) = wanted(&operation, &inputs, |i| [8, 9].contains(&i));
    let product = 2 * 3 * WIDTH * WIDTH;
    assert_eq!(cost, Operations::multiply_adds(product));
    let (_, nothing) = wanted(&operation, &inputs, |_| false);
    assert_eq!(nothing, Operations::default());
    assert!(whole.multiply_adds > 10 * cost.multiply_adds);
}

fn config(variant: impl Into<Variant>) -> MultiHeadConfig {
    MultiHeadConfig {
        heads: 2,
        variant: variant.into(),
        ..Default::default()
    }
}

fn points() -> IkanDirect {
    IkanDirect {
        points: 2,
        ..Default::default()
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for variant in [RbfOnly {}.into(), Variant::from(points())] {
        let partial = Rotary {
            width: Some(2),
            ..Default::default()
        };
        for (sequences, bias, key_width, value_width, kv_heads, rotary) in [
            (1, true, None, None, None, None),
            (2, false, Some(3), Some(1), None, None),
            (2, true, Some(2), Some(3), Some(1), Some(Default::default())),
            (1, false, Some(3), None, Some(1), Some(partial)),
        ] {
            let config = MultiHeadConfig {
                kv_heads,
                bias,
                key_width,
                value_width,
                rotary,
                ..config(variant.clone())
            };
            check(sequences, &config);
        }
    }
}

#[test]
fn a_learnt_position_bias_has_gradients_too() {
    for (variant, sequences) in [(RbfOnly {}.into(), 2), (Variant::from(points()), 1)] {
        let config = MultiHeadConfig {
            causal: sequences == 1,
            window: Some([1, 2]),
            position_bias: PositionBias::Learned { reach: 1 },
            ..config(variant)
        };
        check(sequences, &config);
    }
}

/// Scores of their own, the layer's input, no values, and a second output, the sum of the penalties.
#[test]
fn other_streams_and_penalties_have_gradients_too() {
    let penalised = Mikan {
        points: 2,
        prior_std: 1.0,
        // A floor that finite differences can see across.
        floor: 1e-2,
        copula: Copula::Free,
        posterior: Posterior::Unconditional,
        ..Default::default()
    };
    let of_input = Primal {
        rank: 2,
        ..Default::default()
    };
    let of_parameters = Primal {
        weights: PrimalWeights::Parameters,
        ..of_input.clone()
    };
    for (variant, bias) in [
        (Variant::from(penalised), true),
        // A bias of all scores of a softmax has no gradient.
        (Cat::default().into(), false),
        (of_input.into(), true),
        (of_parameters.into(), false),
    ] {
        let config = MultiHeadConfig {
            bias,
            ..config(variant)
        };
        check(1, &config);
    }
}
