//! Proposition 2 at work: with $f_S$ sampled from $\mathcal{N}(0, \tfrac12 I)$, $p = 2$ and $e = 0$ the
//! kernel score becomes that of GAT as the number $R$ of points grows, because c is chosen for each edge.
//!
//! `cargo xtask reproduce propositions` measures the rate at which the error falls, and shows that no constant
//! c would do.
//!
//! Wrong versions it catches: one c for all edges, another variance of the points, a floor, norms that
//! are not squared, and a magnitude of $a$ that is left out.

use crate::conformance::case::{Attributes, Case, Kind, Size};
use bochner_graph::Graph;
use bochner_numerics::check::{largest, random};
use ndarray::{Array2, Array3};
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
            b: Some(one),
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
    largest(&(kernel.weights() - classic.weights()))
}

/// The root mean square of the error over many cases.
fn error(points: usize, variance: f64, floor: f64) -> f64 {
    let cases = 16;
    let squares =
        (0..cases).map(|seed| off(&case(5, 3, 0.5, seed, points, variance, floor)).powi(2));
    (squares.sum::<f64>() / cases as f64).sqrt()
}

#[test]
fn other_points_or_a_floor_do_not_converge_to_it() {
    let right = error(8192, 0.5, 0.0);
    for (variance, floor) in [(0.25, 0.0), (1.0, 0.0), (0.5, 0.3)] {
        let wrong = error(8192, variance, floor);
        assert!(
            wrong > 4.0 * right,
            "{variance} {floor}: {wrong:e}, {right:e}"
        );
    }
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
