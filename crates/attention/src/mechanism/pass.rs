//! Inputs and results of a mechanism's passes.

use crate::{Bias, Card, Error, Mask, Settings, card::Stream};
use bochner_engine::{self as engine, Output, Saved, Wanted, attend, attend_vjp, weights};
use bochner_numerics::{DropoutMask, Real, Seed, argument, parallel};
use bochner_ops::Mode;
use bochner_spectral::Size;
use ndarray::{Array1, Array3, Array4, ArrayD, ArrayView1, ArrayView4, s};
use std::any::Any;

/// The largest number of streams.
pub(crate) const MOST: usize = 3;

/// The arrays that a mechanism attends with, in the order of its card's
/// [streams](crate::Card::streams), the mask and the bias.
///
/// ```
/// use bochner_attention::{Mask, mechanism::Streams};
/// use bochner_attention::ndarray::Array4;
///
/// let (x, mask) = (Array4::<f32>::ones((1, 2, 5, 4)), Mask::none());
/// let [q, k, v] = [x.view(), x.view(), x.view()];
/// let pairwise = Streams::new([q, k, v], &mask);
/// assert_eq!(pairwise.q(), x);
/// // Scores and values are two streams, not three.
/// assert!(pairwise.get::<2>().is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a, T> {
    arrays: [Option<ArrayView4<'a, T>>; MOST],
    /// The mask of the keys.
    pub mask: &'a Mask,
    /// The term that is added to the logits of pairs, for a mechanism whose [card](crate::Card::bias) supports it.
    pub bias: Option<&'a Bias<T>>,
    /// Whether the backward pass gives the gradient of the bias, which must have numbers of its own.
    pub bias_gradient: bool,
}

impl<'a, T> Streams<'a, T> {
    /// Streams and a mask, without a bias.
    ///
    /// # Panics
    /// If there are more than three.
    pub fn new(arrays: impl IntoIterator<Item = ArrayView4<'a, T>>, mask: &'a Mask) -> Self {
        let mut given = arrays.into_iter();
        let arrays = [(); MOST].map(|()| given.next());
        assert!(given.next().is_none(), "more streams than there can be");
        Self {
            arrays,
            mask,
            bias: None,
            bias_gradient: false,
        }
    }

    /// The streams that a mechanism asks for, out of queries, keys and values: the keys' first coordinate
    /// stands for scores, and as many of the values' as queries have for the layer's input.
    pub fn asked_by(card: &Card, [q, k, v]: [ArrayView4<'a, T>; 3], mask: &'a Mask) -> Self {
        let width = q.dim().3.min(v.dim().3);
        let of = |stream: &Stream| match stream {
            Stream::Queries => q,
            Stream::Keys => k,
            Stream::Values => v,
            Stream::Scores => k.slice_move(s![.., .., .., ..1]),
            Stream::Input => v.slice_move(s![.., .., .., ..width]),
        };
        Self::new(card.streams.iter().map(of), mask)
    }

    /// These streams with a bias, or without one.
    #[must_use]
    pub fn with_bias(self, bias: impl Into<Option<&'a Bias<T>>>) -> Self {
        Self {
            bias: bias.into(),
            ..self
        }
    }

    /// Returns these streams with the request that the backward pass give the gradient of the bias.
    #[must_use]
    pub fn with_bias_gradient(self) -> Self {
        Self {
            bias_gradient: self.bias.is_some(),
            ..self
        }
    }

    /// All streams.
    ///
    /// # Errors
    /// [`Error::StreamCount`] if there is another number of them.
    pub fn get<const N: usize>(&self) -> Result<[ArrayView4<'a, T>; N], Error> {
        self.expect(N)?;
        Ok(std::array::from_fn(|i| self.at(i)))
    }

    /// `Ok` if there are `expected` streams.
    pub(crate) fn expect(&self, expected: usize) -> Result<(), Error> {
        match self.arrays.iter().flatten().count() {
            got if got == expected => Ok(()),
            got => Err(Error::StreamCount { expected, got }),
        }
    }

    /// Whether all streams have as many positions.
    pub(crate) fn is_of_one_length(&self) -> bool {
        let mut lengths = self.arrays.iter().flatten().map(|x| x.dim().2);
        let first = lengths.next();
        lengths.all(|length| Some(length) == first)
    }

    /// Whether all streams have as many heads; an input is none's.
    pub(crate) fn are_of_as_many_heads(&self) -> bool {
        let mut heads = self.arrays.iter().flatten().map(|x| x.dim().1);
        let first = heads.next();
        heads.all(|heads| Some(heads) == first)
    }

    fn at(&self, i: usize) -> ArrayView4<'a, T> {
        self.arrays[i].expect("a stream that the mechanism asks for")
    }
}

