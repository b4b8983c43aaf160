//! Proposition 2 at work: with $f_S$ sampled from $\mathcal{N}(0, \tfrac12 I)$, $p = 2$ and $e = 0$ the
//! kernel score becomes that of GAT as the number $R$ of points grows, at the rate $1 / \sqrt R$,
//! because c is chosen for each edge.
//!
//! Wrong versions it catches: one c for all edges, another variance of the points, a floor, norms that
//! are not squared, and a magnitude of $a$ that is left out.

use crate::conformance::case::{Attributes, Case, Kind, Size};
use bochner_graph::{Graph, scores};
use bochner_numerics::check::random;
use ndarray::{Array2, Array3, array};
use proptest::prelude::*;

/// Spectral points of one head, of the variance given.
fn drawn(count: usize, width: usize, variance: f64, purpose: &str) -> Array3<f64> {
    let w: Array3<f64> = random((1, count, width), purpose);
    w * variance.sqrt()
}

/// A complete graph whose edges' attributes are added to their scores as they are, one head, and a kernel
/// score.
fn case(
    nodes: usize,
    width: usize,
    scale: f64,
    seed: u64,
    points: usize,
    variance: f64,
    floor: f64,
) -> Case<f64> {
    let pairs = (0..nodes).flat_map(|i| (0..nodes).map(move |j| (j, i)));
    let graph = Graph::from_edges(nodes, pairs).unwrap();
    let draw = |shape: (usize, usize), purpose: &str| -> Array2<f64> {
        let x: Array2<f64> = random(shape, &format!("{purpose} {seed}"));
        x * scale
    };
    let (x, one) = (draw((nodes, width), "features"), Array2::ones((1, 1)));
    let size = Size {
        heads: 1,
        width,
        points: 1,
    };
    Case {
        targets: x.clone(),
        sources: x,
        a: draw((1, 2 * width), "a"),
        w1: drawn(
            points,
            2 * width,
            variance,
            &format!("{points} points {seed}"),
        ),
        attributes: Some(Attributes {
            values: draw((nodes * nodes, 1), "attributes"),
            weight: one.clone(),
            b: one,
        }),
        ..Case::new(graph, Kind::Stationary { p: 2.0, floor }, size)
    }
}

/// The largest error of the kernel score's weights.
fn off(kernel: &Case<f64>) -> f64 {
    let classic = Case {
        kind: Kind::Classic,
        ..kernel.clone()
    };
    let off = kernel.weights() - classic.weights();
    off.fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// The root mean square of the error over many cases.
fn error(points: usize, variance: f64, floor: f64) -> f64 {
    let cases = 64;
    let squares =
        (0..cases).map(|seed| off(&case(5, 3, 0.5, seed, points, variance, floor)).powi(2));
    (squares.sum::<f64>() / cases as f64).sqrt()
}

#[test]
fn the_error_falls_like_one_over_the_root_of_the_points() {
    let errors = [256, 1024, 4096, 16384].map(|points| error(points, 0.5, 0.0));
    // Four times the points halve the error; over three steps it falls to an eighth.
    for pair in errors.windows(2) {
        let ratio = pair[1] / pair[0];
        assert!((0.35..0.7).contains(&ratio), "{errors:?}");
    }
    let overall = errors[3] / errors[0];
    assert!((0.09..0.18).contains(&overall), "{errors:?}");
}

#[test]
fn other_points_or_a_floor_do_not_converge_to_it() {
    let right = error(16384, 0.5, 0.0);
    for (variance, floor) in [(0.25, 0.0), (1.0, 0.0), (0.5, 0.3)] {
        let wrong = error(16384, variance, floor);
        assert!(
            wrong > 4.0 * right,
            "{variance} {floor}: {wrong:e}, {right:e}"
        );
    }
}

/// Scores of one target and head: with one c for all edges their differences do not depend on the
/// target. This is the counterexample to it: F = 1, a = (1, 1), nodes -2 and 1, and a query 1 or -2.
#[test]
fn c_is_chosen_for_each_edge() {
    let x = array![[1.0], [-2.0]];
    let graph = Graph::from_edges(2, [(0, 0), (1, 0), (0, 1), (1, 1)]).unwrap();
    let size = Size {
        heads: 1,
        width: 1,
        points: 1,
    };
    let case = Case {
        targets: x.clone(),
        sources: x,
        a: array![[1.0, 1.0]],
        w1: drawn(1 << 16, 2, 0.5, "points"),
        ..Case::new(graph, Kind::Stationary { p: 2.0, floor: 0.0 }, size)
    };
    let (x, weights) = (case.targets.view(), case.weights());
    let scores = scores(&case.graph, x, x, &case.settings()).unwrap();
    // LeakyReLU of 2, -1, -1, -4.
    for (score, want) in scores.iter().zip([2.0, -0.2, -0.2, -0.8]) {
        assert!((score - want).abs() < 0.1, "{scores}");
    }
    assert!((weights[[0, 0]] - 0.900).abs() < 0.01 && (weights[[2, 0]] - 0.646).abs() < 0.02);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(10)))]

    /// For any sizes, with many points the weights are those of GAT.
    #[test]
    fn with_many_points_it_is_gat(
        nodes in 1..6_usize,
        width in 1..5_usize,
        scale in 0.05..0.5f64,
        seed in any::<u64>(),
    ) {
        let off = off(&case(nodes, width, scale, seed, 1 << 14, 0.5, 0.0));
        prop_assert!(off < 0.08, "{}", off);
    }
}
