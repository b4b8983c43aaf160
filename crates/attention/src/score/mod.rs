//! Pairwise kernels, one file each: what a query and a key weigh.

mod bipolar;
mod dot;
mod linear;
mod periodic;
mod rbf;
mod squared;

pub(crate) use bipolar::{Bipolar, checked_threshold, spike};
pub(crate) use dot::{Dot, Exponential};
pub(crate) use linear::Linear;
pub(crate) use periodic::Periodic;
pub(crate) use rbf::Rbf;
pub use squared::{Points, PointsGradients};
pub(crate) use squared::{Square, Squared};

use crate::Error;
use crate::engine::{FiniteRank, HeadAt, Rows, fill_multiplied};
use crate::normaliser::Normaliser;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::{Buffer, Mat, Real};
use std::fmt::Debug;
use std::ops::Range;

/// A kernel of a query and a key, with its settings.
///
/// The engine multiplies the operands of queries with those of keys, turns each raw score into a weight
/// ([`Score`]), and hands back the gradients of the operands. A kernel says what its operands are, and
/// what their gradients come to for queries and keys.
pub(crate) trait PairKernel<T: Real>: Debug + Send + Sync + 'static {
    /// How a raw score becomes a weight.
    type Score: Score<T>;

    /// Whether a decoder has to keep the keys beside their packed operands.
    const KEEPS_KEYS: bool = true;

    /// Whether the operands of keys differ between the heads of queries that read them.
    const HAS_OWN_OPERANDS: bool = false;

    /// Checks the settings against the sizes of a call.
    fn validate(&self, _batch: usize, _heads: usize, _width: usize) -> Result<(), Error> {
        Ok(())
    }

    /// The number of columns of an operand, for queries and keys of some width.
    fn operand_width(&self, width: usize) -> usize {
        width
    }

    /// The score of one head.
    fn score(&self, at: &HeadAt<T>) -> Self::Score;

    /// The score of positions that follow others.
    fn score_after(&self, at: &HeadAt<T>, _earlier: &Earlier<T>) -> Self::Score {
        self.score(at)
    }

    /// Whether the score of positions that follow others is not good enough for these queries, so that
    /// the kept keys have to be attended to from the start.
    fn overflows(&self, _queries: Mat<T>, _largest: &[T]) -> bool {
        false
    }

    /// What takes the place of rows of queries or keys in the product; `None` for the rows themselves.
    fn operand(
        &self,
        at: &HeadAt<T>,
        score: &Self::Score,
        side: Side,
        x: Mat<T>,
    ) -> Option<Buffer<T>>;

    /// Whether an operand holds only finite numbers.
    fn is_finite(&self, operand: Mat<T>) -> bool {
        bochner_numerics::elementary::max_norm(operand.data()).is_finite()
    }

    /// What each key adds to its raw scores, beside the magnitude.
    fn terms(&self, _at: &HeadAt<T>, _score: &Self::Score) -> Option<Buffer<f64>> {
        None
    }

    /// Writes the gradients of some queries or keys, given those of their operands; returns those along
    /// the kernel's own points.
    fn pull_back(
        &self,
        at: &HeadAt<T>,
        score: &Self::Score,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T>;

    /// The logarithm of the largest number that operands and their gradients are multiplied with, if
    /// it does not have to be looked for.
    fn log2_largest(&self, _at: &HeadAt<T>) -> Option<f64> {
        None
    }

    /// The kernel's spectral points, if it has any.
    fn points(&self) -> Option<Points<'_, T>> {
        None
    }

    /// What the linear-time form needs to know, if there is such a form.
    fn linear_form(&self) -> Option<LinearForm> {
        None
    }

    /// The kernel of a batch whose example `b` is what `indices[b]` was, if that is another one.
    fn reordered(&self, _indices: &[usize]) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// What is known of the positions before those of a call.
#[derive(Clone, Copy)]
pub(crate) struct Earlier<'a, T> {
    /// Their keys, or rows of no numbers where features stand in their place.
    pub(crate) keys: Mat<'a, T>,
    /// The largest number of each coordinate of the keys, without its sign.
    pub(crate) largest: &'a [T],
    /// The call's queries among all positions.
    pub(crate) rows: Rows<'a>,
}

