//! The settings of a layer, and the sizes that follow from them.

use super::PositionBias;
use super::position_code::admit_code;
use crate::mechanism::is_default;
use crate::{Card, Error, Mask, Softmax, Variant, card::Stream};
use bochner_engine::Rotary;
use bochner_numerics::{ArgumentError, Seed, argument};
use bochner_spectral::Size;
use serde::{Deserialize, Serialize};

/// Settings of a [`MultiHead`](super::MultiHead) layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct MultiHeadConfig {
    /// Number of heads. Must divide the layer's width, unless keys and values have their own widths.
    #[doc(alias = "num_heads")]
    pub heads: usize,
    /// The mechanism, with its own settings.
    pub variant: Variant,
    /// Rate of dropout on the normalised weights in the training passes of [`ModuleMut`](dfdx::nn::ModuleMut), in
    /// `0..1`. Passes by [`MultiHead::attend`](super::MultiHead::attend) take the rate of their [`Pass`](crate::Pass).
    /// Defaults to 0.
    #[doc(alias = "attention_dropout")]
    pub dropout: f64,
    /// Seed of the draws in evaluation, and of the training passes of [`ModuleMut`](dfdx::nn::ModuleMut). Defaults to 0.
    pub seed: Seed,
    /// Width d of each head's queries and keys. Defaults to the layer's width divided by the heads.
    #[doc(alias = "head_dim")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_width: Option<usize>,
    /// Width dv of each head's values. Defaults to the layer's width divided by the heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_width: Option<usize>,
    /// Width of the memory, for a layer that attends from a sequence to a memory of another width. Such a layer cannot
    /// attend to its own sequence. Defaults to the layer's width.
    #[doc(alias = "kdim")]
    #[doc(alias = "vdim")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_width: Option<usize>,
    /// Number of key-value heads (grouped-query attention). Must divide `heads`. Defaults to `heads`.
    #[doc(alias = "gqa")]
    #[doc(alias = "num_kv_heads")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Whether the projections have biases. Defaults to `true`.
    #[doc(alias = "qkv_bias")]
    #[serde(skip_serializing_if = "Clone::clone")]
    pub bias: bool,
    /// Whether every mask is made causal. Defaults to `false`.
    #[doc(alias = "is_causal")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub causal: bool,
    /// Sliding-window attention: a query attends to at most this many positions before and after its own.
    /// [`usize::MAX`] is no bound. A mask with a narrower window narrows it. Defaults to `None` (no window).
    #[doc(alias = "sliding_window")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<[usize; 2]>,
    /// Bias of the logits by the positions of query and key. Defaults to none.
    #[serde(skip_serializing_if = "is_default")]
    pub position_bias: PositionBias,
    /// Rotary positions of queries and keys, applied in each head after the projections. Defaults to `None`.
    ///
    /// Positions of a sequence count from 0, those of a packed sequence from its start. A decoder continues the count.
    /// The positions of a memory count from 0 too. Under a mask that compares positions, and with a position bias, query
    /// `i` stands at key `i + Tk - Tq`, as in [`Mask`].
    #[doc(alias = "rope")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotary: Option<Rotary>,
}

bochner_numerics::checked_when_read!(MultiHeadConfig);

impl Default for MultiHeadConfig {
    fn default() -> Self {
        Self {
            heads: 8,
            variant: Variant::Softmax(Softmax::default()),
            dropout: 0.0,
            seed: Seed::new(0),
            key_width: None,
            value_width: None,
            memory_width: None,
            kv_heads: None,
            bias: true,
            causal: false,
            window: None,
            position_bias: PositionBias::None,
            rotary: None,
        }
    }
}