/// The streams of a mechanism that compares pairs, which are queries, keys and values.
///
/// # Panics
/// If there are fewer streams.
impl<'a, T: Real> Streams<'a, T> {
    /// Queries, `[B, M, Tq, d]`.
    pub fn q(&self) -> ArrayView4<'a, T> {
        self.at(0)
    }

    /// Keys, `[B, M, Tk, d]`.
    pub fn k(&self) -> ArrayView4<'a, T> {
        self.at(1)
    }

    /// Values, `[B, M, Tk, dv]`.
    pub fn v(&self) -> ArrayView4<'a, T> {
        self.at(2)
    }

    /// The sizes of the parameters that fit.
    pub fn size(&self) -> Size {
        let (_, heads, _, width) = self.q().dim();
        Size { heads, width }
    }

    /// Zeros in place of sequences of which only the number is known.
    pub(crate) fn none(batch: usize, Size { heads, width }: Size) -> Array4<T> {
        Array4::zeros((batch, heads, 1, width))
    }

    /// Queries, keys and values under a causal mask: what depends on them is an error.
    pub(crate) fn unseen(none: &'a Array4<T>, causal: &'a Mask) -> Self {
        Self::new([(); 3].map(|()| none.view()), causal)
    }
}

impl<T: Real> Streams<'_, T> {
    /// Refuses numbers beyond the range of the engine before an example's key length.
    pub(super) fn check_range(&self, array: &'static str, x: ArrayView4<T>) -> Result<(), Error> {
        let limit = T::max_value().sqrt().sqrt();
        let is_fitting = |x: &T| x.abs() <= limit;
        let all_fit = match x.as_slice() {
            Some(x) => is_fitting(&parallel::max_norm(x)),
            None => x.iter().all(is_fitting),
        };
        if all_fit {
            return Ok(());
        }
        for ((example, head, t, column), got) in x.indexed_iter() {
            if !is_fitting(got) && t < self.mask.key_limit(example, x.dim().2) {
                return Err(Error::Engine(engine::Error::OutOfRange {
                    array,
                    index: [example, head, t, column],
                    got: got.as_f64(),
                    limit: limit.as_f64(),
                }));
            }
        }
        Ok(())
    }

    /// Settings of a mechanism with the bias and the dropout of a pass.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for settings that have another mask, a dropout, or a bias beside that of the inputs.
    pub(super) fn complete(
        &self,
        settings: Settings<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        if settings.mask != *self.mask || settings.dropout.is_some() {
            return unsupported(
                "a mask or a dropout of the mechanism's own",
                "the mask of the inputs and no dropout: both come with the call",
            );
        }
        if self.bias.is_some() && settings.bias.is_some() {
            return unsupported(
                "a position bias beside the bias of the mechanism",
                "one of the two; the mechanism's card should say that it takes no bias",
            );
        }
        Ok(Settings {
            bias: self.bias.cloned().or(settings.bias),
            dropout: pass.weight_dropout()?,
            ..settings
        })
    }

    /// Attention from the queries to keys and values.
    pub(super) fn attend(
        &self,
        mechanism: &'static str,
        settings: Settings<T>,
    ) -> Result<(Output<T>, Attended<T>), Error> {
        let [q, k, v] = self.get()?;
        let (output, saved) = attend(&settings, q, k, v)?;
        let attended = Attended {
            mechanism,
            settings,
            saved,
        };
        Ok((output, attended))
    }

    /// The vector-Jacobian product of [`Streams::attend`].
    pub(super) fn attend_vjp(
        &self,
        attended: &Attended<T>,
        cotangent: ArrayView4<T>,
        wanted: Wanted,
    ) -> Result<engine::Gradients<T>, Error> {
        let [q, k, v] = self.get()?;
        let Attended {
            settings, saved, ..
        } = attended;
        match attend_vjp(settings, saved, q, k, v, cotangent, wanted) {
            Err(engine::Error::OutOfRange {
                array: "cotangent", ..
            }) => {}
            gradients => return Ok(gradients?),
        }
        // A loss that overflows is told by its gradients: a tape has no other way, and trainers look at them.
        let zeros = Array4::zeros(cotangent.raw_dim());
        let mut g = attend_vjp(settings, saved, q, k, v, zeros.view(), wanted)?;
        let streams = g.q.iter_mut().chain(&mut g.k).chain(&mut g.v);
        let others = g
            .bias
            .iter_mut()
            .flatten()
            .chain(g.sink.iter_mut().flatten());
        let kernel = g.kernel.iter_mut().flatten();
        streams
            .chain(kernel)
            .chain(others)
            .for_each(|x| *x = T::nan());
        Ok(g)
    }

    /// The weights of [`Streams::attend`].
    pub(super) fn weights(&self, settings: &Settings<T>) -> Result<Array4<T>, Error> {
        let [q, k, _] = self.get()?;
        Ok(weights(settings, q, k)?)
    }
}

