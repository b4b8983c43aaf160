//! Finite inputs never give NaN, whatever their size.

use crate::conformance::case::{Case, KINDS, Kind, named};
use bochner_graph::Merge;
use bochner_numerics::{Real, relative_error};
use ndarray::{Array2, array};

const MERGES: [Merge; 2] = [Merge::Concatenate, Merge::Average];

fn scaled<T: Real>(case: &Case<T>, features: f64, a: f64, points: f64) -> Case<T> {
    let times = |factor: f64| move |x: T| x * T::of(factor);
    Case {
        targets: case.targets.mapv(times(features)),
        sources: case.sources.mapv(times(features)),
        a: case.a.mapv(times(a)),
        w1: case.w1.mapv(times(points)),
        w2: case.w2.mapv(times(points)),
        ..case.clone()
    }
}

fn check<T: Real>(case: &Case<T>, what: &str) {
    let attended = case.attend();
    let weights = attended.weights().weights;
    assert!(
        attended.output.iter().all(|x| x.is_finite()),
        "{what}: output"
    );
    assert!(
        weights.iter().all(|x| (T::zero()..=T::one()).contains(x)),
        "{what}: weights"
    );
    for (name, gradient) in named(&case.gradients()) {
        assert!(
            gradient.iter().all(|x| x.is_finite()),
            "{what}: along {name}"
        );
    }
    let (targets, sources) = (case.targets.view(), case.sources.view());
    let scores = bochner_graph::scores(&case.graph, targets, sources, &case.settings());
    assert!(
        scores.unwrap().iter().all(|x| x.is_finite()),
        "{what}: scores"
    );
}

fn sweep<T: Real>(large: f64) {
    let sizes = [0.0, 1.0 / large, 1.0, large];
    let small_norms = [0.05, 0.01].map(|p| Kind::Stationary { p, floor: 0.0 });
    for kind in KINDS.into_iter().chain(small_norms) {
        let case = Case::<T>::small(kind).with_attributes().with_dropout(0.3);
        for features in sizes {
            for a in sizes {
                for points in sizes {
                    let what = format!("{kind:?} {} {features:e} {a:e} {points:e}", T::NAME);
                    check(&scaled(&case, features, a, points), &what);
                }
            }
        }
    }
}

#[test]
fn at_all_sizes_of_features_and_parameters() {
    sweep::<f32>(1e9);
    sweep::<f64>(1e76);
}

#[test]
fn at_cotangents_of_any_size() {
    for size in [1e-38, 1e38] {
        for kind in KINDS {
            let case = scaled(&Case::<f32>::small(kind).with_attributes(), 1e8, 1.0, 1.0);
            let cotangent = case.cotangent().mapv(|x| (x * 0.1).clamp(-1.0, 1.0) * size);
            for (name, gradient) in named(&case.gradients_from(&cotangent)) {
                assert!(
                    gradient.iter().all(|x| x.is_finite()),
                    "{kind:?} along {name}"
                );
            }
        }
    }
}

/// Cotangents that are divided by a unit on their way are multiplied by it at the end.
#[test]
fn gradients_grow_with_their_cotangents() {
    let factor = 2.0_f64.powi(700);
    for (kind, merge) in KINDS.into_iter().zip(MERGES.into_iter().cycle()) {
        let case = Case {
            merge,
            ..Case::<f64>::small(kind).with_attributes()
        };
        let cotangent = case.cotangent();
        let large = case.gradients_from(&(&cotangent * factor));
        let small = case.gradients_from(&cotangent);
        for ((name, small), (_, large)) in named(&small).into_iter().zip(named(&large)) {
            let large: Vec<f64> = large.iter().map(|x| x / factor).collect();
            let error = relative_error(&large, &small);
            assert!(error < 1e-12, "{kind:?} along {name}: {error:e}");
        }
    }
}

