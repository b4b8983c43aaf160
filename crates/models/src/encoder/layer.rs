//! One layer of an encoder.

use super::{Encoded, Sequences};
use crate::Error;
use crate::attention::{AttentionOptions, is_default};
use crate::branches::{PostNormBranch, PreNormBranch, Then};
use bochner_attention::{
    Mask, MultiHead, MultiHeadConfig, Pass, Softmax, Variant, layer::Attention,
    mechanism::Inspection,
};
use bochner_nn::{
    Dropout, Element, FeedForward, FeedForwardConfig, LayerNorm, Parameters, TapeInputs, record,
};
use bochner_numerics::{ArgumentError, Seed, argument};
use bochner_ops::{Activation, Mode, Operation, dropout_mask};
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, NoneTape, Tape};
use serde::{Deserialize, Serialize};

/// Settings of an [`EncoderLayer`]. The default is a layer of the base model of Vaswani et al., 2017.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct EncoderLayerConfig {
    /// The width of the sequences.
    pub width: usize,
    /// Number of heads; must divide the width.
    pub heads: usize,
    /// Width of the feed-forward part's hidden layer.
    pub hidden: usize,
    /// The attention mechanism.
    pub attention: Variant,
    /// The options of the attention, such as key-value heads and rotary positions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attention_options: AttentionOptions,
    /// Rate of dropout on the hidden layer and on both residual branches; that on attention
    /// weights, if the mechanism has any, comes with the [`Pass`].
    pub dropout: f64,
    /// The placement of the norms. Defaults to [`NormPlacement::Post`].
    #[serde(default)]
    pub norm: NormPlacement,
    /// The function that follows the feed-forward part's first map. Defaults to [`Activation::Relu`].
    #[serde(default = "rectifier", skip_serializing_if = "is_rectifier")]
    pub activation: Activation,
    /// The number that the norms add to the variance, above 0. Defaults to `1e-5`.
    #[doc(alias = "layer_norm_eps")]
    #[serde(default = "usual_epsilon", skip_serializing_if = "is_usual_epsilon")]
    pub epsilon: f64,
}

bochner_numerics::checked_when_read!(EncoderLayerConfig);

impl Default for EncoderLayerConfig {
    fn default() -> Self {
        Self {
            width: 512,
            heads: 8,
            hidden: 2048,
            attention: Softmax::default().into(),
            attention_options: AttentionOptions::default(),
            dropout: 0.1,
            norm: NormPlacement::Post,
            activation: rectifier(),
            epsilon: usual_epsilon(),
        }
    }
}

pub(crate) fn rectifier() -> Activation {
    Activation::Relu
}

pub(crate) fn is_rectifier(activation: &Activation) -> bool {
    *activation == rectifier()
}

pub(crate) fn usual_epsilon() -> f64 {
    1e-5
}

pub(crate) fn is_usual_epsilon(epsilon: &f64) -> bool {
    *epsilon == usual_epsilon()
}

impl EncoderLayerConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        check_layer([self.width, self.heads, self.hidden], self.dropout)?;
        check_parts(self.activation, self.epsilon)?;
        (self.attention_options).check([self.width, self.heads], &self.attention)
    }
}

/// Checks the settings that layers of encoders and decoders share.
pub(crate) fn check_layer(
    [width, heads, hidden]: [usize; 3],
    dropout: f64,
) -> Result<(), ArgumentError> {
    for (name, size) in [("width", width), ("hidden", hidden)] {
        argument::at_least_one(name, size)?;
    }
    argument::heads(heads, width)?;
    argument::rate("dropout", dropout)
}

/// Checks the settings of the feed-forward part and of the norms.
pub(crate) fn check_parts(activation: Activation, epsilon: f64) -> Result<(), ArgumentError> {
    activation.validate()?;
    let holds = (epsilon as f32).is_normal() && epsilon > 0.0;
    let allowed = "positive, and neither too small nor too large for single precision";
    argument::in_range(holds, "epsilon", epsilon, allowed)
}

/// The placement of a layer's norms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlacement {
    /// Post-LN, behind each half:
    /// $h = \mathrm{LN}(x + \mathrm{MultiHead}(x))$, $y = \mathrm{LN}(h + \mathrm{FFN}(h))$.
    #[default]
    Post,
    /// Pre-LN, before each half, which leaves a path on which nothing is normalised:
    /// $h = x + \mathrm{MultiHead}(\mathrm{LN}(x))$, $y = h + \mathrm{FFN}(\mathrm{LN}(h))$. An
    /// [`Encoder`](super::Encoder) of such layers ends in a norm of its own.
    Pre,
}

/// One layer of a Transformer's encoder: attention and a feed-forward part, each on a residual branch, and a
/// norm of each, whose place [`NormPlacement`] says.
///
/// The feed-forward part is two linear maps with an activation between them, the rectifier by default.
///
/// # Numerics
/// One operation on the tape: `x` and the parameters are copied once out of dfdx, which lends no
/// slice of a tensor's data; what is between the parts never becomes a tensor.
///
/// # Reference
/// Vaswani et al., *Attention Is All You Need*, 2017, section 3.1; Xiong et al., *On Layer Normalization in the
/// Transformer Architecture*, 2020, for pre-LN.
#[derive(Clone, Debug)]
pub struct EncoderLayer<E: Element> {
    /// The attention.
    pub attention: MultiHead<usize, E>,
    /// The norm of the attention's half.
    pub attention_norm: LayerNorm<usize, E>,
    /// The feed-forward part.
    pub feed_forward: FeedForward<usize, usize, usize, E>,
    /// The norm of the feed-forward half.
    pub feed_forward_norm: LayerNorm<usize, E>,
    /// The placement of the two norms.
    pub norm: NormPlacement,
    /// Dropout on both residual branches.
    pub dropout: Dropout,
}

