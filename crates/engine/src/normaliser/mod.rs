//! Normalisers: how the scores of a row become its weights.

mod none;
mod softmax;
mod sum;

pub use none::Unnormalised;
pub use softmax::Softmax;
pub use sum::Sum;

use crate::Kind;
use bochner_numerics::Real;
use std::fmt::Debug;

/// The state of a row while its keys are read a block at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<T> {
    /// The largest score so far, to which the weights are relative. Starts at minus infinity, or at the sink.
    pub largest: T,
    /// The sum of the weights so far; after [`Normaliser::finish`] the number that the row is divided by.
    pub sum: T,
    /// The sum of the row's weights after the division: 1 unless the normaliser changes it.
    pub total: T,
    /// The log-weight of a key that the row's terms are relative to.
    pub(crate) reference: f64,
    /// Whether all similarities of the row are zero, so that its weights are those of the keys alone.
    pub(crate) is_level: bool,
}

impl<T: Real> Row<T> {
    /// The state of a row that has met no key.
    pub(crate) fn new(reference: f64) -> Self {
        Self {
            largest: T::neg_infinity(),
            sum: T::zero(),
            total: T::one(),
            reference,
            is_level: false,
        }
    }

    /// The log-weight of a key that the row's terms are relative to; 0 without weights of keys.
    pub fn reference(&self) -> f64 {
        self.reference
    }
}

/// A few rows by a block of keys on the way forward.
#[derive(Debug)]
pub struct Block<'a, T> {
    /// The scores, row after row; minus infinity (a logit) or 0 (a weight) where a key is hidden. To become weights
    /// relative to the state of their row.
    pub scores: &'a mut [T],
    /// The number of keys.
    pub keys: usize,
    /// Factors of the keys' weights, the same for all rows; only for weights.
    pub factors: Option<&'a [T]>,
    /// The state of each row.
    pub rows: &'a mut [Row<T>],
    /// To be overwritten by the factors that the sums over earlier keys of each row are multiplied with.
    pub rescale: &'a mut [T],
}

/// A few rows by a block of keys on the way back.
#[derive(Debug)]
pub struct BlockGradients<'a, T> {
    /// The scores as on the way forward; to become the gradients along the scores.
    pub scores: &'a mut [T],
    /// The gradients along the weights after dropout; to become these weights.
    pub weights: &'a mut [T],
    /// To become the gradients along the logarithms of the keys' factors; only for weights with factors.
    pub terms: Option<&'a mut [T]>,
    /// The number of keys.
    pub keys: usize,
    /// Factors of the keys' weights, the same for all rows; only for weights.
    pub factors: Option<&'a [T]>,
    /// The finished state of each row.
    pub rows: &'a [Row<T>],
    /// $dO_i \cdot O_i$ of each row.
    pub deltas: &'a [T],
    /// The factors of dropout, if there is any.
    pub dropout: Option<&'a [T]>,
}

/// A way to turn the scores of a row into weights, of which a block of keys is known at a time.
///
/// A row's weights are quotients: blocks are summed up before the row is known, and divided once at its end.
/// Weights that are another function of the whole row (sparsemax) cannot be written in this way.
pub trait Normaliser<T: Real>: Debug + Send + Sync + 'static {
    /// The kind of the scores that it takes.
    fn kind(&self) -> Kind;

    /// The natural logarithm of the base of the weights; logits are exponents of it.
    fn ln_base(&self) -> f64 {
        1.0
    }

    /// Whether rows can have a sink.
    fn takes_sink(&self) -> bool {
        false
    }

    /// Adds a sink to the state of a row that has met no key: a key without a value, of this score.
    fn add_sink(&self, _row: &mut Row<T>, _score: T) {}

    /// Returns the weight of the sink in a finished row.
    fn sink_weight(&self, _row: &Row<T>, _score: T) -> T {
        T::zero()
    }

    /// Replaces scores by weights relative to the state of their row, and adds them to it.
    fn absorb(&self, block: Block<T>);

    /// Finishes the state of a row that has met at least one key. `whole` returns all logits of the row once more, in
    /// double precision, minus infinity where a key is hidden.
    fn finish(&self, _row: &mut Row<T>, _keys: usize, _whole: &mut dyn FnMut() -> Vec<f64>) {}

    /// Whether the weights of a row are quotients, so that a factor of all of them does not matter. A sum of weights
    /// that are all zero then falls back to the factors of the keys alone.
    fn is_quotient(&self) -> bool {
        true
    }

    /// The number by which the sums over a finished row are divided.
    fn divisor(&self, row: &Row<T>) -> T {
        row.sum
    }

    /// Returns the logarithm of the sum of a finished row's weights, the reference aside.
    fn ln_sum(&self, row: &Row<T>) -> f64;

    /// Recomputes the weights of a block, and replaces them and the scores by gradients.
    fn pull(&self, block: BlockGradients<T>);
}