/// One head of width one, two points: f(q, c a) and f(c a, k) are zero where the angles are.
fn with_zeros(sources: Array2<f64>, floor: f64) -> Case<f64> {
    let graph =
        bochner_graph::Graph::bipartite(1, sources.nrows(), (0..sources.nrows()).map(|j| (j, 0)));
    let quarter = std::f64::consts::FRAC_PI_2;
    let size = crate::conformance::case::Size {
        heads: 1,
        width: 1,
        points: 1,
    };
    Case {
        targets: array![[0.0]],
        a: array![[0.0, 0.0]],
        w1: array![[[1.0, quarter]]],
        sources,
        ..Case::new(graph.unwrap(), Kind::Stationary { p: 2.0, floor }, size)
    }
}

/// cos(pi / 2) is 6e-17 in double precision, so that its square is not zero but next to nothing.
#[test]
fn edges_of_zero_similarity_get_nothing_unless_all_are() {
    let case = with_zeros(array![[1.0], [0.5], [0.25]], 0.0);
    let weights = case.weights();
    assert!(weights[[0, 0]] < 1e-30);
    let want = |k: f64| (std::f64::consts::FRAC_PI_2 * k).cos().powi(2) * (k * k / 2.0).exp();
    let total = want(0.5) + want(0.25);
    assert!((weights[[1, 0]] - want(0.5) / total).abs() < 1e-12);
    assert!((weights[[2, 0]] - want(0.25) / total).abs() < 1e-12);
}

/// The weights converge to those at a floor of zero when the floor does.
#[test]
fn the_limit_of_a_vanishing_floor_is_the_value_at_zero() {
    let features = array![[0.3], [0.9], [-0.4]];
    let at_zero = with_zeros(features.clone(), 0.0).weights();
    let near = with_zeros(features, 1e-13).weights();
    assert!((at_zero - near).iter().all(|x| x.abs() < 1e-9));
}

/// Norms far beyond any number: the largest wins, and equal ones share.
#[test]
fn norms_that_overflow_are_compared_by_their_logarithms() {
    let kind = Kind::Stationary {
        p: 0.002,
        floor: 1e-5,
    };
    let graph = bochner_graph::Graph::bipartite(1, 3, [(0, 0), (1, 0), (2, 0)]).unwrap();
    let size = crate::conformance::case::Size {
        heads: 1,
        width: 4,
        points: 2,
    };
    let mut case = Case::<f64>::new(graph, kind, size);
    case.w1.fill(0.0);
    case.sources = array![
        [1.0, 2.0, 1.0, 1.0],
        [1.0, 1.0, 2.0, 1.0],
        [1.0, 1.0, 1.0, 1.0]
    ];
    // All of them use the same c.
    case.a.fill(0.01);
    case.targets.fill(1.0);
    let weights = case.weights();
    assert_eq!(weights, array![[0.5], [0.5], [0.0]]);
    check(&case, "overflowing norms");
}

/// Convolution is linear: it takes any finite number, also where sums overflow on the way.
#[test]
fn a_convolution_of_the_largest_numbers() {
    let graph = bochner_graph::Graph::from_edges(3, [(0, 2), (1, 2), (2, 2), (2, 0), (2, 1)]);
    let graph = graph.unwrap();
    let (max, small) = (f32::MAX, 1e30_f32);
    let x = array![[max, 1.0], [max, 0.5], [-max, 0.0]];
    let scaled = bochner_graph::convolve(&graph, (&x / small).view()).unwrap();
    let got = bochner_graph::convolve(&graph, x.view()).unwrap();
    let back = bochner_graph::convolve_vjp(&graph, x.view()).unwrap();
    assert!(got.iter().chain(&back).all(|x| x.is_finite()));
    // Two terms of 0.58 max and one of -0.33: the sum of the first two overflows, all three do not.
    let want = scaled[[2, 0]];
    assert!((got[[2, 0]] / small / want - 1.0).abs() < 1e-5, "{got}");
    assert!(got[[2, 0]] > 0.8 * max);
}
