//! Every vector-Jacobian product against central differences in double precision.

use crate::conformance::common::*;
use crate::conformance::plain::*;
use crate::conformance::plain::{Gradients, attend, attend_vjp};
use bochner_attention::conformance::Conformance;
use bochner_attention::{
    Form, Magnitude, Mask, Mikan, Pass, Posterior, Stationarity, Variant,
    kernels::{self, Points, RandomFeatureMap, Trained},
};
use bochner_numerics::{Seed, finite_difference};
use ndarray::Array4;
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

fn value(settings: &Plain<f64>, example: &Example<f64>) -> f64 {
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    let output = attend(q, k, v, &settings.settings()).unwrap().output;
    let cotangent: Array4<f64> = random(output.raw_dim(), "output cotangent");
    (output * cotangent).sum()
}

fn vjp(settings: &Plain<f64>, example: &Example<f64>) -> Gradients<f64> {
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    let attended = attend(q, k, v, &settings.settings()).unwrap();
    let cotangent: Array4<f64> = random(attended.output.raw_dim(), "output cotangent");
    attend_vjp(&attended, cotangent.view()).unwrap()
}

fn check_settings(settings: &Plain<f64>, example: &Example<f64>, label: &str) {
    let got = vjp(settings, example);
    let along = |set: fn(&mut Example<f64>) -> &mut Array4<f64>, gradient, name| {
        let mut at = example.clone();
        let start = set(&mut at).clone();
        let moved = |x: &[f64]| {
            *set(&mut at) = replaced(&start, x);
            value(settings, &at)
        };
        compare(
            slice(&start),
            slice(gradient),
            moved,
            &format!("{label}: {name}"),
        );
    };
    along(|e| &mut e.q, &got.q, "q");
    along(|e| &mut e.k, &got.k, "k");
    along(|e| &mut e.v, &got.v, "v");
    check_points(settings, example, label, got);
}

fn with_points<'a>(
    settings: &'a Plain<f64>,
    floor: f64,
    points: Points<'a, f64>,
) -> Plain<'a, f64> {
    let similarity = match (settings.similarity, points) {
        (Similarity::Features { map, trained, .. }, Points::Stationary { w }) => {
            Similarity::Features { w, map, trained }
        }
        _ => Similarity::Squared { points, floor },
    };
    Plain {
        similarity,
        ..*settings
    }
}

fn check_points(settings: &Plain<f64>, example: &Example<f64>, label: &str, got: Gradients<f64>) {
    let (points, floor) = match settings.similarity {
        Similarity::Squared { points, floor } => (points, floor),
        Similarity::Features {
            w,
            trained: Trained::Yes,
            ..
        } => (Points::Stationary { w }, 0.0),
        _ => {
            assert!(got.kernel.is_none_or(|g| g.is_empty()));
            return;
        }
    };
    let numbers = match points {
        Points::Stationary { w } => w,
        Points::Nonstationary { w1, .. } => w1,
    };
    let gradients = kernels::points_gradients(&got.kernel.unwrap(), numbers.dim().2, WIDTH);
    let (w1, w2) = match points {
        Points::Stationary { w } => (w, None),
        Points::Nonstationary { w1, w2 } => (w1, Some(w2)),
    };
    let start = w1.to_owned();
    let moved = |x: &[f64]| {
        let w1 = replaced(&start, x);
        let w1 = w1.view();
        let points = match &w2 {
            None => Points::Stationary { w: w1 },
            Some(w2) => Points::Nonstationary { w1, w2: w2.view() },
        };
        value(&with_points(settings, floor, points), example)
    };
    compare(
        slice(&start),
        slice(&gradients.w1),
        moved,
        &format!("{label}: w1"),
    );
    let Some(w2) = w2 else {
        assert!(gradients.w2.is_none());
        return;
    };
    let start = w2.to_owned();
    let moved = |x: &[f64]| {
        let w2 = replaced(&start, x);
        let (w1, w2) = (w1.view(), w2.view());
        let points = Points::Nonstationary { w1, w2 };
        value(&with_points(settings, floor, points), example)
    };
    let label = format!("{label}: w2");
    compare(slice(&start), slice(&gradients.w2.unwrap()), moved, &label);
}

#[test]
fn attention_with_every_setting() {
    for (queries, keys) in [(5, 6), (6, 4)] {
        for_all_settings(queries, keys, |settings, example, label| {
            check_settings(settings, example, label);
        });
    }
}

