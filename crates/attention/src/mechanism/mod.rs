//! The interface of every attention mechanism, whatever its kernel, normaliser and parameters, and the mechanisms, a
//! file each.

mod custom;
mod pass;
mod registry;
mod score;
mod settings;
mod shared;
mod squared;
mod trial;

pub use bochner_spectral::{
    Copula, DirectInit, Drawn, ParameterSpec, Posterior, Preset, Size, Stationarity,
};
pub use cat::CatForm;
pub use custom::{CustomMechanism, CustomSettings, register};
pub use mikan::MikanGradients;
#[cfg(feature = "dfdx")]
pub(crate) use pass::MOST;
pub use pass::{Cotangents, Forward, Gradients, Inspection, Pass, Streams};
pub use performer::Redraw;
pub use primal::{PrimalReduction, PrimalScores, PrimalTrace, PrimalWeights};
pub use score::ScoreMechanism;
pub use shared::SharedMechanism;
pub use trial::trial;

use crate::{
    Bias, Card, Error, Form, Mask, Settings,
    card::Cost,
    engine::{Decoder, DecoderSize},
};
use bochner_engine::{self as engine, Wanted};
use bochner_numerics::{Real, argument};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

registry::list_of_mechanisms! {
    /// Softmax attention.
    softmax::Softmax as "softmax": Softmax::default();
    /// Softmax attention's similarity without its magnitude.
    rbf_only::RbfOnly as "rbf-only": RbfOnly {};
    /// A similarity that repeats itself with the distance.
    expsin::Expsin as "expsin": Expsin::default();
    /// A squared linear similarity.
    linear::Linear as "linear": Linear {};
    /// Kernel attention with spectral points as parameters.
    ikan_direct::IkanDirect as "ikan-direct": IkanDirect::default();
    /// Kernel attention with an implicit spectral density, with or without a copula over the heads.
    mikan::Mikan as "mikan": Mikan::ika_s(), Mikan::ika_ns(), Mikan::ikan(), Mikan::default();
    /// Circular-convolutional attention.
    cat::Cat as "cat": Cat::default(),
        Cat { form: CatForm::Convolution },
        Cat { form: CatForm::Causal },
        Cat { form: CatForm::AveragedKey };
    /// Projections of queries and keys, trained towards an asymmetric kernel SVD.
    primal::Primal as "primal": Primal::default();
    /// Attention by random features.
    performer::Performer as "performer": Performer::default();
    /// Powers of two of products of ternary numbers.
    bipolar::Bipolar as "bipolar": Bipolar::default();
}

impl Variant {
    /// The mechanism's card under these settings.
    pub fn card(&self) -> Card {
        match self {
            Self::Custom(settings) => settings.card(),
            _ => self.mechanism::<f64>().card(),
        }
    }

    /// The name that the settings go by.
    pub fn name(&self) -> &'static str {
        self.card().name
    }

    /// The mechanism at a step of training, for heads of this size.
    pub fn at_step(&self, step: u64, size: Size) -> SharedMechanism {
        let own = self.mechanism::<f64>().at_step(step, size);
        own.unwrap_or_else(|| self.shared())
    }

    /// The mechanism with another number R of spectral points, or m of random frequencies.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mechanism without any.
    pub fn with_points(&self, number: usize) -> Result<Self, Error> {
        let mut changed = self.clone();
        match &mut changed {
            Self::IkanDirect(IkanDirect { points, .. })
            | Self::Mikan(Mikan { points, .. })
            | Self::Performer(Performer { points, .. }) => *points = number,
            _ => {
                return Err(Error::Unsupported {
                    what: "a number of points with this mechanism",
                    instead: "a mechanism whose card names its number of points",
                });
            }
        }
        Ok(changed)
    }

    /// The mechanism in another form: pair by pair, or in linear time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mechanism that has one form only.
    pub fn with_form(&self, wanted: Form) -> Result<Self, Error> {
        let mut changed = self.clone();
        match &mut changed {
            Self::IkanDirect(IkanDirect { form, .. })
            | Self::Mikan(Mikan { form, .. })
            | Self::Performer(Performer { form, .. }) => *form = wanted,
            _ => {
                let linear = self.card().linear_form;
                return Err(linear.refusal("a choice of form with this mechanism"));
            }
        }
        Ok(changed)
    }
}

/// The error for a name that no mechanism has.
fn unknown(given: &str) -> Error {
    Error::UnknownMechanism {
        given: given.to_owned(),
        known: registry().iter().map(Variant::name).collect(),
    }
}

/// The mechanism of the registry that is called `name`, with its default settings.
pub fn find(name: &str) -> Option<Variant> {
    let named = |variant: &Variant| variant.name() == name;
    registry().into_iter().find(named)
}

