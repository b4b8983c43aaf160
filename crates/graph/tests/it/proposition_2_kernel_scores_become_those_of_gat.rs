//! Proposition 2 at work: with $f_S$ sampled from $\mathcal{N}(0, \tfrac12 I)$, $p = 2$ and $e = 0$ the
//! kernel score becomes that of GAT as the number $R$ of points grows, at the rate $1 / \sqrt R$,
//! because c is chosen for each edge.
//!
//! Wrong versions it catches: one c for all edges, another variance of the points, a floor, norms that
//! are not squared, and a magnitude of $a$ that is left out.

use bochner_graph::{EdgeTerm, Graph, Merge, Points, Score, Settings, attend, scores};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array, Array2, Array3, Dimension, ShapeBuilder};
use proptest::prelude::*;

const SLOPE: f64 = 0.2;

fn normal<S: ShapeBuilder>(shape: S, scale: f64, seed: Seed, purpose: &str) -> Array<f64, S::Dim>
where
    S::Dim: Dimension,
{
    let mut stream = seed.stream(purpose);
    Array::from_shape_simple_fn(shape, || scale * standard_normal::<f64>(&mut stream))
}

struct Case {
    graph: Graph,
    x: Array2<f64>,
    a: Array2<f64>,
    attributes: Array2<f64>,
    /// Passes the attributes through as they are.
    one: Array2<f64>,
    seed: Seed,
}

impl Case {
    /// A complete graph, one head.
    fn new(nodes: usize, width: usize, scale: f64, seed: u64) -> Self {
        let seed = Seed::new(seed);
        let pairs = (0..nodes).flat_map(|i| (0..nodes).map(move |j| (j, i)));
        Self {
            graph: Graph::from_edges(nodes, pairs).unwrap(),
            x: normal((nodes, width), scale, seed, "features"),
            a: normal((1, 2 * width), scale, seed, "a"),
            attributes: normal((nodes * nodes, 1), scale, seed, "attributes"),
            one: Array2::ones((1, 1)),
            seed,
        }
    }

    fn settings<'a>(&'a self, score: Score<'a, f64>) -> Settings<'a, f64> {
        Settings {
            score,
            slope: SLOPE,
            edges: Some(EdgeTerm {
                attributes: self.attributes.view(),
                weight: self.one.view(),
                b: self.one.view(),
            }),
            merge: Merge::Concatenate,
            dropout: None,
            value_dropout: None,
        }
    }

    fn weights<'a>(&'a self, score: Score<'a, f64>) -> Array2<f64> {
        let x = self.x.view();
        let attended = attend(&self.graph, x, x, &self.settings(score)).unwrap();
        attended.weights().weights
    }

    fn classic(&self) -> Array2<f64> {
        self.weights(Score::Classic { a: self.a.view() })
    }

    /// The weights of the kernel score with points of the variance given, and their largest error.
    fn error(&self, points: usize, variance: f64, floor: f64) -> f64 {
        let width = self.a.ncols();
        let purpose = format!("{points} points");
        let w: Array3<f64> = normal((1, points, width), variance.sqrt(), self.seed, &purpose);
        let score = Score::Kernel {
            a: self.a.view(),
            points: Points::Stationary { w: w.view() },
            p: 2.0,
            floor,
        };
        let off = self.weights(score) - self.classic();
        off.fold(0.0, |m: f64, x| m.max(x.abs()))
    }
}

/// The root mean square of the error over many cases.
fn error(points: usize, variance: f64, floor: f64) -> f64 {
    let cases = 64;
    let squares = (0..cases).map(|seed| {
        Case::new(5, 3, 0.5, seed)
            .error(points, variance, floor)
            .powi(2)
    });
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
    let x = ndarray::array![[1.0], [-2.0]];
    let a = ndarray::array![[1.0, 1.0]];
    let graph = Graph::from_edges(2, [(0, 0), (1, 0), (0, 1), (1, 1)]).unwrap();
    let w: Array3<f64> = normal((1, 1 << 16, 2), 0.5_f64.sqrt(), Seed::new(1), "points");
    let settings = Settings {
        score: Score::Kernel {
            a: a.view(),
            points: Points::Stationary { w: w.view() },
            p: 2.0,
            floor: 0.0,
        },
        slope: SLOPE,
        edges: None,
        merge: Merge::Concatenate,
        dropout: None,
        value_dropout: None,
    };
    let scores = scores(&graph, x.view(), x.view(), &settings).unwrap();
    // LeakyReLU of 2, -1, -1, -4.
    for (score, want) in scores.iter().zip([2.0, -0.2, -0.2, -0.8]) {
        assert!((score - want).abs() < 0.1, "{scores}");
    }
    let attended = attend(&graph, x.view(), x.view(), &settings).unwrap();
    let weights = attended.weights().weights;
    assert!((weights[[0, 0]] - 0.900).abs() < 0.01 && (weights[[2, 0]] - 0.646).abs() < 0.02);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 10))]

    /// For any sizes, with many points the weights are those of GAT.
    #[test]
    fn with_many_points_it_is_gat(
        nodes in 1..6_usize,
        width in 1..5_usize,
        scale in 0.05..0.5f64,
        seed in any::<u64>(),
    ) {
        let off = Case::new(nodes, width, scale, seed).error(1 << 14, 0.5, 0.0);
        prop_assert!(off < 0.08, "{}", off);
    }
}
