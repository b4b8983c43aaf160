//! Pairwise kernels, as the engine sees them.

use crate::{Error, Kind, Raw, Shape};
use bochner_numerics::{Mat, Real};
use std::fmt::Debug;
use std::sync::Arc;

/// A block of pairs: some queries by some keys of one head.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a, T> {
    /// The example.
    pub example: usize,
    /// The head.
    pub head: usize,
    /// The width of queries and keys, d.
    pub width: usize,
    /// The position of the first query among the keys, $i + T_k - T_q$; negative where no key stands there.
    pub query: i64,
    /// The positions of the keys.
    pub keys: &'a [T],
}

/// The side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Queries.
    Queries,
    /// Keys.
    Keys,
}

/// Some rows of one head's queries or keys.
#[derive(Clone, Copy, Debug)]
pub struct HeadRows<'a, T> {
    /// The example.
    pub example: usize,
    /// The head of queries.
    pub head: usize,
    /// The side.
    pub side: Side,
    /// The rows, `[n, d]`.
    pub x: Mat<'a, T>,
}

/// A kernel of a query and a key that the engine evaluates a block of pairs at a time.
///
/// The engine multiplies operands of queries with operands of keys, hands the raw scores to the kernel a few rows
/// by at least 64 keys at a time, where there are as many, and gives back the gradients of the operands. One engine
/// serves all kernels: its loops are compiled once for each number type, the kernel's own for each instruction set.
///
/// [`Scored`](crate::Scored) makes a kernel of a [`Score`](crate::Score). This trait is for kernels with operands of
/// their own, such as spectral features.
pub trait PairKernel<T: Real>: Debug + Send + Sync + 'static {
    /// The kind of the scores.
    fn kind(&self) -> Kind;

    /// The raw score of two operands.
    fn raw(&self) -> Raw {
        Raw::Product
    }

    /// The factor of the raw scores that are products.
    fn scale(&self, _width: usize) -> f64 {
        1.0
    }

    /// Checks the kernel's settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever does not fit.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The number of columns of an operand.
    fn operand_width(&self, width: usize) -> usize {
        width
    }

    /// Whether heads of queries that share keys have different operands of these.
    fn has_own_operands(&self) -> bool {
        false
    }

    /// Appends the operands of some rows, or appends nothing where these are the rows themselves.
    fn operands(&self, _rows: HeadRows<T>, _out: &mut Vec<T>) {}

    /// Writes the gradient along some rows, given that of their operands, and adds that along the kernel's own
    /// parameters of the head.
    fn pull_operands(
        &self,
        _rows: HeadRows<T>,
        gradient: Mat<T>,
        out: &mut [T],
        _parameters: &mut [T],
    ) {
        out.copy_from_slice(gradient.data());
    }

    /// Whether the scores are the raw scores, so that [`scores`](Self::scores) and [`slopes`](Self::slopes) are
    /// never called.
    fn scores_are_raw(&self) -> bool {
        false
    }

    /// Whether scores depend on the positions of the pair.
    fn uses_positions(&self) -> bool {
        false
    }

    /// Replaces the raw scores of a tile by scores, row after row.
    fn scores(&self, _tile: &Tile<T>, _raw: &mut [T]) {}

    /// Writes the scores of a tile, and replaces its raw scores by the scores' slopes along these.
    fn slopes(&self, tile: &Tile<T>, raw: &mut [T], scores: &mut [T]);

    /// The parameters: how many sets there are, 1 or one an example, and how many numbers each head has.
    fn parameters(&self) -> [usize; 2] {
        [1, self.score_parameters()]
    }

    /// The number of a head's parameters that enter its scores beside the operands. They come first.
    fn score_parameters(&self) -> usize {
        0
    }

    /// Writes the slopes of a tile's scores along one of the parameters of the head.
    fn parameter_slopes(&self, _tile: &Tile<T>, _n: usize, _raw: &[T], _slopes: &mut [T]) {}

    /// The scale and the floor of weights $(\text{scale} \cdot x \cdot y)^2 + \text{floor}$ of two operands x and y,
    /// if they are such weights. They can be summed up in linear time.
    fn square(&self) -> Option<Square> {
        None
    }

    /// Returns the kernel of a batch whose example `b` is the former example `indices[b]`, or `None` if all examples
    /// share one kernel.
    fn reordered(&self, _indices: &[usize]) -> Option<Arc<dyn PairKernel<T>>> {
        None
    }
}

/// A squared product with a floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Square {
    /// The factor of the product, before it is squared.
    pub scale: f64,
    /// The floor.
    pub floor: f64,
}

/// The scaled inner product $s  q \cdot k$ as a logit: with the softmax, softmax attention.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DotProduct {
    /// The scale s. Defaults to $1 / \sqrt d$.
    pub scale: Option<f64>,
}

impl<T: Real> PairKernel<T> for DotProduct {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn scale(&self, width: usize) -> f64 {
        self.scale.unwrap_or_else(|| (width as f64).sqrt().recip())
    }

    fn check(&self, _: &Shape) -> Result<(), Error> {
        let Some(scale) = self.scale else {
            return Ok(());
        };
        let holds = (1e-30..=1e30).contains(&scale);
        Ok(bochner_numerics::argument::in_range(
            holds,
            "scale",
            scale,
            "from 1e-30 to 1e30",
        )?)
    }

    fn scores_are_raw(&self) -> bool {
        true
    }

    fn slopes(&self, _: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        scores.copy_from_slice(raw);
        raw.fill(T::one());
    }
}
