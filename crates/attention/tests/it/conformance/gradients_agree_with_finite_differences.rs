//! Every vector-Jacobian product against central differences in double precision.

use crate::conformance::common::*;
use bochner_attention::{IkanDirect, Mask, Mikan, Pass, Posterior, RbfOnly, Stationarity, Variant};
use bochner_numerics::{Seed, finite_difference};
use ndarray::{Array4, s};
use rand::Rng;

/// Compares the gradient along `x` with a difference of `value` in a direction that moves all numbers of `x` by
/// one small step up or down: a wrong entry anywhere shows.
///
/// A step may cross the kink of a rectifier, which a smaller one does not; a wrong gradient fails with every step.
fn compare(x: &[f64], gradient: &[f64], mut value: impl FnMut(&[f64]) -> f64, label: &str) {
    assert_eq!(x.len(), gradient.len(), "{label}");
    let mut stream = Seed::new(2).stream(label);
    let step = (x.len() as f64).sqrt().recip();
    let direction: Vec<f64> = x
        .iter()
        .map(|_| if stream.r#gen() { step } else { -step })
        .collect();
    let got: f64 = gradient.iter().zip(&direction).map(|(g, u)| g * u).sum();
    let mut moved = |t: f64| {
        let point: Vec<f64> = x.iter().zip(&direction).map(|(x, u)| x + t * u).collect();
        value(&point)
    };
    let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    let bound = (1e-6 * largest).max(1e-9);
    let mut want = f64::NAN;
    let agrees = [1.0, 1e-2, 1e-3].into_iter().any(|step| {
        want = finite_difference(&[0.0], |t| moved(step * t[0]))[0] / step;
        (got - want).abs() < bound
    });
    assert!(
        agrees,
        "{label}: {got} instead of {want}, largest {largest}"
    );
}

fn slice(x: &Array4<f64>) -> &[f64] {
    x.as_slice().unwrap()
}

fn replaced(x: &Array4<f64>, values: &[f64]) -> Array4<f64> {
    Array4::from_shape_vec(x.raw_dim(), values.to_vec()).unwrap()
}

fn check_mechanism(
    case: &Case<f64>,
    example: &Example<f64>,
    mask: &Mask,
    passes: &[Pass],
    label: &str,
) {
    for pass in passes {
        let pass = &pass.for_card(&case.card);
        let got = case.gradients(example, mask, pass);
        let along = |set: fn(&mut Example<f64>) -> &mut Array4<f64>, gradient, name| {
            let mut at = example.clone();
            let start = set(&mut at).clone();
            let moved = |x: &[f64]| {
                *set(&mut at) = replaced(&start, x);
                loss(&case.forward(&at, mask, pass).unwrap())
            };
            let label = format!("{label}, {pass:?}: {name}");
            compare(slice(&start), slice(gradient), moved, &label);
        };
        along(|e| &mut e.q, &got.streams[0], "q");
        along(|e| &mut e.k, &got.streams[1], "k");
        along(|e| &mut e.v, &got.streams[2], "v");

        let mut start = 0;
        for spec in case.mechanism().parameters(size()) {
            let range = start..start + spec.count();
            start = range.end;
            let mut parameters = case.parameters.clone();
            let inputs = case.inputs(example, mask);
            let moved = |x: &[f64]| {
                parameters[range.clone()].copy_from_slice(x);
                let forward = case.mechanism().forward(&inputs, &parameters, pass);
                loss(&forward.unwrap())
            };
            let (x, gradient) = (
                &case.parameters[range.clone()],
                &got.parameters[range.clone()],
            );
            let label = format!("{label}, {pass:?}: {}", spec.name);
            compare(x, gradient, moved, &label);
        }
    }
}

pub(crate) fn gradients_are_derivatives(case: &Case<f64>) {
    case.with_every_mask(5, 6, |case, example, mask, label| {
        check_mechanism(case, example, mask, &[EVALUATION, TRAINING], label);
    });
}

#[test]
fn mechanisms_with_every_mask() {
    cases().iter().for_each(gradients_are_derivatives);
}

/// Beyond its bounds nothing flows into the posterior's mean and deviation.
#[test]
fn a_posterior_at_its_bounds() {
    let (example, mask) = (Example::new(4, 5), Mask::none());
    // A stationary kernel is too sharp there for differences.
    let smooth = |variant: Variant| match variant {
        Variant::Mikan(mikan) => (mikan.posterior == Posterior::Inferred
            && mikan.p == 3.0
            && mikan.stationarity == Stationarity::Nonstationary)
            .then_some(mikan),
        _ => None,
    };
    let all: Vec<Mikan> = examples().into_iter().filter_map(smooth).collect();
    assert!(all.len() > 1);
    for mikan in all {
        let mut case = Case::of(Variant::from(Mikan {
            // Bounds at which the kernel is still smooth enough for differences.
            prior_std: 1e-3,
            // A divergence of a million nats would drown them in its rounding.
            beta: 0.0,
            ..mikan
        }));
        for (name, bias) in [("inference.bias2", 5.0), ("inference.bias3", 9.0)] {
            let specs = case.mechanism().parameters(size());
            let before = specs.iter().take_while(|spec| spec.name != name);
            let at = before.map(|spec| spec.count()).sum::<usize>();
            case.parameters[at] = bias;
        }
        let label = format!("at its bounds: {}", case.name);
        check_mechanism(&case, &example, &mask, &[EVALUATION], &label);
    }
}

#[test]
fn mechanisms_across_blocks() {
    for case in few_cases() {
        let (example, mask) = (case.example(130, 260), long_mask(&case, 260));
        let label = format!("across blocks: {}", case.name);
        check_mechanism(&case, &example, &mask, &[TRAINING], &label);
    }
}

/// Several blocks in several parts, at each of whose ends sums are handed on; and more rows than go back to queries and
/// keys at a time.
#[test]
fn long_sequences() {
    let case = Case::of(linear_time());
    for mask in [Mask::none(), long_mask(&case, 700)] {
        let label = format!("700 keys, {mask:?}");
        check_mechanism(&case, &Example::new(530, 700), &mask, &[EVALUATION], &label);
    }
    let case = Case::of(RbfOnly {}.into());
    let Example { q, k, v } = Example::new(2100, 2200);
    let [q, k, v] = [q, k, v].map(|x| x.slice(s![..1, ..1, .., ..]).to_owned());
    let lengths = Mask::none().with_key_lengths(vec![1500]);
    check_mechanism(
        &case,
        &Example { q, k, v },
        &lengths,
        &[EVALUATION],
        "2100 queries",
    );
}

/// Without a floor nothing keeps a row's normaliser away from zero but the kernel itself.
#[test]
fn without_a_floor() {
    let (points, floor) = (4, 0.0);
    let usual = IkanDirect::default();
    let case = Case::of(
        IkanDirect {
            points,
            floor,
            ..usual
        }
        .into(),
    );
    let (example, mask) = (Example::new(5, 6), Mask::none());
    check_mechanism(&case, &example, &mask, &[EVALUATION], "no floor");
}
