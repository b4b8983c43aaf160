//! The parts of the trace, and the terms that it leaves out.

use bochner_attention::kernels::Points;
use bochner_attention::{Magnitude, Mask, kernels, weights};
use bochner_interpret::{Error, Similarity, SimilarityMagnitudeTrace, similarity_magnitude_trace};
use ndarray::{Array1, Array4, ArrayView4, Axis, s};
use std::f64::consts::LN_10;

fn random(shape: [usize; 4], seed: usize) -> Array4<f64> {
    let mut at = seed as f64;
    Array4::from_shape_simple_fn(shape, || {
        at += 1.0;
        (at * 12.9898).sin() * 1.3
    })
}

const P: f64 = 1.5;

/// A pair alone: of the weights of two keys, the ratio is that of their similarities times magnitudes.
#[test]
fn similarity_and_key_magnitude_are_what_weights_are_made_of() {
    let (q, k) = (random([1, 2, 1, 4], 0), random([1, 2, 2, 4], 50));
    let (w1, w2) = (random([1, 2, 3, 4], 90), random([1, 2, 3, 4], 120));
    let points = Points::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let none = Mask::none();
    for (similarity, settings) in [
        (Similarity::Rbf, kernels::rbf(&none)),
        (
            Similarity::Periodic { period: 2.0 },
            kernels::expsin(2.0, &none),
        ),
        (Similarity::Linear, kernels::linear(&none)),
        (
            Similarity::Squared {
                points,
                floor: 1e-3,
            },
            kernels::squared(points, 1e-3, &none),
        ),
    ] {
        for magnitude in [
            Magnitude::None,
            Magnitude::Norm { p: P },
            Magnitude::Released { p: P },
        ] {
            let settings = settings.clone().with_key_weight(magnitude);
            let want = weights(&settings, q.view(), k.view()).unwrap();
            let of_key = |j: usize| {
                let key = k.select(Axis(2), &[j]);
                let by = (&similarity, magnitude);
                similarity_magnitude_trace(q.view(), key.view(), by, &none).unwrap()
            };
            let [one, other] = [0, 1].map(of_key);
            for m in 0..2 {
                let log = |seen: &SimilarityMagnitudeTrace| {
                    seen.log10_similarity[m] + seen.log10_key_magnitude[m]
                };
                let got = log(&one) - log(&other);
                let want = (want[[0, m, 0, 0]] / want[[0, m, 0, 1]]).log10();
                assert!(
                    (got - want).abs() < 1e-9,
                    "{similarity:?}: {got}, not {want}"
                );
            }
        }
    }
}

#[test]
fn the_product_of_both_is_the_exponential_of_softmax_attention() {
    let (q, k) = (random([1, 1, 1, 4], 7), random([1, 1, 1, 4], 31));
    let softmax = (&Similarity::Rbf, Magnitude::Norm { p: 2.0 });
    let seen = similarity_magnitude_trace(q.view(), k.view(), softmax, &Mask::none()).unwrap();
    let product = (&q * &k).sum() / 2.0;
    let got = (seen.log10_similarity[0] + seen.log10_magnitude[0]) * LN_10;
    assert!((got - product).abs() < 1e-12);
}

#[test]
fn padding_and_masked_pairs_do_not_count() {
    let (q, k) = (random([2, 1, 3, 4], 3), random([2, 1, 4, 4], 400));
    let by = (&Similarity::Rbf, Magnitude::Norm { p: P });
    let mask = Mask::none()
        .with_key_lengths(vec![3, 4])
        .with_query_lengths(vec![2, 0]);
    let seen = similarity_magnitude_trace(q.view(), k.view(), by, &mask).unwrap();
    let (mut other_q, mut other_k) = (q.clone(), k.clone());
    other_q.slice_mut(s![0, .., 2.., ..]).fill(f64::NAN);
    other_q.slice_mut(s![1, .., .., ..]).fill(f64::NAN);
    other_k.slice_mut(s![0, .., 3.., ..]).fill(f64::NAN);
    let padded = similarity_magnitude_trace(other_q.view(), other_k.view(), by, &mask);
    assert_eq!(padded.unwrap(), seen);
    let alone = [
        q.slice(s![..1, .., ..2, ..]).to_owned(),
        k.slice(s![..1, .., ..3, ..]).to_owned(),
    ];
    let [q, k] = alone.each_ref().map(|x| x.view());
    let without = similarity_magnitude_trace(q, k, by, &Mask::none()).unwrap();
    assert_eq!(without, seen);
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = random([2, 1, 3, 4], 3);
    let by = (&Similarity::Rbf, Magnitude::None);
    let trace = |k: &Array4<f64>, mask: &Mask| {
        similarity_magnitude_trace(x.view(), k.view(), by, mask).unwrap_err()
    };
    let nothing = Mask::none().with_key_lengths(vec![0, 0]);
    assert!(matches!(trace(&x, &nothing), Error::NothingKept));
    let wrong = Mask::none().with_key_lengths(vec![3]);
    assert!(matches!(trace(&x, &wrong), Error::Attention(_)));
    let narrow = random([2, 1, 3, 5], 3);
    assert!(matches!(trace(&narrow, &Mask::none()), Error::Argument(_)));
    let points = random([3, 1, 2, 4], 9);
    let squared = Similarity::Squared {
        points: Points::Stationary { w: points.view() },
        floor: 1e-5,
    };
    let by = (&squared, Magnitude::None);
    let error = similarity_magnitude_trace(x.view(), x.view(), by, &Mask::none());
    assert!(matches!(error, Err(Error::Argument(_))));
    let by = (&Similarity::Rbf, Magnitude::Norm { p: -1.0 });
    let error = similarity_magnitude_trace(x.view(), x.view(), by, &Mask::none());
    assert!(matches!(error, Err(Error::Attention(_))));
}

