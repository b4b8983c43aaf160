//! Proposition 1: for all $q, k \in \mathbb{R}^d$
//!
//! $$\exp\frac{q \cdot k}{\sqrt d} = \exp\frac{-|q-k|^2}{2\sqrt d} \cdot
//! \exp\frac{|q|^2 + |k|^2}{2\sqrt d}$$
//!
//! exactly: an RBF kernel of lengthscale $d^{1/4}$ times two magnitudes, of which the query's
//! cancels when weights are normalised, for the norm of any p.
//!
//! Wrong versions it catches: the lengthscale $\sqrt d$, a norm without its square, a magnitude of
//! the query alone, or a query's magnitude that does not cancel.

use bochner_attention::{Form, Magnitude, Mask, Settings, Similarity, magnitude, weights};
use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2, Axis};
use proptest::prelude::*;

const QUERIES: usize = 3;
const KEYS: usize = 5;

/// A relative error of a few units in the last place of exponents of a few hundred.
const ROUNDING: f64 = 1e-12;

#[derive(Clone, Debug)]
struct Sequences {
    q: Array2<f64>,
    k: Array2<f64>,
}

fn sequences() -> impl Strategy<Value = Sequences> {
    (1..=64_usize, 0.01..2.0f64, 0.01..2.0f64, any::<u64>()).prop_map(
        |(width, queries, keys, seed)| {
            let rows = |count, scale: f64, purpose| {
                let mut stream = Seed::new(seed).stream(purpose);
                Array2::from_shape_simple_fn((count, width), || {
                    scale * standard_normal::<f64>(&mut stream)
                })
            };
            Sequences {
                q: rows(QUERIES, queries, "queries"),
                k: rows(KEYS, keys, "keys"),
            }
        },
    )
}

impl Sequences {
    fn root(&self) -> f64 {
        (self.q.ncols() as f64).sqrt()
    }

    fn products(&self) -> Array2<f64> {
        self.q.dot(&self.k.t()) / self.root()
    }

    fn rbf(&self, lengthscale: f64) -> Array2<f64> {
        let lengthscale = Lengthscale::Shared(lengthscale);
        let kernel = RbfConfig { lengthscale }.build().unwrap();
        kernel.gram(self.q.view(), self.k.view()).unwrap()
    }

    /// The weights of the crate, of one head.
    fn weights(&self, magnitude: Magnitude) -> Array2<f64> {
        let mask = Mask::none();
        let settings = Settings {
            similarity: Similarity::Rbf,
            magnitude,
            mask: &mask,
            dropout: None,
            form: Form::Automatic,
        };
        let head = |x: &Array2<f64>| x.clone().insert_axis(Axis(0)).insert_axis(Axis(0));
        let all = weights(head(&self.q).view(), head(&self.k).view(), &settings).unwrap();
        all.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0)
    }
}

/// `exp` of every row, divided by its sum.
fn softmax(exponents: &Array2<f64>) -> Array2<f64> {
    let mut weights = exponents.clone();
    for mut row in weights.rows_mut() {
        let largest = row.fold(f64::NEG_INFINITY, |m: f64, &x| m.max(x));
        row.mapv_inplace(|x| (x - largest).exp());
        row /= row.sum();
    }
    weights
}

fn largest(x: impl IntoIterator<Item = f64>) -> f64 {
    x.into_iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// `[Tq, Tk]` sums of what belongs to the queries and what belongs to the keys.
fn sums(of_queries: Array1<f64>, of_keys: &Array1<f64>) -> Array2<f64> {
    of_queries.insert_axis(Axis(1)) + of_keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn before_weights_are_normalised(sequences in sequences()) {
        let of = |x: &Array2<f64>| magnitude(x.view(), 2.0).unwrap();
        let loudness = sums(of(&sequences.q), &of(&sequences.k));
        let similarity = sequences.rbf(sequences.root().sqrt());
        let got = similarity * loudness.mapv(f64::exp);
        let want = sequences.products().mapv(f64::exp);
        let error = largest((&got / &want - 1.0).into_iter());
        prop_assert!(error < ROUNDING, "{}", error);
    }

    #[test]
    fn after_weights_are_normalised(sequences in sequences()) {
        let got = sequences.weights(Magnitude::Norm { p: 2.0 });
        let want = softmax(&sequences.products());
        let error = largest((got - want).into_iter());
        prop_assert!(error < ROUNDING, "{}", error);
    }

    /// The crate's weights know the keys' magnitudes alone; with the queries' they are the same.
    #[test]
    fn the_query_s_own_magnitude_cancels_for_every_p(
        sequences in sequences(),
        log_p in -1.0..2.0f64,
    ) {
        let p = log_p.exp();
        let of = |x: &Array2<f64>| magnitude(x.view(), p).unwrap();
        let loudness = sums(of(&sequences.q), &of(&sequences.k));
        let similarity = sequences.rbf(sequences.root().sqrt());
        let want = softmax(&(similarity.mapv(f64::ln) + &loudness));
        let got = sequences.weights(Magnitude::Norm { p });
        // Exponents are rounded, and at small p they are large.
        let rounding = ROUNDING * (1.0 + largest(loudness));
        let error = largest((got - want).into_iter());
        prop_assert!(error < rounding, "p = {}: {}", p, error);
    }

    /// No other lengthscale will do.
    #[test]
    fn another_lengthscale_is_noticed(sequences in sequences(), factor in 1.1..3.0f64) {
        let of = |x: &Array2<f64>| magnitude(x.view(), 2.0).unwrap();
        let loudness = sums(of(&sequences.q), &of(&sequences.k));
        let similarity = sequences.rbf(factor * sequences.root().sqrt());
        let got = similarity * loudness.mapv(f64::exp);
        let want = sequences.products().mapv(f64::exp);
        prop_assert!(largest((&got / &want - 1.0).into_iter()) > 1e3 * ROUNDING);
    }
}