impl MultiHeadConfig {
    /// Checks everything but what depends on the layer's width.
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("heads", self.heads)?;
        // A width that suits the rotary positions, unless the heads have their own.
        let turned = self.rotary.map(|rotary| rotary.width.unwrap_or(2));
        let width = self.key_width.or(turned).unwrap_or(1).max(1);
        let card = self.variant.card();
        self.layout(self.heads.saturating_mul(width), &card)
            .map(drop)
    }

    /// Checks the settings for a layer of this width.
    ///
    /// # Errors
    /// Those of [`MultiHead::try_new`](super::MultiHead::try_new) that follow from the settings.
    pub fn check(&self, embed: usize) -> Result<(), Error> {
        self.layout(embed, &self.variant.card()).map(drop)
    }

    /// Returns the layout of a layer of width `embed` around a mechanism with this card.
    pub(super) fn layout(&self, embed: usize, card: &Card) -> Result<Layout, Error> {
        let (heads, streams) = (self.heads, card.streams);
        argument::rate("dropout", self.dropout)?;
        let own = [self.key_width, self.value_width];
        let own_widths = own.iter().all(Option::is_some) && !streams.contains(&Stream::Input);
        for (what, size) in [
            ("embed", embed),
            ("key_width", own[0].unwrap_or(1)),
            ("value_width", own[1].unwrap_or(1)),
            ("memory_width", self.memory_width.unwrap_or(1)),
        ] {
            argument::at_least_one(what, size)?;
        }
        if heads == 0 || !own_widths {
            argument::heads(heads, embed)?;
        }
        for (width, stream) in own.into_iter().zip([Stream::Keys, Stream::Values]) {
            if width.is_some() && !streams.contains(&stream) {
                return Err(Error::Unsupported {
                    what: "a width of keys or values for a mechanism that does not ask for them",
                    instead: "None",
                });
            }
        }
        let narrow = embed.checked_div(heads);
        if streams.contains(&Stream::Input) && self.key_width.is_some_and(|w| Some(w) != narrow) {
            return Err(Error::Unsupported {
                what: "a width of queries and keys beside the layer's input, whose slices have their own",
                instead: "None",
            });
        }
        let memory = self.memory_width.unwrap_or(embed);
        if memory != embed {
            (card.cross).required("a memory of another width with this mechanism")?;
        }
        let kv_heads = self.kv_heads.unwrap_or(heads);
        let divides = kv_heads > 0 && heads.is_multiple_of(kv_heads);
        let allowed = format!("a divisor of {heads}, the number of heads");
        argument::in_range(divides, "kv_heads", kv_heads as f64, allowed)?;
        if kv_heads != heads {
            let what = "heads that share keys and values with this mechanism";
            card.shared_keys.required(what)?;
        }
        let [key_width, value_width] = own.map(|width| width.unwrap_or(embed / heads));
        let value_width = match streams.contains(&Stream::Values) {
            true => value_width,
            // Without values the mechanism chooses the width, or takes that of the queries.
            false => card.output_width.unwrap_or(key_width),
        };
        if let Some([left, right]) = self.window {
            Mask::none().with_window(left, right)?;
        }
        if self.position_bias != PositionBias::None {
            card.bias.required("a position bias with this mechanism")?;
        }
        self.position_bias.validate()?;
        if let Some(rotary) = &self.rotary {
            admit_code::<f64>(rotary, card, key_width)?;
        }
        let layout = Layout {
            embed,
            memory,
            heads,
            kv_heads,
            key_width,
            value_width,
            streams,
            bias: self.bias,
            causal: self.causal,
            window: self.window,
            position_bias: self.position_bias,
        };
        // What the layer's own causality and window ask for must hold without a mask from the caller, too.
        let mask = layout.mask(Mask::none());
        mask.check_reach()?;
        card.admit_mask(&mask)?;
        Ok(layout)
    }
}

impl Stream {
    /// Whether the stream comes from the sequence of the queries, not from the memory.
    pub(super) fn is_of_queries(self) -> bool {
        matches!(self, Self::Queries | Self::Input)
    }
}

/// The sizes of a layer's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The width of sequences and outputs.
    pub(super) embed: usize,
    /// The width of the memory.
    pub(super) memory: usize,
    pub(super) heads: usize,
    kv_heads: usize,
    key_width: usize,
    pub(super) value_width: usize,
    /// The streams that the mechanism takes.
    pub(super) streams: &'static [Stream],
    /// Whether the projections have biases. Defaults to `true`.
    #[doc(alias = "qkv_bias")]
    pub(super) bias: bool,
    /// Whether every mask is made causal. Defaults to `false`.
    #[doc(alias = "is_causal")]
    causal: bool,
    window: Option<[usize; 2]>,
    pub(super) position_bias: PositionBias,
}