#[test]
fn attention_in_linear_time() {
    for (queries, keys) in [(5, 6), (6, 4)] {
        for_all_settings_in_linear_time(queries, keys, |settings, example, label| {
            check_settings(settings, example, label);
        });
    }
}

/// Several blocks in several parts, at each of whose ends sums are handed on.
#[test]
fn attention_in_linear_time_across_blocks() {
    let (queries, keys) = (530, 700);
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    for (name, mask) in masks(queries, keys) {
        if name.contains("pairs") {
            continue;
        }
        let similarity = sets.similarity("non-stationary, own");
        let settings = Plain {
            form: Form::LinearTime,
            ..with(similarity, Magnitude::Norm { p: 1.5 }, &mask, None)
        };
        let label = format!("across blocks, in linear time, mask: {name}");
        check_settings(&settings, &example, &label);
    }
}

/// More rows than go back to queries and keys at a time.
#[test]
fn attention_of_long_sequences() {
    let (queries, keys) = (2100, 2300);
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    let lengths = Mask::none().with_key_lengths(vec![keys, 1500]);
    for (name, form) in [
        ("non-stationary, own", Form::LinearTime),
        ("rbf", Form::Automatic),
    ] {
        let magnitude = Magnitude::Norm { p: 1.5 };
        let settings = Plain {
            form,
            ..with(sets.similarity(name), magnitude, &lengths, None)
        };
        check_settings(&settings, &example, &format!("{queries} queries, {name}"));
    }
}

#[test]
fn attention_across_blocks() {
    let (queries, keys) = (130, 515);
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    for name in ["rbf", "expsin", "linear", "non-stationary, own"] {
        for (mask_name, mask) in masks(queries, keys) {
            let (similarity, magnitude) = (sets.similarity(name), Magnitude::Norm { p: 1.5 });
            let settings = with(similarity, magnitude, &mask, dropout(0.3, "weights"));
            let label = format!("across blocks, {name}, mask: {mask_name}");
            check_settings(&settings, &example, &label);
        }
    }
}

/// Without a floor nothing keeps a row's normaliser away from zero but the kernel itself.
#[test]
fn attention_without_a_floor() {
    let (example, sets, mask) = (Example::new(5, 6), PointSets::new(), Mask::none());
    let [w1, w2] = &sets.own;
    let (w1, w2) = (w1.view(), w2.view());
    let points = Points::Nonstationary { w1, w2 };
    let similarity = Similarity::Squared { points, floor: 0.0 };
    let settings = with(similarity, Magnitude::Norm { p: 2.0 }, &mask, None);
    check_settings(&settings, &example, "no floor");
}

/// Sums of cosines and sines may cancel: near enough to each other they do not.
#[test]
fn attention_with_features_of_either_sign() {
    let (queries, keys) = (130, 150);
    let mut example = Example::new(queries, keys);
    (example.q, example.k) = (example.q * 0.3, example.k * 0.3);
    let sets = PointSets::new();
    for (name, mask) in masks(queries, keys) {
        let map = RandomFeatureMap::Trigonometric;
        let similarity = features(&sets.shared, map, Trained::Yes);
        for form in [Form::Pairwise, Form::LinearTime] {
            let settings = Plain {
                form,
                ..with(similarity, Magnitude::None, &mask, None)
            };
            let whole = settings.settings();
            if whole.form_for(queries, keys, [WIDTH, VALUE_WIDTH]).is_ok() {
                let label = format!("features of either sign, {form:?}, mask: {name}");
                check_settings(&settings, &example, &label);
            }
        }
    }
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
    // A stationary kernel is too sharp there for differences, and more draws meet more kinks.
    let smooth = |mikan: &Mikan| {
        let inferred = mikan.posterior == Posterior::Inferred;
        inferred
            && mikan.draws == 1
            && mikan.p == 3.0
            && mikan.stationarity == Stationarity::Nonstationary
    };
    for mikan in Mikan::examples().into_iter().filter(smooth) {
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
    let (queries, keys) = (130, 300);
    for case in few_cases() {
        case.with_every_mask(queries, keys, |case, example, mask, label| {
            if !label.contains(" and ") && !label.contains("pairs") {
                check_mechanism(case, example, mask, &[TRAINING], label);
            }
        });
    }
}
