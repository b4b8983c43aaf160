//! The encoder of a Transformer, with any attention of the registry.

mod layer;
mod torch_names;

pub use layer::{EncoderLayer, EncoderLayerConfig, NormPlacement};
pub(crate) use layer::{
    FEED_FORWARD, check_layer, check_parts, is_rectifier, is_usual_epsilon, norm, pre_norm,
    rectifier, usual_epsilon,
};

use crate::Error;
use crate::attention::admit_dropout;
use bochner_attention::{Mask, Pass, card::Penalty, layer::Attention, mechanism::Inspection};
use bochner_nn::{Element, LayerNorm, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::{Seed, argument};
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape, Tensor};
use dfdx::tensor_ops::TryAdd;
use serde::{Deserialize, Serialize};

/// A batch of sequences, `[B, T, width]`.
pub(crate) type Sequences<E, T> = Tensor<(usize, usize, usize), E, Cpu, T>;

/// The output of an encoder: sequences and the penalty of all its layers.
pub(crate) type Encoded<E, T> = Attention<Sequences<E, T>, Tensor<(), E, Cpu, T>>;
/// Logits, `[rows, classes]`, and the penalty.
pub(crate) type Logits<E, T> = Attention<Tensor<(usize, usize), E, Cpu, T>, Tensor<(), E, Cpu, T>>;

/// The most layers of a model: more is a slip, which would take all memory before it is noticed.
pub(crate) const MOST_LAYERS: usize = 1 << 12;

/// Settings of an [`Encoder`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct EncoderConfig {
    /// The number of layers, from 1 to 4096.
    pub layers: usize,
    /// The settings of every layer.
    pub layer: EncoderLayerConfig,
    /// Presence of a norm behind the last layer. Defaults to `true` for [`NormPlacement::Pre`] and to `false` for
    /// [`NormPlacement::Post`].
    #[serde(
        default,
        rename = "final-norm",
        skip_serializing_if = "Option::is_none"
    )]
    pub final_norm: Option<bool>,
}

bochner_numerics::checked_when_read!(EncoderConfig);

impl EncoderConfig {
    /// An encoder of `layers` equal layers.
    pub fn new(layers: usize, layer: EncoderLayerConfig) -> Self {
        Self {
            layers,
            layer,
            final_norm: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        argument::at_most("layers", self.layers, MOST_LAYERS)?;
        self.layer.validate()
    }

    /// Refuses dropout that no training pass of the layers supports.
    pub(crate) fn admit_training(&self) -> Result<(), Error> {
        admit_dropout(&self.layer.attention, self.layer.dropout)
    }
}

/// Layers one on top of the other; behind those of [`NormPlacement::Pre`] a norm, unless the settings decide otherwise.
///
/// ```
/// use bochner_attention::{IkanDirect, Mask, Pass};
/// use bochner_models::encoder::{Encoder, EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_numerics::Seed;
/// use bochner_models::prelude::*;
///
/// let layer = EncoderLayerConfig {
///     width: 8,
///     heads: 2,
///     hidden: 16,
///     attention: IkanDirect { p: 1.5, points: 4, ..Default::default() }.into(),
///     dropout: 0.1,
///     norm: NormPlacement::Pre,
///     ..Default::default()
/// };
/// let device = Cpu::default();
/// let encoder: Encoder<f32> =
///     Encoder::try_new(&device, &EncoderConfig::new(2, layer), Seed::new(1))?;
///
/// let x: Tensor<(usize, usize, usize), f32, Cpu> = device.ones_like(&(3, 5, 8));
/// let mask = Mask::none().with_key_lengths(vec![5, 2, 4]);
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
/// let encoded = encoder.apply(x.clone(), &mask, pass)?;
/// assert_eq!(encoded.output.shape(), &(3, 5, 8));
/// let seen = encoder.inspect(x, &mask, pass)?;
/// assert_eq!((seen.len(), seen[1].weights.dim()), (2, (3, 2, 5, 5)));
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder<E: Element> {
    pub(crate) layers: Vec<EncoderLayer<E>>,
    pub(crate) norm: Option<LayerNorm<usize, E>>,
}

impl<E: Element> Encoder<E> {
    /// An encoder with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &EncoderConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let layer = |i| EncoderLayer::try_new(device, &config.layer, seed.nth(i as u64));
        let pre_norm = config.layer.norm == NormPlacement::Pre;
        Ok(Self {
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            norm: (config.final_norm.unwrap_or(pre_norm))
                .then(|| norm(device, config.layer.width, config.layer.epsilon))
                .transpose()?,
        })
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.layers
            .iter_mut()
            .for_each(|layer| layer.go_to_step(step));
    }

    /// The encoded sequences, `[B, T, width]`, and the sum of the layers' penalties.
    ///
    /// # Errors
    /// The errors of [`EncoderLayer::apply`].
    pub fn apply<T>(
        &self,
        x: Sequences<E, T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error>
    where
        T: Tape<E, Cpu> + Merge<T>,
    {
        let (first, others) = self.layers.split_first().expect("at least one layer");
        let mut encoded = first.apply(x, mask, pass.nth(0))?;
        for (layer, i) in others.iter().zip(1..) {
            let next = layer.apply(encoded.output, mask, pass.nth(i))?;
            let penalty = encoded.penalty.try_add(next.penalty);
            encoded = Attention {
                output: next.output,
                penalty: penalty.map_err(bochner_nn::Error::from)?,
            };
        }
        if let Some(norm) = &self.norm {
            encoded.output = norm.apply(encoded.output)?;
        }
        Ok(encoded)
    }

    /// Weights of every head, spectral points and other inner values of each layer's attention.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn inspect(
        &self,
        mut x: Sequences<E, NoneTape>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Vec<Inspection<E>>, Error> {
        let mut seen = Vec::with_capacity(self.layers.len());
        for (layer, i) in self.layers.iter().zip(0..) {
            seen.push(layer.inspect(x.clone(), mask, pass.nth(i))?);
            x = layer.apply(x, mask, pass.nth(i))?.output;
        }
        Ok(seen)
    }

    /// The pass of a training step, with the dropout of the settings on the attention's weights.
    pub(crate) fn training(&self, seed: Seed) -> Pass {
        let dropout = self.layers[0].attention.config().dropout;
        Pass::Training { seed, dropout }
    }

    /// The kind of the attention's penalty.
    pub(crate) fn penalty(&self) -> Penalty {
        self.layers[0].attention.config().variant.card().penalty
    }
}

impl<E: Element> Parameters<E> for Encoder<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.layers.for_each(prefix, f);
        self.norm.for_each(&join(prefix, "norm"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.layers.for_each_mut(prefix, f);
        self.norm.for_each_mut(&join(prefix, "norm"), f);
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        self.layers.for_each_size(prefix, f);
    }
}
