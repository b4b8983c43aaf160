//! The operation on the tape, with mechanisms written for the tests.

use super::*;
use crate::{
    Card, Copula, Error, IkanDirect, Mikan, MultiHeadConfig, PositionBias, Posterior, Variant,
    mechanism::{Gradients, Streams},
};
use bochner_numerics::check::assert_gradient;
use bochner_numerics::operations::count;
use bochner_numerics::{Operations, Seed, standard_normal};
use bochner_ops::{apply, apply_vjp};
use bochner_spectral::{ParameterSpec, Size};
use ndarray::{Array4, ArrayD, Axis};

/// The sum of all values, or of the input, each times its score if there are scores.
#[derive(Debug)]
struct Sum(&'static [Stream]);

/// Values, and scores, which are one if there are none.
fn weighed(streams: &Streams<f64>) -> Result<[Array4<f64>; 2], Error> {
    if let Ok([scores, values]) = streams.get() {
        return Ok([values, scores].map(|x| x.to_owned()));
    }
    let [values] = streams.get()?;
    let (batch, heads, time, _) = values.dim();
    Ok([values.to_owned(), Array4::ones((batch, heads, time, 1))])
}

/// The sum over the positions, at every position.
fn total(x: &Array4<f64>) -> Array4<f64> {
    let sum = x.sum_axis(Axis(2)).insert_axis(Axis(2));
    sum.broadcast(x.dim()).unwrap().to_owned()
}

impl Mechanism<f64> for Sum {
    fn card(&self) -> Card {
        Card {
            streams: self.0,
            ..Card::PAIRWISE
        }
    }

    fn forward(
        &self,
        streams: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<Forward<f64>, Error> {
        let [values, scores] = weighed(streams)?;
        let (of, output) = (streams.fingerprint(flat, pass), total(&(values * scores)));
        Ok(Forward::unpenalised(of, output, ()))
    }

    fn backward(
        &self,
        streams: &Streams<f64>,
        _: &[f64],
        _: &Pass,
        _: &Forward<f64>,
        cotangent: Cotangents<f64>,
    ) -> Result<Gradients<f64>, Error> {
        let ([values, scores], g) = (weighed(streams)?, total(&cotangent.output.to_owned()));
        let of_scores = (&values * &g).sum_axis(Axis(3)).insert_axis(Axis(3));
        let all = [of_scores, g * scores];
        let streams = all.into_iter().skip(2 - self.0.len()).collect();
        Ok(Gradients::new(streams, Vec::new()))
    }
}

const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };
const EMBED: usize = 4;

fn operation(
    mechanism: Arc<dyn Mechanism<f64>>,
    sequences: usize,
    config: &MultiHeadConfig,
) -> MultiHeadOperation<f64> {
    let layout = config.layout(EMBED, &mechanism.card()).unwrap();
    let mask = layout.mask(Mask::none().with_key_lengths(vec![2, 3]));
    MultiHeadOperation {
        mechanism,
        layout,
        code: config.rotary.map(|rotary| Arc::new(rotary) as Code<f64>),
        mask,
        pass: PASS,
        sequences,
    }
}

/// Standard normal arrays of the operation's inputs; `own` is the number of the mechanism's parameters.
fn inputs(operation: &MultiHeadOperation<f64>, own: usize) -> Vec<ArrayD<f64>> {
    let mut shapes = vec![vec![2, 3, EMBED]; operation.sequences];
    for (_, map) in operation.layout.maps() {
        shapes.push(map.to_vec());
        shapes.extend(operation.layout.bias.then(|| map[..1].to_vec()));
    }
    let layout = operation.layout;
    shapes.extend(layout.position_bias.table(layout.heads).map(Vec::from));
    shapes.extend((own > 0).then(|| vec![own]));
    let mut stream = Seed::new(2).stream("inputs");
    let array = |shape| ArrayD::from_shape_simple_fn(shape, || standard_normal(&mut stream));
    shapes.into_iter().map(array).collect()
}

fn views(arrays: &[ArrayD<f64>]) -> Vec<ArrayViewD<'_, f64>> {
    arrays.iter().map(|x| x.view()).collect()
}

