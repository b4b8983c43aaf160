//! One layer of a decoder.

use crate::Error;
use crate::attention::{AttentionOptions, is_default};
use crate::branches::Then;
use crate::encoder::{
    Encoded, FEED_FORWARD, Sequences, check_layer, check_parts, is_rectifier, is_usual_epsilon,
    norm, pre_norm, rectifier, usual_epsilon,
};
use bochner_attention::{
    Mask, MultiHead, MultiHeadConfig, Pass, Softmax, Variant, layer::Attention,
    mechanism::Inspection,
};
use bochner_nn::{
    Dropout, Element, FeedForward, FeedForwardConfig, LayerNorm, Parameters, TapeInputs, record,
};
use bochner_numerics::Seed;
use bochner_ops::{Activation, Mode};
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape};
use dfdx::tensor_ops::TryAdd;
use serde::{Deserialize, Serialize};

/// Settings of a [`DecoderLayer`]. The default has the sizes of the base model of Vaswani et al., 2017.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct DecoderLayerConfig {
    /// The width of the sequences.
    pub width: usize,
    /// Number of heads of both attentions; must divide the width.
    pub heads: usize,
    /// Width of the feed-forward part's hidden layer.
    pub hidden: usize,
    /// The mechanism of the attention of the sequence to itself, which must be able to be causal.
    pub attention: Variant,
    /// The mechanism of the attention to the memory. It must be able to be causal, too: what one position makes of the
    /// memory must not depend on later ones.
    #[serde(alias = "cross_attention")]
    pub cross_attention: Variant,
    /// The options of the attention of the sequence to itself, such as key-value heads and rotary positions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attention_options: AttentionOptions,
    /// The options of the attention to the memory. A window and a position bias compare positions of two sequences:
    /// decoding position by position refuses them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cross_attention_options: AttentionOptions,
    /// Rate of dropout on the hidden layer and on the three residual branches; that on attention weights, where the
    /// mechanism has any, comes with the [`Pass`].
    pub dropout: f64,
    /// The function that follows the feed-forward part's first map. Defaults to [`Activation::Relu`].
    #[serde(default = "rectifier", skip_serializing_if = "is_rectifier")]
    pub activation: Activation,
    /// The number that the norms add to the variance, above 0. Defaults to `1e-5`.
    #[doc(alias = "layer_norm_eps")]
    #[serde(default = "usual_epsilon", skip_serializing_if = "is_usual_epsilon")]
    pub epsilon: f64,
}

bochner_numerics::checked_when_read!(DecoderLayerConfig);

impl Default for DecoderLayerConfig {
    fn default() -> Self {
        Self {
            width: 512,
            heads: 8,
            hidden: 2048,
            attention: Softmax::default().into(),
            cross_attention: Softmax::default().into(),
            attention_options: AttentionOptions::default(),
            cross_attention_options: AttentionOptions::default(),
            dropout: 0.1,
            activation: rectifier(),
            epsilon: usual_epsilon(),
        }
    }
}

impl DecoderLayerConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        let sizes = [self.width, self.heads];
        check_layer([self.width, self.heads, self.hidden], self.dropout)?;
        check_parts(self.activation, self.epsilon)?;
        self.attention_options.check(sizes, &self.attention)?;
        (self.cross_attention_options).check(sizes, &self.cross_attention)
    }
}