#[test]
fn heads_of_examples_have_points_and_masks_of_their_own() {
    let (q, k) = (random([2, 2, 1, 4], 5), random([2, 2, 4, 4], 70));
    let w = random([2, 2, 3, 4], 200);
    let of = |[q, k, w]: [ArrayView4<f64>; 3], mask: &Mask| {
        let points = Points::Stationary { w };
        let by = Similarity::Squared {
            points,
            floor: 1e-3,
        };
        similarity_magnitude_trace(q, k, (&by, Magnitude::Norm { p: P }), mask).unwrap()
    };
    // One key is kept, another one by each head of each example.
    let own = |b: usize, m: usize| 2 * b + m;
    let kept = Array4::from_shape_fn((2, 2, 1, 4), |(b, m, _, j)| j == own(b, m));
    let mask = Mask::none().with_matrices(kept.view());
    let got = of([q.view(), k.view(), w.view()], &mask);
    for m in 0..2 {
        let alone = [0, 1].map(|b| {
            let [q, w] = [&q, &w].map(|x| x.slice(s![b..=b, m..=m, .., ..]));
            let key = k.slice(s![b..=b, m..=m, own(b, m)..=own(b, m), ..]);
            of([q, key, w], &Mask::none())
        });
        let differ = |part: fn(&SimilarityMagnitudeTrace) -> &Array1<f64>| {
            let mean = alone.iter().map(|seen| part(seen)[0]).sum::<f64>() / 2.0;
            (part(&got)[m] - mean).abs() > 1e-12
        };
        assert!(!differ(|seen| &seen.log10_similarity), "{m}");
        assert!(!differ(|seen| &seen.log10_key_magnitude), "{m}");
    }
}

#[test]
fn no_key_is_passed_over_and_far_ones_are_a_whole_number_of_periods_away() {
    let q = random([1, 1, 1, 4], 5);
    let mut k = random([1, 1, 3, 4], 70);
    let trace = |k: &Array4<f64>, similarity: &Similarity<'_, f64>| {
        let by = (similarity, Magnitude::None);
        similarity_magnitude_trace(q.view(), k.view(), by, &Mask::none())
    };
    let tiny = Similarity::Periodic { period: 1e-310 };
    assert_eq!(trace(&k, &tiny).unwrap().log10_similarity[0], 0.0);
    k[[0, 0, 1, 2]] = 1e200;
    let near = Similarity::Periodic { period: 2.0 };
    assert_eq!(trace(&k, &near).unwrap().log10_similarity[0], 0.0);
}

#[test]
fn queries_and_keys_of_kept_pairs_must_be_finite() {
    let x = random([1, 2, 3, 4], 5);
    let mask = Mask::none();
    let trace = |q: &Array4<f64>, k: &Array4<f64>, mask: &Mask| {
        let by = (&Similarity::Rbf, Magnitude::Norm { p: P });
        similarity_magnitude_trace(q.view(), k.view(), by, mask)
    };
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut broken = x.clone();
        broken[[0, 1, 2, 3]] = wrong;
        for (name, seen) in [
            ("`q`", trace(&broken, &x, &mask)),
            ("`k`", trace(&x, &broken, &mask)),
        ] {
            let error = seen.unwrap_err().to_string();
            assert!(
                error.starts_with(name) && error.contains("at [0, 1, 2, 3]"),
                "{error}"
            );
        }
        // No pair of the last token is kept.
        let two = Mask::none()
            .with_key_lengths(vec![2])
            .with_query_lengths(vec![2]);
        assert_eq!(
            trace(&broken, &broken, &two).unwrap(),
            trace(&x, &x, &two).unwrap()
        );
    }
    // The first of three queries comes before both of the two keys.
    let keys = x.slice(s![.., .., ..2, ..]).to_owned();
    let mut broken = x.clone();
    broken.slice_mut(s![.., .., 0, ..]).fill(f64::NAN);
    let causal = Mask::none().with_causality();
    let seen = trace(&broken, &keys, &causal).unwrap();
    assert_eq!(seen, trace(&x, &keys, &causal).unwrap());
}
