//! Properties of Performer alone: features of either sign, draws, and a causal form that is causal.

use crate::conformance::reference::reference;
use bochner_attention::{
    Form, Mask, Mechanism, Pass, Performer, Softmax, Variant,
    kernels::{Coupling, Norms, RandomFeatureMap},
    mechanism::{Cotangents, Redraw, Size, Streams},
};
use bochner_numerics::{Real, Seed, Tolerance, standard_normal};
use ndarray::{Array1, Array4, Axis, concatenate, s};

const MAPS: [RandomFeatureMap; 4] = [
    RandomFeatureMap::Positive,
    RandomFeatureMap::Hyperbolic,
    RandomFeatureMap::Trigonometric,
    RandomFeatureMap::Relu { epsilon: 1e-3 },
];

const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };

fn random<T: Real>(shape: [usize; 4], scale: f64, purpose: &str) -> Array4<T> {
    let mut stream = Seed::new(51).stream(purpose);
    Array4::from_shape_simple_fn(shape, || T::of(scale * standard_normal::<f64>(&mut stream)))
}

fn output<T: Real>(
    mechanism: &dyn Mechanism<T>,
    [q, k, v]: [&Array4<T>; 3],
    mask: &Mask,
) -> Array4<T> {
    let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
    (mechanism.forward(&inputs, &[], &PASS).unwrap().output).into_owned()
}

/// The output, and the gradients of queries, keys and values.
fn results<T: Real>(
    mechanism: &dyn Mechanism<T>,
    [q, k, v, cotangent]: [&Array4<T>; 4],
    mask: &Mask,
) -> [Array4<T>; 4] {
    let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
    let forward = mechanism.forward(&inputs, &[], &PASS).unwrap();
    let penalty = Array1::zeros(q.len_of(Axis(0)));
    let cotangents = Cotangents {
        output: cotangent.view(),
        penalty: penalty.view(),
    };
    let pulled = mechanism.backward(&inputs, &[], &PASS, &forward, cotangents);
    let [q, k, v] = <[_; 3]>::try_from(pulled.unwrap().streams).unwrap();
    [forward.output.into_owned(), q, k, v]
}

fn of(features: RandomFeatureMap, points: usize, form: Form) -> Performer {
    Performer {
        features,
        points,
        form,
        ..Performer::default()
    }
}

/// A late key, however large, changes no earlier row in any bit.
fn no_late_key_matters<T: Real>() {
    let length = 300;
    let [q, k, v] = ["q", "k", "v"].map(|name| random::<T>([1, 2, length, 8], 1.0, name));
    let mask = Mask::none().with_causality();
    for map in MAPS {
        for form in [Form::LinearTime, Form::Pairwise] {
            let performer = of(map, 16, form);
            let want = output(&performer, [&q, &k, &v], &mask);
            for (at, size) in [(299, 8.0), (299, 1e6), (130, 8.0), (128, 1e6), (127, 8.0)] {
                let mut late = k.clone();
                late.slice_mut(s![.., .., at, ..])
                    .mapv_inplace(|x| x * T::of(size));
                let got = output(&performer, [&q, &late, &v], &mask);
                let earlier = |x: &Array4<T>| x.slice(s![.., .., ..at, ..]).to_owned();
                assert_eq!(earlier(&got), earlier(&want), "{map:?}, {form:?}, {at}");
                assert_ne!(got, want, "{map:?}, {form:?}, {at}");
            }
        }
    }
}

#[test]
fn a_late_large_key_changes_no_earlier_row() {
    no_late_key_matters::<f32>();
    no_late_key_matters::<f64>();
}

/// Near enough to each other that no sum of features of either sign cancels.
#[test]
fn features_of_either_sign_follow_their_formula() {
    let [q, k, v] = ["q", "k", "v"].map(|name| random::<f64>([1, 2, 135, 4], 0.4, name));
    let masks = [Mask::none(), Mask::none().with_causality()];
    for (mask, form) in masks.iter().zip([Form::LinearTime, Form::Pairwise]) {
        let performer = of(RandomFeatureMap::Trigonometric, 100, form);
        let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
        let want = reference(&performer.clone().into(), &inputs, &[], &PASS).unwrap();
        let got = output(&performer, [&q, &k, &v], mask);
        assert!(
            (got - want.output).iter().all(|x| x.abs() < 1e-12),
            "{form:?}"
        );
        let shown = Mechanism::<f64>::inspect(&performer, &inputs, &[], &PASS);
        let weights = shown.unwrap().weights;
        let error = weights - want.weights.unwrap();
        assert!(error.iter().all(|x| x.abs() < 1e-12), "{form:?}");
    }
}

/// Weights of either sign may add up to less than nothing, and an output then lies beyond the values.
#[test]
fn sums_of_either_sign_may_be_negative() {
    let [q, k] = ["q", "k"].map(|name| random::<f64>([1, 1, 40, 4], 3.0, name));
    let v = Array4::from_shape_fn((1, 1, 40, 1), |(.., j, _)| (j % 2) as f64);
    let beyond = |map| {
        let got = output(&of(map, 4, Form::LinearTime), [&q, &k, &v], &Mask::none());
        assert!(got.iter().all(|x| x.is_finite()));
        got.iter().any(|&x| !(-1e-12..=1.0 + 1e-12).contains(&x))
    };
    assert!(beyond(RandomFeatureMap::Trigonometric));
    assert!(!beyond(RandomFeatureMap::Positive) && !beyond(RandomFeatureMap::Hyperbolic));
}

