//! `encoder_layer`, `decoder_layer` and `npt_block`: the blocks of Transformers.

use super::attention::key_lengths;
use crate::case::{Case, Done};
use crate::error::{Failure, Fault};
use bochner_attention::{Mask, Pass, Softmax};
use bochner_models::datapoints::{Between, Block, BlockConfig, Normalised};
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_models::dfdx::prelude::{Backward, SumTo, Trace};
use bochner_models::dfdx::tensor::{Cpu, NoneTape, OwnedTape, Tensor, TensorFromVec};
use bochner_models::dfdx::tensor_ops::Device;
use bochner_models::encoder::{EncoderLayer, EncoderLayerConfig, NormPlacement};
use bochner_nn::{Element, Parameters};
use bochner_numerics::Seed;
use ndarray::{Array2, Array3, Ix3};

/// The names that files of one kind give to the parameters of a layer.
struct Naming {
    /// The prefix of the attention to the layer's sequence.
    attention: &'static str,
    /// The norms, in the order of their numbers in a file.
    norms: &'static [&'static str],
    /// The number of the first norm.
    first: usize,
}

const ENCODER: Naming = Naming {
    attention: "self.",
    norms: &["attention_norm", "feed_forward_norm"],
    first: 1,
};

const DECODER: Naming = Naming {
    norms: &[
        "attention_norm",
        "cross_attention_norm",
        "feed_forward_norm",
    ],
    ..ENCODER
};

const DATAPOINTS: Naming = Naming {
    attention: "",
    first: 0,
    ..ENCODER
};

impl Naming {
    /// The name in a file of a layer's parameter, such as `self.wq` for `attention.query.weight`.
    fn in_file(&self, name: &str) -> String {
        let (layer, part) = name.rsplit_once('.').unwrap_or((name, "weight"));
        if let Some(norm) = self.norms.iter().position(|norm| *norm == layer) {
            let part = if part == "gamma" { "gain" } else { "bias" };
            return format!("ln{}_{part}", self.first + norm);
        }
        let (prefix, map) = match layer.rsplit_once('.') {
            Some(("attention", map)) => (self.attention, map),
            Some(("cross_attention", map)) => ("cross.", map),
            Some((_, map)) => ("", map),
            None => ("", layer),
        };
        let map = match map {
            "first" => "1",
            "second" => "2",
            "residual" => "_res",
            other => &other[..1],
        };
        format!("{prefix}{}{map}", &part[..1])
    }

    /// Reads the parameters of a layer from a file.
    fn read<T: Element>(&self, c: &Case<T>, layer: &mut impl Parameters<T>) -> Done {
        let mut read = Ok(());
        layer.for_each_mut("", &mut |name, parameter| {
            let name = self.in_file(name);
            match c.floats(&name) {
                Ok(given) if given.shape() == parameter.dims() => {
                    parameter.write(&given.into_iter().collect::<Vec<_>>());
                }
                Ok(given) => {
                    let expected = format!("{:?}", parameter.dims());
                    read = Err(Fault::shape(&format!("in.{name}"), expected, given.shape()));
                }
                Err(fault) => read = Err(fault),
            }
        });
        Ok(read?)
    }

    /// Records the output of a layer, and the gradients along the sequences that it reads and its parameters.
    fn record<T: Element>(
        &self,
        c: &Case<T>,
        layer: &impl Parameters<T>,
        inputs: &[(&str, &Sequences<T>)],
        output: Sequences<T, OwnedTape<T, Cpu>>,
    ) -> Done
    where
        Cpu: Device<T>,
    {
        c.flat_output("output", output.as_vec())?;
        let Some(g) = c.cotangent::<Ix3>()? else {
            return Ok(());
        };
        let mut gradients = (output * sequences(g)).sum().backward();
        for (name, x) in inputs {
            c.flat_gradient(name, gradients.get(*x).as_vec())?;
        }
        let mut found = Ok(());
        layer.for_each("", &mut |name, parameter| {
            let mut record = || -> Result<(), Failure> {
                let gradient = parameter.gradient(&mut gradients)?;
                c.flat_gradient(&self.in_file(name), gradient.to_vec())
            };
            if let Err(failure) = record() {
                found = Err(failure);
            }
        });
        found
    }
}

