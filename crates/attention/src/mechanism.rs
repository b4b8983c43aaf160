//! What every attention mechanism offers, whatever its kernel, normaliser and parameters.

use crate::{Decoder, DecoderSize, Error, Form, Mask, OwnedSettings, Settings};
use bochner_numerics::{DropoutMask, Real, Seed};
use bochner_spectral::{ParameterSpec, Size};
use ndarray::{Array1, Array3, Array4, ArrayView1, ArrayView4};
use rand::RngCore;
use std::any::Any;
use std::fmt::Debug;

/// An attention mechanism: from queries, keys, values and its own parameters to an output.
///
/// One file under `variants/` implements it, one line in the registry makes it known; the
/// conformance tests, the trainable layer and the experiments need nothing else. Parameters travel
/// as one flat slice, laid out by [`Mechanism::parameters`].
///
/// ```
/// use bochner_attention::{Cotangents, Inputs, Mask, Mechanism, Pass, find};
/// use bochner_numerics::Seed;
/// use ndarray::Array4;
///
/// let variant = (find("ikan-direct").unwrap().default)();
/// let mechanism: &dyn Mechanism<f64> = variant.mechanism();
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| 0.1 * (m + t * n) as f64);
/// let mask = Mask::none().with_causality();
/// let inputs = Inputs { q: x.view(), k: x.view(), v: x.view(), mask: &mask };
/// let parameters = mechanism.initial(inputs.size(), &mut Seed::new(1).stream("initial values"))?;
///
/// let pass = Pass::Training { seed: Seed::new(2), dropout: 0.1 };
/// let forward = mechanism.forward(&inputs, &parameters, &pass)?;
/// let (output, penalty) = (x.view(), forward.penalty.view());
/// let cotangent = Cotangents { output, penalty };
/// let gradients = mechanism.backward(&inputs, &parameters, &pass, &forward, cotangent)?;
/// assert_eq!(gradients.parameters.len(), parameters.len());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub trait Mechanism<T: Real>: Debug + Send + Sync {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] naming the setting.
    fn validate(&self) -> Result<(), Error>;

    /// The parameters at a given size, in the order in which they are laid out.
    fn parameters(&self, size: Size) -> Vec<ParameterSpec>;

    /// Initial values of all parameters.
    ///
    /// # Errors
    /// The errors of [`Mechanism::validate`]; whatever the parameters' distributions refuse, such as a size
    /// of zero.
    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error>;

    /// The forward pass.
    ///
    /// # Errors
    /// Whatever does not fit: shapes, the mask, the number of parameters, a setting.
    fn forward(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Forward<T>, Error>;

    /// The vector-Jacobian product of [`Mechanism::forward`], given what it returned and the
    /// cotangents of the output and the penalty.
    ///
    /// # Errors
    /// As the forward pass; [`Error::ForeignForward`] if `forward` is another mechanism's.
    fn backward(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error>;

    /// Whether a pass without dropout on the weights draws nothing: the same then in training as in
    /// evaluation, and whatever its seed.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// Whether a forward pass returns a penalty that belongs to the loss.
    fn has_penalty(&self) -> bool {
        false
    }

    /// What there is to see: weights of every head, spectral points, correlation of the heads.
    ///
    /// # Errors
    /// As the forward pass.
    fn inspect(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error>;

    /// The settings of [`attend`](crate::attend) that the forward pass comes down to: attention by
    /// them needs neither the parameters nor another draw.
    ///
    /// Only spectral points that are inferred from the sequences depend on queries and keys; others
    /// depend on their number at most.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an average over several draws, and for a mechanism that is not
    /// attention by some settings; otherwise as the forward pass.
    fn settings(
        &self,
        _inputs: &Inputs<T>,
        _parameters: &[T],
        _pass: &Pass,
    ) -> Result<OwnedSettings<T>, Error> {
        Err(Error::Unsupported {
            what: "decoding, or attention without a backward pass, with this mechanism",
            instead: "its forward pass",
        })
    }

    /// Causal attention to sequences that grow, row by row that of [`Mechanism::forward`] to the
    /// whole sequences under a causal mask.
    ///
    /// Spectral points that are drawn are drawn once, from the pass's seed, as they are for whole
    /// sequences.
    ///
    /// # Errors
    /// [`Error::CausalLeak`] if the spectral points depend on the sequence;
    /// [`Error::Unsupported`] for dropout, in [`Form::LinearTime`] for what has no such form, and
    /// otherwise as [`Mechanism::settings`].
    fn decoder(
        &self,
        size: DecoderSize,
        parameters: &[T],
        pass: &Pass,
        form: Form,
    ) -> Result<Decoder<T>, Error> {
        let none = Inputs::none(size.batch, size.into());
        let settings = self.settings(&Inputs::unseen(&none), parameters, pass)?;
        let settings = settings.with_mask(Mask::CAUSAL);
        Decoder::new(&Settings { form, ..settings }, size)
    }
}

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

/// What [`Mechanism::inspect`] shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection<T> {
    /// The weights of every head, `[B, M, Tq, Tk]`.
    pub weights: Array4<T>,
    /// The spectral points w1 and w2, `[1 or B, M, R, d]`.
    pub points: Option<(Array4<T>, Array4<T>)>,
    /// The correlation of the heads, for each latent dimension of the first example, `[d, M, M]`.
    pub correlation: Option<Array3<T>>,
}