/// An attention mechanism: from queries, keys, values and its own parameters to an output.
///
/// A mechanism that is [`attend`](crate::attend()) with some settings implements [`Mechanism::card`] and
/// [`Mechanism::kernel`], and with parameters [`Mechanism::parameters`] and [`Mechanism::initial`]: passes, gradients,
/// inspection and decoder follow. Any other, such as attention without pairs, implements the passes.
///
/// In another crate the settings implement [`CustomMechanism`] besides, or [`ScoreMechanism`] alone. In this crate one
/// file or folder under `mechanism/` implements the trait; an entry of the list in `mechanism/mod.rs` makes it known, and
/// a re-export in `lib.rs` public. The tests, the benchmarks, the reference cases of the kind `attention` (for mechanisms
/// without points and parameters) and the trainable layer read the list. The tests write the table of the crate's docs: the first run after a new card fails,
/// and says so. The settings derive serde's traits with `remote = "Self"`, as the list itself implements the ones that
/// check what is read.
///
/// Parameters travel as one flat slice, laid out by [`Mechanism::parameters`].
///
/// ```
/// use bochner_attention::{Mask, Mechanism, Pass, find, mechanism::{Cotangents, Streams}};
/// use bochner_numerics::Seed;
/// use bochner_attention::ndarray::Array4;
///
/// let variant = find("ikan-direct").unwrap();
/// let mechanism: &dyn Mechanism<f64> = variant.mechanism();
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| 0.1 * (m + t * n) as f64);
/// let mask = Mask::none().with_causality();
/// let inputs = Streams::new([x.view(), x.view(), x.view()], &mask);
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
    /// Describes the mechanism, and its abilities under its settings.
    fn card(&self) -> Card;

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the setting.
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The parameters at a given size, in the order in which they are laid out.
    fn parameters(&self, _size: Size) -> Vec<ParameterSpec> {
        Vec::new()
    }

    /// Initial values of all parameters.
    ///
    /// # Errors
    /// The errors of [`Mechanism::validate`]; whatever the parameters' distributions refuse, such as a size
    /// of zero.
    fn initial(&self, _size: Size, _rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        self.validate()?;
        Ok(Vec::new())
    }

    /// Returns the settings of a pass under the mask of the inputs, without dropout on the weights. The inputs are those
    /// that the card admits, and there are as many parameters as there should be.
    ///
    /// Settings that have a bias go with a card whose [`bias`](Card::bias) is not supported: a layer's position bias has
    /// no place beside it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mechanism that is not attention by some settings.
    fn kernel(
        &self,
        _inputs: &Streams<T>,
        _parameters: &[T],
        _pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        Err(NO_SETTINGS)
    }

    /// The gradients that the backward pass needs besides those of the streams.
    ///
    /// Defaults to the kernel's, if the mechanism has parameters. A learnt sink, or a table that the settings of
    /// [`Mechanism::kernel`] have as their bias, are wanted here.
    fn wanted(&self, size: Size) -> Wanted {
        let kernel = !self.parameters(size).is_empty();
        Wanted {
            kernel,
            ..Wanted::default()
        }
    }

    /// Returns the gradient along the mechanism's parameters, laid out like them, given the gradients of
    /// [`attend`](crate::attend()).
    ///
    /// Defaults to those numbers that are [wanted](Mechanism::wanted), in their order: the kernel's, the bias's, the
    /// sink's. Override it where parameters are laid out differently.
    fn pull_parameters(&self, size: Size, gradients: &engine::Gradients<T>) -> Vec<T> {
        let wanted = self.wanted(size);
        let kernel = gradients.kernel.iter().filter(|_| wanted.kernel).flatten();
        let bias = gradients.bias.iter().filter(|_| wanted.bias).flatten();
        let sink = gradients.sink.iter().filter(|_| wanted.sink).flatten();
        kernel.chain(bias).chain(sink).copied().collect()
    }

    /// The forward pass.
    ///
    /// # Errors
    /// Whatever does not fit: shapes, the mask, the number of parameters, a setting.
    fn forward(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Forward<T>, Error> {
        let (output, saved) =
            inputs.attend(self.card().name, of_pass(self, inputs, parameters, pass)?)?;
        Ok(Forward::unpenalised(output, saved))
    }

    /// The vector-Jacobian product of [`Mechanism::forward`], given what it returned and the
    /// cotangents of the output and the penalty.
    ///
    /// # Errors
    /// The errors of the forward pass; [`Error::ForeignForward`] if `forward` is another mechanism's.
    fn backward(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        _pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let saved = forward.attended(self.card().name)?;
        let wanted = self.wanted(inputs.size());
        let bias = wanted.bias || inputs.bias_gradient;
        let wanted = Wanted { bias, ..wanted };
        let g = inputs.attend_vjp(saved, cotangent.output, wanted)?;
        let pulled = self.pull_parameters(inputs.size(), &g);
        if pulled.len() != parameters.len() {
            return Err(Error::Unsupported {
                what: "a mechanism with another number of gradients than of parameters",
                instead: "`wanted` and `pull_parameters` that give one for each parameter",
            });
        }
        Ok(Gradients {
            parameters: pulled,
            streams: vec![g.q, g.k, g.v],
            bias: g.bias.filter(|_| inputs.bias_gradient),
        })
    }

    /// The mechanism at a step of training, for heads of this size; `None` if it is the same at that step.
    ///
    /// What is drawn for more than one pass, such as the features of a [`Performer`], is a function of the settings and
    /// the step. It is drawn here, and held by what this returns: settings hold no state.
    fn at_step(&self, _step: u64, _size: Size) -> Option<SharedMechanism> {
        None
    }

    /// Returns the weights of every head, the spectral points and the correlation of the heads.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mechanism that shows no weights; otherwise as the forward pass.
    fn inspect(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let weights = self.card().weights;
        weights.required("a look at the weights of this mechanism")?;
        let settings = of_pass(self, inputs, parameters, pass)?;
        Ok(Inspection::of(inputs.weights(&settings)?))
    }

    /// The settings of [`attend`](crate::attend) that the forward pass comes down to: attention by
    /// them needs neither the parameters nor another draw.
    ///
    /// Only spectral points that are inferred from the sequences depend on queries and keys; others
    /// depend on their number at most.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for dropout on magnitudes, and for a mechanism that is not attention by some settings;
    /// otherwise as the forward pass.
    fn settings(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let settings = of_pass(self, inputs, parameters, pass)?;
        let is_of_pairs = |bias: &Bias<T>| !bias.follows_from_positions();
        if inputs.bias.is_none() && settings.bias.as_ref().is_some_and(is_of_pairs) {
            return Err(Error::Unsupported {
                what: "decoding with a bias of single pairs, such as dropout on magnitudes makes,",
                instead: "an evaluation, the preset of the paper, or a bias that follows from positions",
            });
        }
        Ok(settings)
    }

    /// Causal attention to sequences that grow, row by row that of [`Mechanism::forward`] to the
    /// whole sequences under the mask, made causal, and the bias.
    ///
    /// Spectral points that are drawn are drawn once, from the pass's seed, as they are for whole
    /// sequences.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mechanism that takes no causal mask, for dropout, for a mask or a bias that
    /// does not follow from positions, in [`Form::LinearTime`] for what has no such form, and otherwise as
    /// [`Mechanism::settings`].
    fn decoder(
        &self,
        size: DecoderSize,
        parameters: &[T],
        pass: &Pass,
        decoding: Decoding<T>,
    ) -> Result<Decoder<T>, Error> {
        let Decoding { form, mask, bias } = decoding;
        let mask = mask.clone().with_causality();
        let DecoderSize { heads, width, .. } = size;
        let none = Streams::none(size.batch, Size { heads, width });
        let inputs = Streams::unseen(&none, &mask).with_bias(bias);
        let settings = self.settings(&inputs, parameters, pass)?;
        let form = settings.decoding_form(form);
        Ok(Decoder::new(&Settings { form, ..settings }, size)?)
    }
}

