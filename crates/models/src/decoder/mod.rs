//! The decoder of a Transformer, with any attention of the registry that can be causal.

mod layer;

pub use layer::{DecoderLayer, DecoderLayerConfig};

pub use crate::steps::{DecoderSteps, PackedDecoder};

use crate::Error;
use crate::encoder::{Encoded, MOST_LAYERS, Sequences};
use bochner_attention::{Mask, Pass, layer::Attention, mechanism::Inspection};
use bochner_nn::{Element, LayerNorm, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::{Seed, argument};
use dfdx::prelude::{PutTape, SplitTape};
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape};
use dfdx::tensor_ops::TryAdd;
use serde::{Deserialize, Serialize};

/// Settings of a [`Decoder`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct DecoderConfig {
    /// The number of layers, from 1 to 4096.
    pub layers: usize,
    /// The settings of every layer.
    pub layer: DecoderLayerConfig,
}

bochner_numerics::checked_when_read!(DecoderConfig);

impl DecoderConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        argument::at_most("layers", self.layers, MOST_LAYERS)?;
        self.layer.validate()
    }
}

/// Pre-LN layers one on top of the other, and a norm behind the last.
#[derive(Clone, Debug)]
pub struct Decoder<E: Element> {
    pub(crate) layers: Vec<DecoderLayer<E>>,
    pub(crate) norm: LayerNorm<usize, E>,
}

impl<E: Element> Decoder<E> {
    /// A decoder with random initial values.
    ///
    /// # Errors
    /// The errors of [`DecoderLayer::try_new`].
    pub fn try_new(device: &Cpu, config: &DecoderConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let layer = |i| DecoderLayer::try_new(device, &config.layer, seed.nth(i as u64));
        Ok(Self {
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            norm: LayerNorm::try_new(device, config.layer.width)?,
        })
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.layers
            .iter_mut()
            .for_each(|layer| layer.go_to_step(step));
    }

    /// The decoded sequences, `[B, T, width]`, and the sum of the layers' penalties.
    ///
    /// The masks are those of [`DecoderLayer::apply`].
    ///
    /// # Errors
    /// The errors of [`DecoderLayer::apply`].
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        x: Sequences<E, T>,
        memory: Sequences<E, T>,
        masks: [&Mask; 2],
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        // Every layer reads the memory; the first takes along what it was computed from.
        let (memory, tape) = memory.split_tape();
        let of_layer = |tape| memory.clone().put_tape(tape);
        let (first, others) = self.layers.split_first().expect("at least one layer");
        let mut decoded = first.apply(x, of_layer(tape), masks, pass.nth(0))?;
        for (layer, i) in others.iter().zip(1..) {
            let next = layer.apply(decoded.output, of_layer(T::default()), masks, pass.nth(i))?;
            let penalty = decoded.penalty.try_add(next.penalty);
            decoded = Attention {
                output: next.output,
                penalty: penalty.map_err(bochner_nn::Error::from)?,
            };
        }
        decoded.output = self.norm.apply(decoded.output)?;
        Ok(decoded)
    }

    /// Weights of every head, queries, keys and other inner values of each layer's attentions: of the sequence to itself,
    /// and to the memory.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply), and of [`DecoderLayer::inspect`].
    pub fn inspect(
        &self,
        mut x: Sequences<E, NoneTape>,
        memory: &Sequences<E, NoneTape>,
        masks: [&Mask; 2],
        pass: Pass,
    ) -> Result<Vec<[Inspection<E>; 2]>, Error> {
        let mut seen = Vec::with_capacity(self.layers.len());
        for (layer, i) in self.layers.iter().zip(0..) {
            seen.push(layer.inspect(x.clone(), memory.clone(), masks, pass.nth(i))?);
            x = layer.apply(x, memory.clone(), masks, pass.nth(i))?.output;
        }
        Ok(seen)
    }
}

impl<E: Element> Parameters<E> for Decoder<E> {
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
