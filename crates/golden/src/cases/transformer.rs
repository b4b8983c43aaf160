//! `encoder_layer`, `decoder_layer`, `npt_block`, `sinusoidal_positions`: the blocks of Transformers.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{Mask, Pass, Softmax};
use bochner_models::datapoints::{Between, Block, BlockConfig, Normalised};
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_models::dfdx::prelude::{Backward, HasShape, SumTo, Trace};
use bochner_models::dfdx::tensor::{Cpu, NoneTape, OwnedTape, Tensor, TensorFromVec};
use bochner_models::dfdx::tensor_ops::Device;
use bochner_models::encoder::{EncoderLayer, EncoderLayerConfig, NormPlacement};
use bochner_models::positions::sinusoidal_positions;
use bochner_nn::{Element, Parameters};
use bochner_numerics::{Real, Seed};
use ndarray::{Array2, Array3, ArrayD, Ix3, IxDyn};

/// The parameters of an attention: their names in a file, and in the layer.
const MAPS: &[[&str; 2]] = &[
    ["wq", "query.weight"],
    ["bq", "query.bias"],
    ["wk", "key.weight"],
    ["bk", "key.bias"],
    ["wv", "value.weight"],
    ["bv", "value.bias"],
    ["wo", "output.weight"],
    ["bo", "output.bias"],
];

/// The other parameters of a layer but its norms.
const OTHERS: &[[&str; 2]] = &[
    ["w1", "feed_forward.first.weight"],
    ["b1", "feed_forward.first.bias"],
    ["w2", "feed_forward.second.weight"],
    ["b2", "feed_forward.second.bias"],
    ["w_res", "residual.weight"],
    ["b_res", "residual.bias"],
];

/// How files of one kind name the parameters of a layer.
struct Naming {
    /// What stands before the names of the attention to its own sequence.
    own: &'static str,
    /// The norms, in the order of their numbers in a file.
    norms: &'static [&'static str],
    /// The number of the first norm.
    first: usize,
}

const ENCODER: Naming = Naming {
    own: "self.",
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
    own: "",
    first: 0,
    ..ENCODER
};

impl Naming {
    /// The name in a file of a layer's parameter.
    fn in_file(&self, name: &str) -> String {
        let theirs = |all: &[[&'static str; 2]], name| {
            let found = all.iter().find(|[_, ours]| *ours == name);
            found.map(|[theirs, _]| *theirs)
        };
        if let Some(theirs) = theirs(OTHERS, name) {
            return theirs.to_owned();
        }
        for (ours, before) in [("attention.", self.own), ("cross_attention.", "cross.")] {
            if let Some(map) = name.strip_prefix(ours).and_then(|map| theirs(MAPS, map)) {
                return format!("{before}{map}");
            }
        }
        let (norm, part) = name.rsplit_once('.').unwrap_or((name, ""));
        let before = self.norms.iter().take_while(|ours| **ours != norm).count();
        let part = if part == "gamma" { "gain" } else { "bias" };
        format!("ln{}_{part}", self.first + before)
    }
}

/// Reads the parameters of a layer from a file.
fn read_parameters<T: Element>(
    layer: &mut impl Parameters<T>,
    file: &CaseFile,
    naming: &Naming,
) -> Result<(), Fault> {
    let mut read = Ok(());
    layer.for_each_mut("", &mut |name, parameter| {
        let name = naming.in_file(name);
        let given = file.floats::<T>(&name).and_then(|given| {
            if given.shape() == parameter.dims() {
                return Ok(given);
            }
            Err(Fault::Shape {
                tensor: format!("in.{name}"),
                expected: format!("{:?}", parameter.dims()),
                got: given.shape().to_vec(),
            })
        });
        match given {
            Ok(given) => parameter.write(&given.iter().copied().collect::<Vec<_>>()),
            Err(fault) => read = Err(fault),
        }
    });
    read
}

/// A batch of sequences, `[B, T, D]`.
pub(super) type Sequences<T, R = NoneTape> = Tensor<(usize, usize, usize), T, Cpu, R>;

pub(super) fn sequences<T: Element>(x: Array3<T>) -> Sequences<T>
where
    Cpu: Device<T>,
{
    let shape = x.dim();
    Cpu::default().tensor_from_vec(x.into_iter().collect(), shape)
}

/// The output of a layer, and the gradients along the sequences that it reads and its parameters.
fn results<T: Element>(
    file: &CaseFile,
    layer: &impl Parameters<T>,
    naming: &Naming,
    read: &[(&str, &Sequences<T>)],
    output: Sequences<T, OwnedTape<T, Cpu>>,
) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let mut computed = Computed::default();
    let (batch, time, width) = *output.shape();
    computed.output("output", &array(&[batch, time, width], output.as_vec()));
    let Some(cotangent) = file.ranked_cotangent::<T, Ix3>()? else {
        return Ok(computed);
    };
    let mut gradients = (output * sequences(cotangent)).sum().backward();
    for (name, x) in read {
        let (batch, time, width) = *x.shape();
        let gradient = gradients.get(*x).as_vec();
        computed.gradient(name, &array(&[batch, time, width], gradient));
    }
    let mut found = Ok(());
    layer.for_each(
        "",
        &mut |name, parameter| match parameter.gradient(&mut gradients) {
            Ok(gradient) => {
                let gradient = array(&parameter.dims(), gradient.to_vec());
                computed.gradient(&naming.in_file(name), &gradient);
            }
            Err(error) => found = Err(Fault::refused(error)),
        },
    );
    found.map(|()| computed)
}