/// The settings of a pass, checked, with its mask, bias and dropout.
fn of_pass<T: Real>(
    mechanism: &(impl Mechanism<T> + ?Sized),
    inputs: &Streams<T>,
    parameters: &[T],
    pass: &Pass,
) -> Result<Settings<T>, Error> {
    mechanism.validate()?;
    let card = mechanism.card();
    if card.streams != Card::PAIRWISE.streams {
        return Err(NO_SETTINGS);
    }
    card.admit(inputs)?;
    card.admit_pass(pass)?;
    let specs = mechanism.parameters(inputs.size());
    let count = specs.iter().map(ParameterSpec::count).sum();
    argument::shape("parameters", &[count], &[parameters.len()])?;
    inputs.complete(mechanism.kernel(inputs, parameters, pass)?, pass)
}

/// The form, mask and bias of a decoder. A [`Form`] converts into this, with a causal mask and without a window or a
/// bias.
#[derive(Clone, Copy, Debug)]
pub struct Decoding<'a, T> {
    /// The form of the cache. [`Form::Automatic`] stands for the mechanism's own form. If that is automatic too, random
    /// features keep sums where mask and bias allow them, and everything else keeps keys and values.
    pub form: Form,
    /// A window, if there is one.
    pub mask: &'a Mask,
    /// A bias that follows from positions.
    pub bias: Option<&'a Bias<T>>,
}

impl<T> From<Form> for Decoding<'_, T> {
    fn from(form: Form) -> Self {
        Self {
            form,
            mask: Mask::CAUSAL,
            bias: None,
        }
    }
}

/// The cost of those closed forms that are in Table 1.
const COST_OF_PAIRS: Option<Cost> = Some(Cost(&[[2, 1, 0, 0], [1, 2, 0, 0]]));

const NO_SETTINGS: Error = Error::Unsupported {
    what: "decoding with this mechanism, which is not attention by some settings,",
    instead: "its forward pass, or a mechanism that decodes, such as `Softmax`",
};

/// Fields at their defaults are not serialised, so that files written before a field existed are unchanged.
pub(crate) fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