impl Layout {
    /// The mask of a pass that is given `mask`.
    pub(super) fn mask(&self, mask: Mask) -> Mask {
        let mask = match self.causal {
            true => mask.with_causality(),
            false => mask,
        };
        match self.window {
            Some(window) => mask.within(window),
            None => mask,
        }
    }

    /// The size of the mechanism's parameters.
    pub(super) fn size(&self) -> Size {
        let (heads, width) = (self.heads, self.key_width);
        Size { heads, width }
    }

    /// The width of one head of a stream.
    pub(super) fn width(&self, stream: Stream) -> usize {
        match stream {
            Stream::Queries | Stream::Keys => self.key_width,
            Stream::Values => self.value_width,
            Stream::Scores => 1,
            Stream::Input => self.embed / self.heads,
        }
    }

    /// The number of heads of a stream.
    pub(super) fn heads_of(&self, stream: Stream) -> usize {
        match stream {
            Stream::Keys | Stream::Values => self.kv_heads,
            _ => self.heads,
        }
    }

    /// Checks the shapes of queries and of their memory, which are the same sequence in self-attention.
    pub(super) fn check_sequences(
        &self,
        query: &[usize],
        memory: &[usize],
    ) -> Result<(), ArgumentError> {
        let size = |x: &[usize], axis| x.get(axis).copied().unwrap_or(0);
        let batch = size(query, 0);
        argument::shape("the input", &[batch, size(query, 1), self.embed], query)?;
        argument::shape("the memory", &[batch, size(memory, 1), self.memory], memory)
    }

    /// The name of each map, as in checkpoints, and its numbers of outputs and inputs; that to the output
    /// comes last.
    pub(super) fn maps(self) -> impl Iterator<Item = (&'static str, [usize; 2])> {
        let streams = self.streams.iter().filter_map(move |&stream| {
            let name = match stream {
                Stream::Queries => "query",
                Stream::Keys => "key",
                Stream::Values => "value",
                Stream::Scores => "scores",
                // It is not mapped.
                Stream::Input => return None,
            };
            let inputs = match stream.is_of_queries() {
                true => self.embed,
                false => self.memory,
            };
            Some((name, [self.heads_of(stream) * self.width(stream), inputs]))
        });
        let output = ("output", [self.embed, self.heads * self.value_width]);
        streams.chain([output])
    }

    /// Assigns values to the parameters, given one value for each parameter in their order.
    pub(super) fn cut<V>(self, parameters: impl IntoIterator<Item = V>) -> Cut<V> {
        let mut all = parameters.into_iter();
        let maps = self.maps().map_while(|_| {
            let weight = all.next()?;
            Some((weight, self.bias.then(|| all.next()).flatten()))
        });
        let maps = maps.collect();
        let table = self.position_bias.table(self.heads);
        Cut {
            maps,
            table: table.and_then(|_| all.next()),
            kernel: all.next(),
        }
    }
}

/// A value for each parameter of a layer.
pub(super) struct Cut<V> {
    /// The values of the weight and the bias of each map.
    pub(super) maps: Vec<(V, Option<V>)>,
    /// The value of the table of the position bias.
    pub(super) table: Option<V>,
    /// The value of the mechanism's parameters.
    pub(super) kernel: Option<V>,
}

/// Settings known at compile time, for layers built by dfdx.
///
/// ```
/// use bochner_attention::{IkanDirect, MultiHead, MultiHeadConfig, StaticConfig};
/// use bochner_attention::prelude::*;
///
/// struct Mine;
/// impl StaticConfig for Mine {
///     fn config() -> MultiHeadConfig {
///         let variant = IkanDirect { points: 4, ..Default::default() }.into();
///         MultiHeadConfig { heads: 2, variant, causal: true, ..Default::default() }
///     }
/// }
/// // Two sets of 2 heads x 4 points x 4 numbers.
/// type Layer = MultiHead<Const<8>, f32, Cpu, Const<64>, Mine>;
///
/// let device = Cpu::default();
/// let layer = Layer::build(&device);
/// let y: Tensor<Rank3<1, 5, 8>, f32, Cpu> = layer.forward(device.ones::<Rank3<1, 5, 8>>());
/// ```
pub trait StaticConfig: 'static {
    /// The settings.
    fn config() -> MultiHeadConfig;
}
