//! Scans: attention by a state that positions update one after the other.

use crate::{Error, Shape};
use bochner_numerics::Real;
use std::fmt::Debug;

/// A position of one head.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a, T> {
    /// The head.
    pub head: usize,
    /// The query, `[d]`.
    pub q: &'a [T],
    /// The key, `[d]`.
    pub k: &'a [T],
    /// The value, `[dv]`.
    pub v: &'a [T],
}

/// Gradients along a position and along the scan's parameters, to be added to.
#[derive(Debug)]
pub struct PositionGradients<'a, T> {
    /// Along the query.
    pub q: &'a mut [T],
    /// Along the key.
    pub k: &'a mut [T],
    /// Along the value.
    pub v: &'a mut [T],
    /// Along the parameters of the head.
    pub parameters: &'a mut [T],
}

/// Attention without pairs: a state of constant size that each position reads and updates, such as a moving average or
/// retention.
///
/// Training, decoding in constant memory, lengths and packed sequences follow from a step and its gradient. Sequences
/// are causal, with as many queries as keys.
///
/// ```
/// use bochner_engine::{Position, PositionGradients, Scan};
///
/// /// The mean of the values so far with exponential forgetting, $s_t = \lambda s_{t - 1} + v_t$.
/// #[derive(Debug)]
/// struct Forgetting(f64);
///
/// impl Scan<f64> for Forgetting {
///     fn state(&self, _width: usize, value_width: usize) -> usize {
///         value_width
///     }
///
///     fn step(&self, at: Position<f64>, state: &mut [f64], out: &mut [f64]) {
///         for ((s, &v), out) in state.iter_mut().zip(at.v).zip(out) {
///             *s = self.0 * *s + v;
///             *out = *s;
///         }
///     }
///
///     fn pull(
///         &self,
///         _: Position<f64>,
///         _before: &[f64],
///         cotangent: &[f64],
///         state: &mut [f64],
///         gradients: PositionGradients<f64>,
///     ) {
///         for ((s, &c), v) in state.iter_mut().zip(cotangent).zip(gradients.v) {
///             let along = *s + c;
///             *v += along;
///             *s = self.0 * along;
///         }
///     }
/// }
/// ```
pub trait Scan<T: Real>: Debug + Send + Sync + 'static {
    /// Checks the settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever does not fit.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The numbers in the state of one head.
    fn state(&self, width: usize, value_width: usize) -> usize;

    /// The numbers of each head's parameters.
    fn parameters(&self) -> usize {
        0
    }

    /// Writes the state of a head before its first position, which holds zeros so far.
    fn start(&self, _head: usize, _state: &mut [T]) {}

    /// Updates the state by a position, and writes all numbers of the position's output, `[dv]`.
    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]);

    /// Pulls gradients back through a step: `state` holds the gradient along the state after it, which is replaced by
    /// that along the state `before` it; `cotangent` is the gradient along the output.
    fn pull(
        &self,
        at: Position<T>,
        before: &[T],
        cotangent: &[T],
        state: &mut [T],
        gradients: PositionGradients<T>,
    );

    /// Adds the gradient along the parameters that the state before the first position has, given that along this state.
    fn pull_start(&self, _head: usize, _state: &[T], _parameters: &mut [T]) {}
}