/// A batch of sequences, `[B, T, D]`.
type Sequences<T, R = NoneTape> = Tensor<(usize, usize, usize), T, Cpu, R>;

fn sequences<T: Element>(x: Array3<T>) -> Sequences<T>
where
    Cpu: Device<T>,
{
    let shape = x.dim();
    Cpu::default().tensor_from_vec(x.into_iter().collect(), shape)
}

const SEED: fn() -> Seed = || Seed::new(0);

/// An encoder's layer with softmax attention and the parameters of the file.
pub(super) fn encoder_layer<T: Element>(c: &Case<T>) -> Done
where
    Cpu: Device<T>,
{
    let x: Array3<T> = c.array("x")?;
    c.choice("activation", &["relu"])?;
    let config = EncoderLayerConfig {
        width: x.dim().2,
        heads: c.count("heads")?,
        hidden: c.array::<ndarray::Ix2>("w1")?.nrows(),
        attention: Softmax::default().into(),
        dropout: 0.0,
        norm: match c.choice("norm", &["pre", "post"])? {
            "pre" => NormPlacement::Pre,
            _ => NormPlacement::Post,
        },
        epsilon: c.number("ln_eps")?,
        ..Default::default()
    };
    let mut layer = EncoderLayer::try_new(&Cpu::default(), &config, SEED())?;
    ENCODER.read(c, &mut layer)?;
    let (x, pass) = (sequences(x), Pass::Evaluation { seed: SEED() });
    let encoded = layer.apply(x.leaky_trace(), &key_lengths(c)?, pass)?;
    ENCODER.record(c, &layer, &[("x", &x)], encoded.output)
}

/// A decoder's layer with softmax attention and the parameters of the file.
pub(super) fn decoder_layer<T: Element>(c: &Case<T>) -> Done
where
    Cpu: Device<T>,
{
    let [x, memory]: [Array3<T>; 2] = c.arrays(["x", "memory"])?;
    let hidden: Array2<T> = c.array("w1")?;
    c.choice("activation", &["relu"])?;
    c.choice("norm", &["pre"])?;
    let config = DecoderLayerConfig {
        width: x.dim().2,
        heads: c.count("heads")?,
        hidden: hidden.nrows(),
        attention: Softmax::default().into(),
        cross_attention: Softmax::default().into(),
        dropout: 0.0,
        epsilon: c.number("ln_eps")?,
        ..Default::default()
    };
    let mut layer = DecoderLayer::try_new(&Cpu::default(), &config, SEED())?;
    DECODER.read(c, &mut layer)?;
    let [x, memory] = [x, memory].map(sequences);
    let masks = [&Mask::none(), &key_lengths(c)?];
    let pass = Pass::Evaluation { seed: SEED() };
    let decoded = layer.apply(x.leaky_trace(), memory.leaky_trace(), masks, pass)?;
    let inputs = [("x", &x), ("memory", &memory)];
    DECODER.record(c, &layer, &inputs, decoded.output)
}

/// A block of attention between rows or between columns, with the parameters of the file.
pub(super) fn npt_block<T: Element>(c: &Case<T>) -> Done
where
    Cpu: Device<T>,
{
    let h: Array3<T> = c.array("h")?;
    let (_, columns, width) = h.dim();
    let config = BlockConfig {
        columns,
        width,
        heads: c.count("heads")?,
        between: match c.choice("block", &["abd", "aba"])? {
            "abd" => Between::Datapoints,
            _ => Between::Attributes,
        },
        attention: None,
        normalised: match c.choice("normalise", &["all", "queries"])? {
            "all" => Normalised::All,
            _ => Normalised::Queries,
        },
        dropout: 0.0,
        epsilon: c.number("ln_eps")?,
    };
    let mut block = Block::try_new(&Cpu::default(), &config, SEED())?;
    DATAPOINTS.read(c, &mut block)?;
    let (h, pass) = (sequences(h), Pass::Evaluation { seed: SEED() });
    let output = block.apply(h.leaky_trace(), pass)?.output;
    DATAPOINTS.record(c, &block, &[("h", &h)], output)
}
