//! The exponential of the inner product: softmax attention.

use super::{AlongPoints, Earlier, Given, Gradient, PairKernel, Score, Side, divided_rows, exp2};
use crate::Error;
use crate::engine::{HeadAt, NoRank};
use crate::error::scale;
use crate::normaliser::OnlineSoftmax;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::scaling::{largest, log2_range};
use bochner_numerics::{Buffer, Mat, Real};

/// $a_{ij} = \exp(s q_i \cdot k_j)$.
#[derive(Debug)]
pub(crate) struct Dot {
    /// s; $1 / \sqrt d$ by default.
    pub(crate) scale: Option<f64>,
}

impl Dot {
    fn scale<T: Real>(&self, at: &HeadAt<T>) -> f64 {
        self.scale.unwrap_or_else(|| root(at).recip())
    }
}

/// $a_{ij} = \exp(x_{ij} \cdot \text{scale})$.
#[derive(Clone, Debug)]
pub(crate) struct Exponential {
    scale: f64,
    /// The powers of two by which queries and keys were divided so that no product overflows.
    powers: (i32, i32),
}

impl Exponential {
    /// Exponents of products of queries and keys that were divided by powers of two.
    pub(crate) fn new(scale: f64, powers: (i32, i32)) -> Self {
        Self {
            scale: (exp2(powers.0 + powers.1) * scale).min(f64::MAX),
            powers,
        }
    }

    /// The power of two by which the rows of one side were divided.
    pub(crate) fn power(&self, side: Side) -> i32 {
        match side {
            Side::Queries => self.powers.0,
            Side::Keys => self.powers.1,
        }
    }

    /// What the gradients of operands of one side are multiplied with, given the scale without powers.
    pub(crate) fn back(&self, side: Side, scale: f64) -> f64 {
        let other = match side {
            Side::Queries => self.powers.1,
            Side::Keys => self.powers.0,
        };
        exp2(other) * scale
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Self::new(1.0, (0, 0))
    }
}

impl<T: Real> Score<T> for Exponential {
    type Norm = OnlineSoftmax;
    type Rank = NoRank;

    fn scale(&self) -> f64 {
        self.scale
    }

    #[inline(always)]
    fn score_and_slope<A: Arithmetic>(&self, raw: T, _: T) -> (T, T) {
        (raw, T::one())
    }
}

impl<T: Real> PairKernel<T> for Dot {
    type Score = Exponential;

    fn validate(&self, _: usize, _: usize, _: usize) -> Result<(), Error> {
        Ok(self.scale.map_or(Ok(()), scale)?)
    }

    fn score(&self, at: &HeadAt<T>) -> Exponential {
        let (q, k) = (largest(at.queries().data()), largest(at.keys().data()));
        Exponential::new(self.scale(at), powers(q, k, at.width(), false))
    }

    fn score_after(&self, at: &HeadAt<T>, _: &Earlier<T>) -> Exponential {
        Exponential::new(self.scale(at), (0, 0))
    }

    fn overflows(&self, queries: Mat<T>, keys: &[T]) -> bool {
        powers(largest(queries.data()), largest(keys), keys.len(), false) != (0, 0)
    }

    fn operand(
        &self,
        at: &HeadAt<T>,
        score: &Exponential,
        side: Side,
        x: Mat<T>,
    ) -> Option<Buffer<T>> {
        divided_rows(at, x, score.power(side))
    }

    fn pull_back(
        &self,
        at: &HeadAt<T>,
        score: &Exponential,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let factor = score.back(given.side, self.scale(at));
        out.write(|i| given.operand[i].as_f64() * factor);
        Vec::new()
    }
}

/// $\sqrt d$.
pub(super) fn root<T: Real>(at: &HeadAt<T>) -> f64 {
    (at.width() as f64).sqrt()
}

/// The powers of two by which queries and keys are divided, given the largest numbers of both: none
/// wherever products of queries with keys (and, if `squares`, of keys with themselves) are in range
/// anyway. With `squares` both are divided alike: one unit for products and squares.
pub(super) fn powers<T: Real>(queries: T, keys: T, width: usize, squares: bool) -> (i32, i32) {
    let range = log2_range::<T>();
    let (q, k) = (queries.as_f64().log2(), keys.as_f64().log2());
    let partner = if squares { q.max(k) } else { q };
    if partner + k + (width as f64).log2() < range - 8.0 {
        return (0, 0);
    }
    let excess = |log: f64| (log.ceil() - (range / 2.0 - 16.0)).max(0.0) as i32;
    match (excess(q), excess(k)) {
        (q, k) if squares => (q.max(k), q.max(k)),
        both => both,
    }
}