/// One pre-LN layer of a Transformer's decoder.
///
/// $$ h = x + \mathrm{MultiHead}_{\mathrm{causal}}(\mathrm{LN}_1(x)), \quad
///    g = h + \mathrm{MultiHead}(\mathrm{LN}_2(h), m), \quad
///    y = g + \mathrm{FFN}(\mathrm{LN}_3(g)) $$
///
/// * $x$, $y$: the sequences, `[B, T, width]`
/// * $m$: the memory, `[B, Tk, width]`, read as it is: an [`Encoder`](crate::encoder::Encoder) of pre-LN layers
///   normalises its output itself
///
/// The feed-forward part is two linear maps with an activation between them, the rectifier by default.
///
/// # Numerics
/// The layer is one operation on the tape; what is between its parts never becomes a tensor.
///
/// # Reference
/// Vaswani et al., *Attention Is All You Need*, 2017, section 3.1; Xiong et al., *On Layer Normalization in the
/// Transformer Architecture*, 2020, for pre-LN.
///
/// ```
/// use bochner_attention::{Mask, Pass, Softmax};
/// use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
/// use bochner_numerics::Seed;
/// use bochner_models::prelude::*;
///
/// let config = DecoderLayerConfig {
///     width: 8,
///     heads: 2,
///     hidden: 16,
///     attention: Softmax::default().into(),
///     cross_attention: Softmax::default().into(),
///     dropout: 0.1,
///     ..Default::default()
/// };
/// let device = Cpu::default();
/// let layer: DecoderLayer<f32> = DecoderLayer::try_new(&device, &config, Seed::new(1))?;
///
/// let x: Tensor<(usize, usize, usize), f32, Cpu> = device.ones_like(&(2, 3, 8));
/// let memory: Tensor<(usize, usize, usize), f32, Cpu> = device.ones_like(&(2, 5, 8));
/// let (of_itself, of_memory) = (Mask::none(), Mask::none().with_key_lengths(vec![5, 4]));
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
/// let decoded = layer.apply(x, memory, [&of_itself, &of_memory], pass)?;
/// assert_eq!(decoded.output.shape(), &(2, 3, 8));
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DecoderLayer<E: Element> {
    /// The causal attention of the sequence to itself.
    pub attention: MultiHead<usize, E>,
    /// The norm before it.
    pub attention_norm: LayerNorm<usize, E>,
    /// The attention to the memory.
    pub cross_attention: MultiHead<usize, E>,
    /// The norm before it.
    pub cross_attention_norm: LayerNorm<usize, E>,
    /// The feed-forward part.
    pub feed_forward: FeedForward<usize, usize, usize, E>,
    /// The norm before it.
    pub feed_forward_norm: LayerNorm<usize, E>,
    /// Dropout on the residual branches.
    pub dropout: Dropout,
}

