//! Random cases.

use super::SEED;
use crate::Error;
use bochner_numerics::{Seed, Stream, parallel, standard_normal};
use ndarray::{Array2, Array4, ArrayView2, Axis};
use rand::Rng;

/// The dimensions run through 1 to this.
const WIDEST: usize = 64;

/// One case: a dimension and a stream of its own.
pub(crate) struct Case {
    pub(crate) number: usize,
    /// The dimension, 1 to 64.
    pub(crate) width: usize,
    stream: Stream,
}

impl Case {
    pub(crate) fn new(part: usize, number: usize) -> Self {
        let seed = Seed::new(SEED).nth(part as u64).nth(number as u64);
        Self {
            number,
            width: 1 + number % WIDEST,
            stream: seed.stream("case"),
        }
    }

    /// A whole number, both ends included.
    pub(crate) fn count(&mut self, from: usize, to: usize) -> usize {
        self.stream.gen_range(from..=to)
    }

    /// A real number.
    pub(crate) fn real(&mut self, from: f64, to: f64) -> f64 {
        self.stream.gen_range(from..to)
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.stream.gen_bool(probability)
    }

    /// Rows of independent normal numbers.
    pub(crate) fn normal(&mut self, rows: usize, width: usize, std: f64) -> Array2<f64> {
        Array2::from_shape_simple_fn((rows, width), || {
            std * standard_normal::<f64>(&mut self.stream)
        })
    }

    /// A sign, a half each.
    pub(crate) fn sign(&mut self) -> f64 {
        if self.happens(0.5) { 1.0 } else { -1.0 }
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

/// `f` of every case, in order.
pub(crate) fn each<R: Send>(
    part: usize,
    cases: usize,
    f: impl Fn(Case) -> Result<R, Error> + Send + Sync,
) -> Result<Vec<R>, Error> {
    let results = parallel::map(cases, |number| f(Case::new(part, number)));
    results.into_iter().collect()
}

/// `[T, d]` as one head of one example.
pub(crate) fn head(x: ArrayView2<f64>) -> Array4<f64> {
    x.insert_axis(Axis(0)).insert_axis(Axis(0)).to_owned()
}

/// Weights `[1, 1, Tq, Tk]` as a matrix.
pub(crate) fn matrix(weights: Array4<f64>) -> Array2<f64> {
    weights
        .index_axis_move(Axis(0), 0)
        .index_axis_move(Axis(0), 0)
}

/// Rows of logarithms as rows that add up to one.
pub(crate) fn normalised(logs: &Array2<f64>) -> Array2<f64> {
    let mut rows = logs.clone();
    for mut row in rows.rows_mut() {
        let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        row.mapv_inplace(|x| (x - largest).exp());
        let sum = row.sum();
        row /= sum;
    }
    rows
}

/// The largest absolute difference.
pub(crate) fn largest_difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, larger)
}

/// The larger of two errors; NaN is the largest.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

/// The largest of all.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, larger)
}