/// Fails unless all gradients of an operation are those of finite differences.
fn check(operation: &MultiHeadOperation<f64>, own: usize) {
    let inputs = inputs(operation, own);
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
    let points = IkanDirect {
        points: 2,
        ..Default::default()
    };
    let config = MultiHeadConfig {
        position_bias: PositionBias::Learned { reach: 1 },
        ..config()
    };
    let operation = operation(Arc::clone(Variant::from(points).shared().get()), 2, &config);
    let own = operation.mechanism.parameters(operation.layout.size());
    let inputs = inputs(&operation, own.iter().map(ParameterSpec::count).sum());
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
    let product = 2 * 3 * EMBED * EMBED;
    assert_eq!(cost, Operations::multiply_adds(product));
    let (_, nothing) = wanted(&operation, &inputs, |_| false);
    assert_eq!(nothing, Operations::default());
    assert!(whole.multiply_adds > 10 * cost.multiply_adds);
}

fn config() -> MultiHeadConfig {
    MultiHeadConfig {
        heads: 2,
        ..Default::default()
    }
}

#[test]
fn a_mechanism_is_given_the_streams_that_it_asks_for() {
    use Stream::{Input, Scores, Values};
    for streams in [&[Values][..], &[Scores, Values], &[Input]] {
        let value_width = streams.contains(&Values).then_some(3);
        for (bias, value_width) in [(true, None), (false, value_width)] {
            let config = MultiHeadConfig {
                bias,
                value_width,
                ..config()
            };
            check(&operation(Arc::new(Sum(streams)), 1, &config), 0);
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let points = IkanDirect {
        points: 2,
        ..Default::default()
    };
    let variants: [Variant; 2] = [crate::RbfOnly {}.into(), points.into()];
    for variant in variants {
        let partial = bochner_engine::Rotary {
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
                ..config()
            };
            let operation = operation(Arc::clone(variant.shared().get()), sequences, &config);
            let own = operation.mechanism.parameters(operation.layout.size());
            check(&operation, own.iter().map(ParameterSpec::count).sum());
        }
    }
}

#[test]
fn a_learnt_position_bias_has_gradients_too() {
    let points = IkanDirect {
        points: 2,
        ..Default::default()
    };
    for (variant, sequences) in [(crate::RbfOnly {}.into(), 2), (Variant::from(points), 1)] {
        let config = MultiHeadConfig {
            causal: sequences == 1,
            window: Some([1, 2]),
            position_bias: PositionBias::Learned { reach: 1 },
            ..config()
        };
        let operation = operation(Arc::clone(variant.shared().get()), sequences, &config);
        let own = operation.mechanism.parameters(operation.layout.size());
        check(&operation, own.iter().map(ParameterSpec::count).sum());
    }
}

#[test]
fn the_second_output_is_the_sum_of_the_penalties() {
    let penalised = Mikan {
        points: 2,
        prior_std: 1.0,
        // A floor that finite differences can see across.
        floor: 1e-2,
        copula: Copula::Free,
        posterior: Posterior::Unconditional,
        ..Default::default()
    };
    let operation = operation(
        Arc::clone(Variant::from(penalised).shared().get()),
        1,
        &config(),
    );
    let own = operation.mechanism.parameters(operation.layout.size());
    check(&operation, own.iter().map(ParameterSpec::count).sum());
}

#[test]
fn another_number_of_streams_is_refused() {
    let mask = Mask::none();
    for variant in crate::registry() {
        let mechanism = variant.mechanism::<f64>();
        let wanted = variant.card().streams.len();
        let size = Size { heads: 2, width: 2 };
        let initial = mechanism.initial(size, &mut Seed::new(1).stream("initial values"));
        let initial = initial.unwrap();
        for given in (1..=3).filter(|&given| given != wanted) {
            let values = vec![Array4::ones((2, 2, 3, 2)); given];
            let streams = Streams::new(values.iter().map(|x| x.view()), &mask);
            match mechanism.forward(&streams, &initial, &PASS) {
                Err(Error::StreamCount { expected, got }) => {
                    assert_eq!((expected, got), (wanted, given), "{variant:?}");
                }
                other => panic!("{variant:?}: {other:?}"),
            }
        }
    }
}
