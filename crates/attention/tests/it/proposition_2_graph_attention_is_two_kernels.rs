//! Proposition 2, in the form that is true: with $e_{ij} = a \cdot (q_i + k_j)$,
//! $q_i = [W h_i, 0]$, $k_j = [0, W h_j]$ and $\mathrm{LeakyReLU}(e_{ij}) = c_{ij} e_{ij}$, where
//! $c_{ij}$ is 1 if $e_{ij} \ge 0$ and the slope otherwise, **for each pair**,
//!
//! $$e^{\mathrm{LeakyReLU}(e_{ij})} = e^{-|q_i - c a|^2 / 2} \cdot e^{-|c a - k_j|^2 / 2} \cdot
//! e^{(2 |c a|^2 + |q_i|^2 + |k_j|^2) / 2}, \qquad c = c_{ij}$$
//!
//! With one c for all pairs, as it is printed, it is false, and attention would not depend on the
//! query.
//!
//! Wrong versions it catches: that constant c, a kernel without its 1/2, and a magnitude that is
//! not the square of the norm.

use bochner_attention::magnitude;
use bochner_kernels::{Kernel, Lengthscale, Rbf, RbfConfig};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2, Axis, concatenate};
use proptest::prelude::*;

const NODES: usize = 4;
/// A relative error of a few units in the last place of exponents of up to a hundred.
const ROUNDING: f64 = 1e-12;

/// Transformed features `W h` of the nodes, the attention vector and the slope.
#[derive(Clone, Debug)]
struct Graph {
    features: Array2<f64>,
    a: Array1<f64>,
    slope: f64,
}

fn graph() -> impl Strategy<Value = Graph> {
    (
        1..=64_usize,
        0.05..0.5f64,
        0.05..0.5f64,
        0.0..0.9f64,
        any::<u64>(),
    )
        .prop_map(|(width, features, attention, slope, seed)| {
            let normals = |count, scale: f64, purpose| -> Vec<f64> {
                let mut stream = Seed::new(seed).stream(purpose);
                let normal = || scale * standard_normal::<f64>(&mut stream);
                std::iter::repeat_with(normal).take(count).collect()
            };
            let rows = normals(NODES * width, features, "features");
            Graph {
                features: Array2::from_shape_vec((NODES, width), rows).unwrap(),
                a: normals(2 * width, attention, "attention").into(),
                slope,
            }
        })
}

/// `|x|^2 / 2` of each row, from the crate's magnitude, which is divided by the root of the width.
fn half_square(x: &Array2<f64>) -> Array1<f64> {
    let root = (x.ncols() as f64).sqrt();
    magnitude(x.view(), 2.0).unwrap() * root
}

fn row(x: Array1<f64>) -> Array2<f64> {
    x.insert_axis(Axis(0))
}

impl Graph {
    fn queries(&self) -> Array2<f64> {
        let zeros = Array2::zeros(self.features.raw_dim());
        concatenate(Axis(1), &[self.features.view(), zeros.view()]).unwrap()
    }

    fn keys(&self) -> Array2<f64> {
        let zeros = Array2::zeros(self.features.raw_dim());
        concatenate(Axis(1), &[zeros.view(), self.features.view()]).unwrap()
    }

    fn score(&self, i: usize, j: usize) -> f64 {
        (&self.queries().row(i) + &self.keys().row(j)).dot(&self.a)
    }

    fn c(&self, i: usize, j: usize) -> f64 {
        if self.score(i, j) >= 0.0 {
            1.0
        } else {
            self.slope
        }
    }

    /// `exp(LeakyReLU(e_ij))`.
    fn classic(&self, i: usize, j: usize) -> f64 {
        let e = self.score(i, j);
        (if e >= 0.0 { e } else { self.slope * e }).exp()
    }

    /// Two kernels of lengthscale one, times the magnitudes.
    fn decomposed(&self, i: usize, j: usize, c: f64) -> f64 {
        let lengthscale = Lengthscale::Shared(1.0);
        let kernel: Rbf<f64> = RbfConfig { lengthscale }.build().unwrap();
        let (q, k) = (self.queries(), self.keys());
        let [q, k] = [q.row(i), k.row(j)].map(|x| row(x.to_owned()));
        let ca = row(&self.a * c);
        let of =
            |x: &Array2<f64>, y: &Array2<f64>| kernel.gram(x.view(), y.view()).unwrap()[[0, 0]];
        let loudness = 2.0 * half_square(&ca) + half_square(&q) + half_square(&k);
        of(&q, &ca) * of(&ca, &k) * loudness[0].exp()
    }
}

/// Attention over all nodes.
fn normalised(weight: impl Fn(usize) -> f64) -> Array1<f64> {
    let weights: Array1<f64> = (0..NODES).map(weight).collect();
    &weights / weights.sum()
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..NODES).flat_map(|i| (0..NODES).map(move |j| (i, j)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn with_c_of_each_pair_the_two_sides_agree(graph in graph()) {
        for (i, j) in pairs() {
            let want = graph.classic(i, j);
            let got = graph.decomposed(i, j, graph.c(i, j));
            prop_assert!((got / want - 1.0).abs() < ROUNDING, "{} {}", got, want);
        }
    }

    /// With one c for all pairs the query's part is a factor of its row and cancels.
    #[test]
    fn with_a_constant_c_attention_does_not_depend_on_the_query(
        graph in graph(),
        c in 0.05..1.0f64,
    ) {
        let of = |i| normalised(|j| graph.decomposed(i, j, c));
        let first = of(0);
        for i in 1..NODES {
            let off = (of(i) - &first).fold(0.0, |m: f64, x| m.max(x.abs()));
            prop_assert!(off < ROUNDING, "{}", off);
        }
    }
}

/// One feature, a = (1, 1): the scores of nodes -1 and 2 are -2, 1 and 1, 4. No constant c makes
/// the identity true of all of them, and the attention of the two nodes differs.
#[test]
fn with_a_constant_c_it_is_false() {
    let features = Array2::from_shape_vec((NODES, 1), vec![-1.0, 2.0, -1.0, 2.0]).unwrap();
    let graph = Graph {
        features,
        a: vec![1.0, 1.0].into(),
        slope: 0.2,
    };
    assert_eq!((graph.score(0, 0), graph.score(0, 1)), (-2.0, 1.0));
    for c in [1.0, graph.slope, 0.6] {
        let off = |(i, j)| (graph.decomposed(i, j, c) / graph.classic(i, j) - 1.0).abs();
        assert!(pairs().map(off).fold(0.0, f64::max) > 0.5, "{c}");
    }
    let weights = |i: usize| normalised(|j| graph.classic(i, j));
    let off = (weights(0) - weights(1)).fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(off > 0.05, "{off}");
}