#[test]
fn more_features_come_closer_to_softmax() {
    let [q, k, v] = ["q", "k", "v"].map(|name| random::<f64>([1, 4, 60, 8], 0.35, name));
    for mask in [Mask::none(), Mask::none().with_causality()] {
        let want = output(&Softmax::default(), [&q, &k, &v], &mask);
        let error = |map, points| {
            let squares = (0..8).map(|seed| {
                let seed = Seed::new(seed);
                let performer = Performer {
                    seed,
                    ..of(map, points, Form::LinearTime)
                };
                let off = output(&performer, [&q, &k, &v], &mask) - &want;
                off.mapv(|x| x * x).mean().unwrap()
            });
            (squares.sum::<f64>() / 8.0).sqrt()
        };
        for map in &MAPS[..2] {
            let [few, many] = [16, 1024].map(|points| error(*map, points));
            let slope = (many / few).ln() / 64.0_f64.ln();
            assert!((slope + 0.5).abs() < 0.15, "{map:?}: {few} {many}");
        }
    }
}

/// Sums are relative to the largest features so far, which keys that grow raise in every block; a long sequence
/// is cut into parts of several blocks.
#[test]
fn both_forms_have_the_same_gradients_over_several_parts() {
    let length = 1100;
    let [q, mut k, v, cotangent] =
        ["q", "k", "v", "cotangent"].map(|name| random::<f64>([1, 1, length, 3], 1.0, name));
    for (i, mut key) in k.axis_iter_mut(Axis(2)).enumerate() {
        key *= 0.1 + 1.5 * i as f64 / length as f64;
    }
    let mask = Mask::none().with_causality();
    for map in MAPS.into_iter().filter(|map| map.is_positive()) {
        let [got, want] = [Form::LinearTime, Form::Pairwise]
            .map(|form| results(&of(map, 8, form), [&q, &k, &v, &cotangent], &mask));
        for (got, want) in got.iter().zip(&want) {
            let bound = Tolerance::gradients::<f64>().bound(want.iter().copied());
            let off = (got - want).fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(off <= bound, "{map:?}: {off:e} exceeds {bound:e}");
        }
    }
}

/// No feature of a query meets one that is large of a key: their products vanish in single precision. Sums have a
/// reference for each feature, and no such products.
#[test]
fn queries_and_keys_that_favour_other_features_are_weighed() {
    let shape = [1, 1, 20, 4];
    let [q, k, v, cotangent] =
        ["q", "k", "v", "cotangent"].map(|name| random::<f32>(shape, 1.0, name));
    // Keys so near to each other that no one of them has all the weight: a gradient along them is left.
    let (q, k, mask) = (q + 20.0, k * 0.03 - 20.0, Mask::none());
    let [pairs, sums] = [Form::Pairwise, Form::LinearTime].map(|form| {
        let mechanism = of(RandomFeatureMap::Positive, 8, form);
        results(&mechanism, [&q, &k, &v, &cotangent], &mask)
    });
    for (got, want) in pairs.iter().zip(&sums) {
        assert!(want.iter().any(|x| *x != 0.0));
        let bound = Tolerance::gradients::<f32>().bound(want.iter().map(|&x| x.into()));
        let off = (got - want).fold(0.0, |most: f32, off| most.max(off.abs()));
        assert!(f64::from(off) <= bound, "{off:e} exceeds {bound:e}");
    }
}

#[test]
fn draws_follow_seed_and_step() {
    let [q, k, v] = ["q", "k", "v"].map(|name| random::<f64>([1, 2, 6, 4], 1.0, name));
    let of = |performer: &Performer| output(performer, [&q, &k, &v], &Mask::none());
    let usual = Performer::default();
    let want = of(&usual);
    let other = |change: fn(&mut Performer)| {
        let mut performer = usual.clone();
        change(&mut performer);
        of(&performer)
    };
    assert_ne!(other(|own| own.seed = Seed::new(9)), want);
    assert_ne!(other(|own| own.coupling = Coupling::Simplex), want);
    assert_ne!(other(|own| own.norms = Norms::Root), want);
    assert_ne!(other(|own| own.points = 200), want);
    let at = |performer: &Performer, step| {
        let own = Variant::from(performer.clone()).at_step(step, Size { heads: 2, width: 4 });
        output(&**own.get(), [&q, &k, &v], &Mask::none()) == want
    };
    assert!(at(&usual, 1_000_000));
    let redrawn = Performer {
        redraw: Redraw::Every { steps: 3 },
        ..usual
    };
    let is_first = [0, 2, 3, 5, 6].map(|step| at(&redrawn, step));
    assert_eq!(is_first, [true, true, false, false, false]);
}

#[test]
fn each_head_draws_its_own_frequencies() {
    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let one = random::<f64>([1, 1, 6, 4], 1.0, name);
        concatenate![Axis(1), one, one]
    });
    let got = output(&Performer::default(), [&q, &k, &v], &Mask::none());
    assert_ne!(got.slice(s![.., 0, .., ..]), got.slice(s![.., 1, .., ..]));
}
