//! What a mechanism is given in a pass, and what it gives back.

use crate::{Error, Mask};
use bochner_numerics::{DropoutMask, Real, Seed};
use bochner_spectral::Size;
use ndarray::{Array1, Array3, Array4, ArrayView1, ArrayView4};
use std::any::Any;

/// Queries, keys, values `[B, M, T, .]` and the mask.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T> {
    /// Queries, `[B, M, Tq, d]`.
    pub q: ArrayView4<'a, T>,
    /// Keys, `[B, M, Tk, d]`.
    pub k: ArrayView4<'a, T>,
    /// Values, `[B, M, Tk, dv]`.
    pub v: ArrayView4<'a, T>,
    /// Which keys count.
    pub mask: &'a Mask,
}

impl<'a, T: Real> Inputs<'a, T> {
    /// In place of sequences of which nothing but their number is known.
    pub(crate) fn none(batch: usize, Size { heads, width }: Size) -> Array4<T> {
        Array4::zeros((batch, heads, 1, width))
    }

    /// Causal inputs: what depends on them is an error.
    pub(crate) fn unseen(none: &'a Array4<T>) -> Self {
        let x = none.view();
        Self {
            q: x,
            k: x,
            v: x,
            mask: Mask::CAUSAL,
        }
    }
}

impl<T> Inputs<'_, T> {
    /// The sizes of the parameters that fit.
    pub fn size(&self) -> Size {
        let (_, heads, _, width) = self.q.dim();
        Size { heads, width }
    }
}

/// Training or evaluation, and the seed of everything drawn in this pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pass {
    /// Noise is drawn from the seed and weights are dropped at the given rate.
    Training {
        /// Another one in every step.
        seed: Seed,
        /// Rate of dropout on the normalised weights, in `0..1`.
        dropout: f64,
    },
    /// Noise is drawn from the seed, nothing is dropped.
    Evaluation {
        /// Usually the same in every evaluation.
        seed: Seed,
    },
}

impl Pass {
    /// The seed of the pass.
    pub fn seed(&self) -> Seed {
        match *self {
            Self::Training { seed, .. } | Self::Evaluation { seed } => seed,
        }
    }

    /// Dropout on the weights, if any.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the rate lies in `0..1`.
    pub fn weight_dropout(&self) -> Result<Option<DropoutMask>, Error> {
        self.dropout(|rate| rate, "weight dropout")
    }

    /// A dropout mask of its own rate in training; `None` in evaluation or at rate 0.
    pub(crate) fn dropout(
        &self,
        rate: impl Fn(f64) -> f64,
        purpose: &'static str,
    ) -> Result<Option<DropoutMask>, Error> {
        let Self::Training { seed, dropout } = *self else {
            return Ok(None);
        };
        let rate = rate(dropout);
        let mask = DropoutMask::new(rate, seed.child(purpose)).map_err(|_| Error::OutOfRange {
            name: purpose,
            range: "at least 0 and below 1",
            got: rate,
        })?;
        Ok((rate > 0.0).then_some(mask))
    }
}

/// What a forward pass gives.
#[derive(Debug)]
pub struct Forward<T> {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Array4<T>,
    /// What the objective adds for each example, already weighted (for a latent kernel
    /// $\beta\,\mathrm{KL}$), `[B]`; divide by the number of training examples.
    pub penalty: Array1<T>,
    saved: Box<dyn Any + Send + Sync>,
}

impl<T: Real> Forward<T> {
    /// Output and penalty, with whatever the mechanism wants to see again in its backward pass.
    pub fn new(output: Array4<T>, penalty: Array1<T>, saved: impl Any + Send + Sync) -> Self {
        Self {
            output,
            penalty,
            saved: Box::new(saved),
        }
    }

    /// A forward pass without a penalty.
    pub fn unpenalised(output: Array4<T>, saved: impl Any + Send + Sync) -> Self {
        let batch = output.dim().0;
        Self::new(output, Array1::zeros(batch), saved)
    }

    /// What was saved.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it was saved by another mechanism.
    pub fn saved<S: 'static>(&self, mechanism: &'static str) -> Result<&S, Error> {
        self.saved
            .downcast_ref()
            .ok_or(Error::ForeignForward { mechanism })
    }
}

/// Cotangents of a forward pass.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents<'a, T> {
    /// Of the output, `[B, M, Tq, dv]`.
    pub output: ArrayView4<'a, T>,
    /// Of the penalty, `[B]`.
    pub penalty: ArrayView1<'a, T>,
}

/// Gradients of a forward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the queries.
    pub q: Array4<T>,
    /// With respect to the keys.
    pub k: Array4<T>,
    /// With respect to the values.
    pub v: Array4<T>,
    /// With respect to the parameters, laid out like them.
    pub parameters: Vec<T>,
}

/// What [`Mechanism::inspect`](crate::Mechanism::inspect) shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection<T> {
    /// The weights of every head, `[B, M, Tq, Tk]`.
    pub weights: Array4<T>,
    /// The spectral points w1 and w2, `[1 or B, M, R, d]`.
    pub points: Option<(Array4<T>, Array4<T>)>,
    /// The correlation of the heads, for each latent dimension of the first example, `[d, M, M]`.
    pub correlation: Option<Array3<T>>,
}