fn mask(file: &CaseFile) -> Result<Mask, Fault> {
    Ok(match file.choice("mask", &["none", "lengths"])? {
        "lengths" => Mask::none().with_key_lengths(file.lengths("lengths")?),
        _ => Mask::none(),
    })
}

/// An encoder's layer with softmax attention and the parameters of the file.
pub(super) fn layer<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let x: Array3<T> = file.array("x")?;
    let hidden: Array2<T> = file.array("w1")?;
    file.choice("activation", &["relu"])?;
    let config = EncoderLayerConfig {
        width: x.dim().2,
        heads: file.count("heads")?,
        hidden: hidden.nrows(),
        attention: Softmax::default().into(),
        dropout: 0.0,
        norm: match file.choice("norm", &["pre", "post"])? {
            "pre" => NormPlacement::Pre,
            _ => NormPlacement::Post,
        },
        ..Default::default()
    };
    let (naming, seed) = (&ENCODER, Seed::new(0));
    let layer = EncoderLayer::try_new(&Cpu::default(), &config, seed);
    let mut layer = layer.map_err(Fault::refused)?;
    layer.attention_norm.epsilon = file.number("ln_eps")?;
    layer.feed_forward_norm.epsilon = layer.attention_norm.epsilon;
    read_parameters(&mut layer, file, naming)?;
    let x = sequences(x);
    let encoded = layer.apply(x.leaky_trace(), &mask(file)?, Pass::Evaluation { seed });
    let encoded = encoded.map_err(Fault::refused)?;
    results(file, &layer, naming, &[("x", &x)], encoded.output)
}

/// A decoder's layer with softmax attention and the parameters of the file.
pub(super) fn decoder_layer<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let [x, memory]: [Array3<T>; 2] = [file.array("x")?, file.array("memory")?];
    let hidden: Array2<T> = file.array("w1")?;
    file.choice("activation", &["relu"])?;
    file.choice("norm", &["pre"])?;
    let config = DecoderLayerConfig {
        width: x.dim().2,
        heads: file.count("heads")?,
        hidden: hidden.nrows(),
        attention: Softmax::default().into(),
        cross_attention: Softmax::default().into(),
        dropout: 0.0,
        ..Default::default()
    };
    let (naming, seed) = (&DECODER, Seed::new(0));
    let layer = DecoderLayer::try_new(&Cpu::default(), &config, seed);
    let mut layer = layer.map_err(Fault::refused)?;
    for norm in [
        &mut layer.attention_norm,
        &mut layer.cross_attention_norm,
        &mut layer.feed_forward_norm,
    ] {
        norm.epsilon = file.number("ln_eps")?;
    }
    read_parameters(&mut layer, file, naming)?;
    let [x, memory] = [x, memory].map(sequences);
    let masks = [&Mask::none(), &mask(file)?];
    let pass = Pass::Evaluation { seed };
    let decoded = layer.apply(x.leaky_trace(), memory.leaky_trace(), masks, pass);
    let decoded = decoded.map_err(Fault::refused)?;
    let read = [("x", &x), ("memory", &memory)];
    results(file, &layer, naming, &read, decoded.output)
}

/// A block of attention between rows or between columns, with the parameters of the file.
pub(super) fn npt_block<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let h: Array3<T> = file.array("h")?;
    let (_, columns, width) = h.dim();
    let config = BlockConfig {
        columns,
        width,
        heads: file.count("heads")?,
        between: match file.choice("block", &["abd", "aba"])? {
            "abd" => Between::Datapoints,
            _ => Between::Attributes,
        },
        attention: None,
        normalised: match file.choice("normalise", &["all", "queries"])? {
            "all" => Normalised::All,
            _ => Normalised::Queries,
        },
        dropout: 0.0,
        epsilon: file.number("ln_eps")?,
    };
    let (naming, seed) = (&DATAPOINTS, Seed::new(0));
    let block = Block::try_new(&Cpu::default(), &config, seed);
    let mut block = block.map_err(Fault::refused)?;
    read_parameters(&mut block, file, naming)?;
    let h = sequences(h);
    let output = block.apply(h.leaky_trace(), Pass::Evaluation { seed });
    let output = output.map_err(Fault::refused)?.output;
    results(file, &block, naming, &[("h", &h)], output)
}

fn array<T>(shape: &[usize], values: Vec<T>) -> ArrayD<T> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values as the shape holds")
}

/// The encoding of some positions.
pub(super) fn positions<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (positions, width) = (file.lengths("positions")?, file.count("d")?);
    let encoded = sinusoidal_positions::<T>(&positions, width, file.number("base")?);
    let mut computed = Computed::default();
    computed.output("encoding", &encoded.map_err(Fault::refused)?);
    Ok(computed)
}