/// Training or evaluation, and the seed of everything drawn in this pass.
///
/// [`Mode::from`] is the mode of a model's other layers, such as dropout.
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
    ///
    /// Most mechanisms draw nothing in evaluation and ignore the seed: those whose card says [`Draws::Nothing`] or
    /// [`Draws::InTraining`].
    ///
    /// [`Draws::Nothing`]: crate::card::Draws::Nothing
    /// [`Draws::InTraining`]: crate::card::Draws::InTraining
    Evaluation {
        /// Any seed, and the same one in every evaluation, so that results can be compared and come out again. A trainer
        /// of `bochner-models` has one, `Trainer::evaluation_seed`, with which its model gives what the trainer gives.
        seed: Seed,
    },
}

impl From<Pass> for Mode {
    fn from(pass: Pass) -> Self {
        match pass {
            Pass::Training { seed, .. } => Self::Training(seed),
            Pass::Evaluation { .. } => Self::Evaluation,
        }
    }
}

impl Pass {
    /// An evaluation with the seed 0: for mechanisms that draw nothing in evaluation, and for one fixed draw of the others.
    pub const fn evaluation() -> Self {
        Self::Evaluation { seed: Seed::new(0) }
    }

    /// The seed of the pass.
    pub fn seed(&self) -> Seed {
        match *self {
            Self::Training { seed, .. } | Self::Evaluation { seed } => seed,
        }
    }

    /// The pass of one of several parts, with a seed of its own.
    #[must_use]
    pub fn nth(self, part: u64) -> Self {
        let own = self.seed().nth(part);
        match self {
            Self::Training { dropout, .. } => Self::Training { seed: own, dropout },
            Self::Evaluation { .. } => Self::Evaluation { seed: own },
        }
    }

    /// The pass for a mechanism with this card: where it has no weights of pairs, there is no dropout on them.
    ///
    /// Mechanisms without weights refuse a rate. A model whose rate is that of "the weights, if there are any" says
    /// so by this method. A rate outside `0..1` stays, and is refused.
    #[must_use]
    pub fn for_card(self, card: &Card) -> Self {
        match self {
            Self::Training { seed, dropout }
                if !card.weights.is_yes() && (0.0..1.0).contains(&dropout) =>
            {
                Self::Training { seed, dropout: 0.0 }
            }
            _ => self,
        }
    }