/// How raw scores of one head become weights.
pub(crate) trait Score<T: Real>: Clone + Debug + Default + Send + Sync + 'static {
    /// How a row's weights are normalised.
    type Norm: Normaliser<T>;
    /// The features of which the kernel is a product, where it has a linear-time form.
    type Rank: FiniteRank<T>;

    /// What a raw score is.
    const RAW: Raw = Raw::Product;

    /// The multiplications and additions that a weight costs, for counts of operations.
    const MULTIPLY_ADDS: usize = 0;

    /// What an exponent is divided by to be in units of scores; 1 unless scores are exponents.
    fn scale(&self) -> f64 {
        1.0
    }

    /// Replaces the raw scores of a row by what [`Score::score`] takes, if that is computed a row at a
    /// time.
    fn prepare_row(&self, _raw: &mut [T]) {}

    /// Replaces the raw scores of a row by their slopes, and writes the scores.
    fn prepare_row_and_slopes(&self, _raw: &mut [T], _scores: &mut [T]) {}

    /// The score of a raw score: a weight, or the exponent of one. By default it is the raw score itself.
    #[inline(always)]
    fn score<A: Arithmetic>(&self, raw: T) -> T {
        raw
    }

    /// The score of a raw score and its derivative over [`Score::slope_factor`]; `prepared` is what
    /// [`Score::prepare_row_and_slopes`] has written.
    fn score_and_slope<A: Arithmetic>(&self, raw: T, prepared: T) -> (T, T);

    /// The part of the derivative that all pairs share.
    fn slope_factor(&self) -> T {
        T::one()
    }

    /// What the features are made of, where there are any.
    fn square_of(&self) -> Option<SquareOf<T>> {
        None
    }
}

/// The squared kernel $f^2 + e$ of a score, where f is a product of operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SquareOf<T> {
    /// f is the product of operands that are both multiplied with it.
    pub(crate) scale: T,
    /// e.
    pub(crate) floor: T,
}

/// What a raw score is made of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// Their inner product.
    Product,
    /// The inner product of operands whose finite numbers are -1, 0 and 1.
    Ternary,
    /// Their squared distance, by differences.
    Distance,
}

impl Raw {
    /// Whether it is an inner product.
    pub(crate) fn is_product(self) -> bool {
        match self {
            Self::Product | Self::Ternary => true,
            Self::Distance => false,
        }
    }
}

/// Which rows are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Queries,
    Keys,
}

/// What the linear-time form sums up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinearForm {
    /// The features of a squared kernel with this number of points.
    Squared { points: usize, floor: f64 },
    /// Random features of this number.
    Features { features: usize },
}

/// Gradients along the points of one head of one example, an array for each set of points; none for a
/// kernel without points.
pub(crate) type AlongPoints<T> = Vec<Vec<T>>;

/// Some queries or keys of a head, and the gradients that have reached them.
pub(crate) struct Given<'a, T> {
    pub(crate) side: Side,
    /// Which of the head's rows.
    pub(crate) rows: Range<usize>,
    pub(crate) x: Mat<'a, T>,
    /// The gradients of their operands over [`Score::scale`], which is still to be multiplied with.
    pub(crate) operand: &'a [T],
    /// The gradients of the keys' exponents.
    pub(crate) exponents: Option<&'a [T]>,
}

/// Where the gradients of queries or keys are written, with what reaches them through the magnitude.
pub(crate) struct Gradient<'a, T> {
    pub(crate) out: &'a mut [T],
    pub(crate) through_magnitude: Option<Vec<f64>>,
    /// The power of two by which gradients are still to be multiplied.
    pub(crate) unit: i32,
}

impl<T: Real> Gradient<'_, T> {
    /// Writes gradients; what reaches the rows through the magnitude is added.
    ///
    /// In double precision: parts that overflow in the type itself may well have a sum in its range.
    pub(crate) fn write(self, value: impl Fn(usize) -> f64) {
        match &self.through_magnitude {
            None => fill_multiplied(self.out, self.unit, value),
            Some(more) => {
                let more = &more[..self.out.len()];
                fill_multiplied(self.out, self.unit, |i| value(i) + more[i]);
            }
        }
    }
}

/// A copy of rows divided by a power of two, if that is not one; what overflows becomes the largest
/// number.
pub(crate) fn divided_rows<T: Real>(at: &HeadAt<T>, x: Mat<T>, power: i32) -> Option<Buffer<T>> {
    let (factor, largest) = (T::of(exp2(-power)), T::max_value());
    let divided = |&x: &T| match x.is_finite() {
        true => (x * factor).max(-largest).min(largest),
        false => x,
    };
    (power != 0).then(|| {
        let mut copy = at.numbers().empty(x.data().len());
        copy.extend(x.data().iter().map(divided));
        copy
    })
}

/// A power of two.
pub(crate) fn exp2(power: i32) -> f64 {
    f64::from(power).exp2()
}
