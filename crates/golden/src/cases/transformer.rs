//! `encoder_layer`, `decoder_layer` and `npt_block`: the blocks of Transformers.

use super::attention::key_lengths;
use super::renamed;
use crate::case::{Case, Done};
use bochner_attention::{Mask, Pass, Softmax};
use bochner_models::datapoints::{Between, Block, BlockConfig};
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_models::dfdx::prelude::{Backward, SumTo, Trace};
use bochner_models::dfdx::tensor::{Cpu, NoneTape, OwnedTape, Tensor, TensorFromVec};
use bochner_models::dfdx::tensor_ops::Device;
use bochner_models::encoder::{EncoderLayer, EncoderLayerConfig};
use bochner_nn::{Element, Parameters};
use bochner_numerics::Seed;
use ndarray::{Array2, Array3};

/// The names in files of the parts of a layer.
type Names = [(&'static str, &'static str)];

const ENCODER: &Names = &[
    ("feed_forward_norm.", "ln2_"),
    ("attention_norm.", "ln1_"),
    ("attention.", "self."),
];

const DECODER: &Names = &[
    ("feed_forward_norm.", "ln3_"),
    ("cross_attention_norm.", "ln2_"),
    ("attention_norm.", "ln1_"),
    ("cross_attention.", "cross."),
    ("attention.", "self."),
];

const DATAPOINTS: &Names = &[
    ("feed_forward_norm.", "ln1_"),
    ("attention_norm.", "ln0_"),
    ("attention.", ""),
];

/// The names in files of the maps of every layer, and of the parameters of norms.
const MAPS: &Names = &[
    ("query", "q"),
    ("key", "k"),
    ("value", "v"),
    ("output", "o"),
    ("feed_forward.first", "1"),
    ("feed_forward.second", "2"),
    ("residual", "_res"),
    ("gamma", "gain"),
    ("beta", "bias"),
];

/// The name in a file of a layer's parameter, such as `self.wq` for `attention.query.weight`.
fn in_file(name: &str, names: &Names) -> String {
    let name = renamed(&renamed(name, names), MAPS);
    match name.rsplit_once('.') {
        None => name,
        Some((map, part)) => {
            let (prefix, map) = map.split_at(map.rfind('.').map_or(0, |at| at + 1));
            format!("{prefix}{}{map}", &part[..1])
        }
    }
}

/// Reads the parameters of a layer from a file.
fn read<T: Element>(c: &Case<T>, names: &Names, layer: &mut impl Parameters<T>) -> Done {
    let mut read = Ok(());
    layer.for_each_mut("", &mut |name, parameter| match c
        .shaped(&in_file(name, names), &parameter.dims())
    {
        Ok(given) => parameter.write(&given),
        Err(fault) => read = Err(fault.into()),
    });
    read
}

/// Records the output of a layer, and the gradients along the sequences that it reads and its parameters.
fn record<T: Element>(
    c: &Case<T>,
    names: &Names,
    layer: &impl Parameters<T>,
    inputs: &[(&str, &Sequences<T>)],
    output: Sequences<T, OwnedTape<T, Cpu>>,
) -> Done
where
    Cpu: Device<T>,
{
    c.output("output", output.as_vec());
    c.pull(|g: Array3<T>| {
        let mut gradients = (output * sequences(g)).sum().backward();
        for (name, x) in inputs {
            c.gradient(name, gradients.get(*x).as_vec());
        }
        let mut found = Ok(());
        layer.for_each(
            "",
            &mut |name, parameter| match parameter.gradient(&mut gradients) {
                Ok(g) => c.gradient(&in_file(name, names), g.to_vec()),
                Err(error) => found = Err(error.into()),
            },
        );
        found
    })
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
        norm: c.setting("norm")?,
        epsilon: c.number("ln_eps")?,
        ..Default::default()
    };
    let mut layer = EncoderLayer::try_new(&Cpu::default(), &config, SEED())?;
    read(c, ENCODER, &mut layer)?;
    let (x, pass) = (sequences(x), Pass::Evaluation { seed: SEED() });
    let encoded = layer.apply(x.leaky_trace(), &key_lengths(c)?, pass)?;
    record(c, ENCODER, &layer, &[("x", &x)], encoded.output)
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
    read(c, DECODER, &mut layer)?;
    let [x, memory] = [x, memory].map(sequences);
    let masks = [&Mask::none(), &key_lengths(c)?];
    let pass = Pass::Evaluation { seed: SEED() };
    let decoded = layer.apply(x.leaky_trace(), memory.leaky_trace(), masks, pass)?;
    let inputs = [("x", &x), ("memory", &memory)];
    record(c, DECODER, &layer, &inputs, decoded.output)
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
        normalised: c.setting("normalise")?,
        dropout: 0.0,
        epsilon: c.number("ln_eps")?,
    };
    let mut block = Block::try_new(&Cpu::default(), &config, SEED())?;
    read(c, DATAPOINTS, &mut block)?;
    let (h, pass) = (sequences(h), Pass::Evaluation { seed: SEED() });
    let output = block.apply(h.leaky_trace(), pass)?.output;
    record(c, DATAPOINTS, &block, &[("h", &h)], output)
}