    /// Dropout on the weights, if any.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the rate lies in `0..1`.
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
        argument::rate(purpose, rate)?;
        let mask = DropoutMask::new(rate, seed.child(purpose))?;
        Ok((rate > 0.0).then_some(mask))
    }
}

/// The result of a forward pass. Its backward pass takes it with the same inputs, parameters and pass.
#[derive(Debug)]
pub struct Forward<T> {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Output<T>,
    /// The term that the objective adds for each example, already weighted (for a latent kernel $\beta \mathrm{KL}$),
    /// `[B]`. [`Penalty::share`](crate::card::Penalty::share) returns the factor to multiply it with.
    pub penalty: Array1<T>,
    saved: Box<dyn Any + Send + Sync>,
}

/// A forward pass of attention, with the settings that its backward pass needs.
pub(super) struct Attended<T: Real> {
    mechanism: &'static str,
    settings: Settings<T>,
    saved: Saved<T>,
}

impl<T: Real> Forward<T> {
    /// Output and penalty, with whatever the mechanism wants to see again in its backward pass.
    pub fn new(
        output: impl Into<Output<T>>,
        penalty: Array1<T>,
        saved: impl Any + Send + Sync,
    ) -> Self {
        Self {
            output: output.into(),
            penalty,
            saved: Box::new(saved),
        }
    }

    /// A forward pass without a penalty.
    pub fn unpenalised(output: impl Into<Output<T>>, saved: impl Any + Send + Sync) -> Self {
        let output = output.into();
        let batch = output.dim().0;
        Self::new(output, Array1::zeros(batch), saved)
    }

    /// Returns the saved values.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if another mechanism saved them.
    pub fn saved<S: 'static>(&self, mechanism: &'static str) -> Result<&S, Error> {
        let saved = self.saved.downcast_ref();
        saved.ok_or(Error::ForeignForward { mechanism })
    }

    /// Returns the attention of a mechanism that is attention by some settings.
    pub(super) fn attended(&self, mechanism: &'static str) -> Result<&Attended<T>, Error> {
        let attended = self.saved::<Attended<T>>(mechanism)?;
        match attended.mechanism == mechanism {
            true => Ok(attended),
            false => Err(Error::ForeignForward { mechanism }),
        }
    }
}

/// Cotangents of a forward pass.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents<'a, T> {
    /// The cotangent of the output, `[B, M, Tq, dv]`.
    pub output: ArrayView4<'a, T>,
    /// The cotangent of the penalty, `[B]`.
    pub penalty: ArrayView1<'a, T>,
}

/// Gradients of a forward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients<T> {
    /// With respect to each stream.
    pub streams: Vec<Array4<T>>,
    /// With respect to the parameters, laid out like them.
    pub parameters: Vec<T>,
    /// With respect to the numbers of a bias, if the [streams](Streams::with_bias_gradient) ask for it.
    pub bias: Option<ArrayD<T>>,
}

impl<T> Gradients<T> {
    /// Gradients of a pass without a bias.
    pub fn new(streams: Vec<Array4<T>>, parameters: Vec<T>) -> Self {
        Self {
            streams,
            parameters,
            bias: None,
        }
    }
}

/// The result of [`Mechanism::inspect`](crate::Mechanism::inspect).
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection<T> {
    /// The weights of every head, `[B, M, Tq, Tk]`.
    pub weights: Array4<T>,
    /// The spectral points w1 and w2, `[1 or B, M, R, d]`.
    pub points: Option<(Array4<T>, Array4<T>)>,
    /// The correlation of the heads, for each latent dimension of the first example, `[d, M, M]`.
    pub correlation: Option<Array3<T>>,
    /// The queries and keys of every head, `[B, M, T, d]`, where a layer was looked at whose mechanism asks for both; with
    /// their positions encoded.
    pub heads: Option<[Array4<T>; 2]>,
}

impl<T> Inspection<T> {
    /// The weights of a mechanism without points.
    pub fn of(weights: Array4<T>) -> Self {
        Self {
            weights,
            points: None,
            correlation: None,
            heads: None,
        }
    }
}