impl<E: Element> DecoderLayer<E> {
    /// A layer with random initial values.
    ///
    /// Each part draws from a stream of its own: layers that differ in an attention mechanism alone share the initial
    /// values of everything else.
    ///
    /// # Errors
    /// A setting that is out of range is refused, and so is a mechanism that cannot be causal in either place, or that
    /// cannot attend to another sequence.
    pub fn try_new(device: &Cpu, config: &DecoderLayerConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let &DecoderLayerConfig {
            width,
            heads,
            hidden,
            dropout,
            activation,
            epsilon,
            ..
        } = config;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let attention = |part: &str, variant: &Variant, options: &AttentionOptions, causal| {
            let config = options.apply(MultiHeadConfig {
                heads,
                variant: variant.clone(),
                dropout,
                seed: seed.child(part),
                causal,
                ..MultiHeadConfig::default()
            });
            MultiHead::try_new(device, width, config, &mut stream(part))
        };
        let feed_forward = FeedForwardConfig {
            dropout,
            hidden: activation,
            ..Default::default()
        };
        let norm = || norm(device, width, epsilon);
        let layer = Self {
            attention: attention(
                "attention",
                &config.attention,
                &config.attention_options,
                true,
            )?,
            attention_norm: norm()?,
            cross_attention: attention(
                "cross-attention",
                &config.cross_attention,
                &config.cross_attention_options,
                false,
            )?,
            cross_attention_norm: norm()?,
            feed_forward: FeedForward::try_new(
                device,
                (width, hidden, width),
                feed_forward,
                &mut stream("feed-forward"),
            )?,
            feed_forward_norm: norm()?,
            dropout: Dropout::new(dropout)?,
        };
        // The errors of a mechanism that attends to its own sequence alone, and of one that looks at all queries.
        let pass = Pass::Evaluation { seed };
        layer.cross_attention.cross_operation(&Mask::none(), pass)?;
        let causal = config.cross_attention.card().causal;
        causal.required("a decoder's attention to its memory with this mechanism")?;
        Ok(layer)
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`].
    pub fn go_to_step(&mut self, step: u64) {
        self.attention.go_to_step(step);
        self.cross_attention.go_to_step(step);
    }

    /// The decoded sequences, `[B, T, width]`, and the penalty of both attentions.
    ///
    /// The masks are those of the sequence to itself, which the layer makes causal, and of the sequence to the memory,
    /// whose key lengths say how long each padded memory is. Where a memory has length 0, nothing is attended to: the
    /// attention's output is the bias of its last map.
    ///
    /// # Errors
    /// [`Error::Nn`] if a width differs, [`Error::Attention`] for what an attention refuses: a mask, the pass's
    /// dropout rate.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        x: Sequences<E, T>,
        memory: Sequences<E, T>,
        [of_itself, of_memory]: [&Mask; 2],
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let (shape, mode) = (*x.shape(), Mode::from(pass));
        let inputs = self.attention.add_to(TapeInputs::<E, T>::new().with(x)?)?;
        let of_itself_alone = self.attention_norm.add_to(inputs)?;
        let before = of_itself_alone.len();
        let inputs = self.cross_attention.add_to(of_itself_alone.with(memory)?)?;
        let inputs = self.cross_attention_norm.add_to(inputs)?;
        let of_cross = inputs.len() - before;
        let inputs = self
            .feed_forward_norm
            .add_to(self.feed_forward.add_to(inputs)?)?;

        let [own, cross] =
            [&self.attention, &self.cross_attention].map(|layer| layer.config().variant.card());
        let attention = (self.attention).operation(of_itself, pass.nth(0).for_card(&own));
        let cross =
            (self.cross_attention).cross_operation(of_memory, pass.nth(1).for_card(&cross))?;
        let feed_forward = self.feed_forward.operation(mode.child("feed-forward"))?;
        let dropout = self.dropout;
        let operation = Then {
            first: Then {
                first: pre_norm(
                    &self.attention_norm,
                    attention,
                    dropout,
                    mode.child("attention"),
                )?,
                further: 1,
                second: pre_norm(
                    &self.cross_attention_norm,
                    cross,
                    dropout,
                    mode.child("cross-attention"),
                )?,
                of_second: of_cross,
            },
            further: 2,
            second: pre_norm(
                &self.feed_forward_norm,
                feed_forward,
                dropout,
                mode.child("feed-forward branch"),
            )?,
            of_second: FEED_FORWARD,
        };
        let mut outputs = record(operation, inputs)?;
        let (output, first, second) = (outputs.take(shape)?, outputs.take(())?, outputs.take(())?);
        let penalty = first.try_add(second).map_err(bochner_nn::Error::from)?;
        Ok(Attention { output, penalty })
    }

    /// Weights of every head, queries, keys and other inner values of both attentions, in the order of their masks: of
    /// the sequence to itself, and to the memory.
    ///
    /// # Shapes
    /// `x: [B, T, width]`, `memory: [B, Tk, width]` to weights `[B, heads, T, T]` and `[B, heads, T, Tk]`.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply); [`Error::Attention`] if one of the two mechanisms shows no weights: neither
    /// attention can be looked at then.
    pub fn inspect(
        &self,
        x: Sequences<E, NoneTape>,
        memory: Sequences<E, NoneTape>,
        [of_itself, of_memory]: [&Mask; 2],
        pass: Pass,
    ) -> Result<[Inspection<E>; 2], Error> {
        let normed = self.attention_norm.apply(x.clone())?;
        let [own, cross] =
            [&self.attention, &self.cross_attention].map(|layer| layer.config().variant.card());
        let (first, second) = (pass.nth(0).for_card(&own), pass.nth(1).for_card(&cross));
        let own = (self.attention).inspect_self(normed.clone(), of_itself, first)?;
        let attended = self.attention.attend_self(normed, of_itself, first)?;
        let dropout = Mode::from(pass).child("attention");
        let x = x.try_add(self.dropout.apply(attended.output, dropout)?);
        let x = x.map_err(bochner_nn::Error::from)?;
        let queries = self.cross_attention_norm.apply(x)?;
        let cross = (self.cross_attention).inspect(queries, memory, of_memory, second)?;
        Ok([own, cross])
    }
}

impl<E: Element> Parameters<E> for DecoderLayer<E> {
    bochner_nn::visit_fields!(
        E: attention,
        attention_norm,
        cross_attention,
        cross_attention_norm,
        feed_forward,
        feed_forward_norm
    );
}