impl<E: Element> EncoderLayer<E> {
    /// A layer with random initial values.
    ///
    /// Each part draws from a stream of its own: layers that differ in the attention mechanism
    /// alone share the initial values of everything else.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &EncoderLayerConfig, seed: Seed) -> Result<Self, Error> {
        Self::with_activation(device, config, Activation::Identity, seed)
    }

    /// A layer whose feed-forward part ends in an activation.
    pub(crate) fn with_activation(
        device: &Cpu,
        config: &EncoderLayerConfig,
        activation: Activation,
        seed: Seed,
    ) -> Result<Self, Error> {
        config.validate()?;
        let EncoderLayerConfig {
            width,
            heads,
            hidden,
            dropout,
            activation: hidden_activation,
            epsilon,
            ..
        } = *config;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let multi_head = config.attention_options.apply(MultiHeadConfig {
            heads,
            variant: config.attention.clone(),
            dropout,
            seed: seed.child("attention"),
            ..MultiHeadConfig::default()
        });
        let feed_forward = FeedForwardConfig {
            dropout,
            hidden: hidden_activation,
            activation,
        };
        let norm = || norm(device, width, epsilon);
        let sizes = (width, hidden, width);
        Ok(Self {
            attention: MultiHead::try_new(device, width, multi_head, &mut stream("attention"))?,
            attention_norm: norm()?,
            feed_forward: FeedForward::try_new(
                device,
                sizes,
                feed_forward,
                &mut stream("feed-forward"),
            )?,
            feed_forward_norm: norm()?,
            norm: config.norm,
            dropout: Dropout::new(dropout)?,
        })
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`].
    pub fn go_to_step(&mut self, step: u64) {
        self.attention.go_to_step(step);
    }

    /// The encoded sequences, `[B, T, width]`, and the attention's penalty.
    ///
    /// The mask's key lengths say how long padded sequences are, as queries too. In a sequence of length 0,
    /// nothing is attended to: the attention's output is the bias of its last map.
    ///
    /// # Errors
    /// [`Error::Nn`] if `x` has another width, [`Error::Attention`] for what the attention refuses: the mask,
    /// the pass's dropout rate.
    pub fn apply<T: Tape<E, Cpu>>(
        &self,
        x: Sequences<E, T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let mode = Mode::from(pass);
        let [first, second] = [mode.child("attention"), mode.child("feed-forward branch")];
        let card = self.attention.config().variant.card();
        let attention = self.attention.operation(mask, pass.for_card(&card));
        let feed_forward = self.feed_forward.operation(mode.child("feed-forward"))?;
        let (dropout, further, of_second) = (self.dropout, 1, FEED_FORWARD);
        match self.norm {
            NormPlacement::Post => {
                let (branch, norm) = (attention, self.attention_norm.residual(dropout, first)?);
                let first = PostNormBranch { branch, norm };
                let norm = self.feed_forward_norm.residual(dropout, second)?;
                let branch = feed_forward;
                let second = PostNormBranch { branch, norm };
                let operation = Then {
                    first,
                    further,
                    second,
                    of_second,
                };
                self.recorded(operation, x)
            }
            NormPlacement::Pre => {
                let operation = Then {
                    first: pre_norm(&self.attention_norm, attention, dropout, first)?,
                    further,
                    second: pre_norm(&self.feed_forward_norm, feed_forward, dropout, second)?,
                    of_second,
                };
                self.recorded(operation, x)
            }
        }
    }

    /// The layer as one operation on the tape.
    fn recorded<T: Tape<E, Cpu>>(
        &self,
        operation: impl Operation<E>,
        x: Sequences<E, T>,
    ) -> Result<Encoded<E, T>, Error> {
        let shape = *x.shape();
        let inputs = self.attention.add_to(TapeInputs::<E, T>::new().with(x)?)?;
        let inputs = self.attention_norm.add_to(inputs)?;
        let inputs = self.feed_forward.add_to(inputs)?;
        let inputs = self.feed_forward_norm.add_to(inputs)?;
        let mut outputs = record(operation, inputs)?;
        Ok(Attention {
            output: outputs.take(shape)?,
            penalty: outputs.take(())?,
        })
    }

    /// Weights of every head, spectral points and other inner values of the attention.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn inspect(
        &self,
        x: Sequences<E, NoneTape>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let x = match self.norm {
            NormPlacement::Post => x,
            NormPlacement::Pre => self.attention_norm.apply(x)?,
        };
        Ok(self.attention.inspect_self(x, mask, pass)?)
    }
}

/// A norm with this number beside the variance.
pub(crate) fn norm<E: Element>(
    device: &Cpu,
    width: usize,
    epsilon: f64,
) -> Result<LayerNorm<usize, E>, Error> {
    let mut norm = LayerNorm::try_new(device, width)?;
    norm.epsilon = epsilon;
    Ok(norm)
}

/// The parameters of a feed-forward part and of its norm.
pub(crate) const FEED_FORWARD: usize = 4 + 2;

/// A branch behind a norm, with dropout in training.
pub(crate) fn pre_norm<E: Element, O>(
    norm: &LayerNorm<usize, E>,
    branch: O,
    dropout: Dropout,
    mode: Mode,
) -> Result<PreNormBranch<O>, Error> {
    let epsilon = norm.epsilon;
    Ok(PreNormBranch {
        norm: bochner_ops::LayerNorm { epsilon },
        branch,
        mask: dropout_mask(dropout.rate(), mode)?,
    })
}

impl<E: Element> Parameters<E> for EncoderLayer<E> {
    bochner_nn::visit_fields!(E: attention, attention_norm, feed_forward, feed_forward_norm);
}
