//! `encoder_layer`, `sinusoidal_positions`: the blocks of a Transformer.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{Mask, Pass, Softmax};
use bochner_models::dfdx::prelude::{Backward, SumTo, Trace};
use bochner_models::dfdx::tensor::{Cpu, Tensor, TensorFromVec};
use bochner_models::dfdx::tensor_ops::Device;
use bochner_models::encoder::{EncoderLayer, EncoderLayerConfig, NormPlacement};
use bochner_models::positions::sinusoidal_positions;
use bochner_nn::{Element, Parameters};
use bochner_numerics::{Real, Seed};
use ndarray::{Array2, Array3, ArrayD, IxDyn};

/// The parameters of a layer: their names in a file, and in the layer.
const NAMES: [[&str; 2]; 16] = [
    ["self.wq", "attention.query.weight"],
    ["self.bq", "attention.query.bias"],
    ["self.wk", "attention.key.weight"],
    ["self.bk", "attention.key.bias"],
    ["self.wv", "attention.value.weight"],
    ["self.bv", "attention.value.bias"],
    ["self.wo", "attention.output.weight"],
    ["self.bo", "attention.output.bias"],
    ["ln1_gain", "attention_norm.gamma"],
    ["ln1_bias", "attention_norm.beta"],
    ["w1", "feed_forward.first.weight"],
    ["b1", "feed_forward.first.bias"],
    ["w2", "feed_forward.second.weight"],
    ["b2", "feed_forward.second.bias"],
    ["ln2_gain", "feed_forward_norm.gamma"],
    ["ln2_bias", "feed_forward_norm.beta"],
];

/// The name in a file of a layer's parameter.
fn in_file(name: &str) -> &'static str {
    let entry = NAMES.iter().find(|[_, ours]| *ours == name);
    entry.map_or("a parameter that no file has", |[theirs, _]| theirs)
}

/// A layer with softmax attention and the parameters of the file.
pub(super) fn layer<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let x: Array3<T> = file.array("x")?;
    let (batch, time, width) = x.dim();
    let hidden: Array2<T> = file.array("w1")?;
    file.choice("activation", &["relu"])?;
    let config = EncoderLayerConfig {
        width,
        heads: file.count("heads")?,
        hidden: hidden.nrows(),
        attention: Softmax {}.into(),
        dropout: 0.0,
        norm: match file.choice("norm", &["pre", "post"])? {
            "pre" => NormPlacement::Pre,
            _ => NormPlacement::Post,
        },
    };
    let (device, seed) = (Cpu::default(), Seed::new(0));
    let mut layer = EncoderLayer::try_new(&device, &config, seed).map_err(Fault::refused)?;
    layer.attention_norm.epsilon = file.number("ln_eps")?;
    layer.feed_forward_norm.epsilon = layer.attention_norm.epsilon;
    let mut read = Ok(());
    layer.for_each_mut("", &mut |name, parameter| {
        let given = file.floats::<T>(in_file(name)).and_then(|given| {
            if given.shape() == parameter.dims() {
                return Ok(given);
            }
            Err(Fault::Shape {
                tensor: format!("in.{}", in_file(name)),
                expected: format!("{:?}", parameter.dims()),
                got: given.shape().to_vec(),
            })
        });
        match given {
            Ok(given) => parameter.write(&given.iter().copied().collect::<Vec<_>>()),
            Err(fault) => read = Err(fault),
        }
    });
    read?;
    let mask = match file.choice("mask", &["none", "lengths"])? {
        "lengths" => Mask::none().with_key_lengths(file.lengths("lengths")?),
        _ => Mask::none(),
    };
    let x: Tensor<_, T, Cpu> =
        device.tensor_from_vec(x.into_iter().collect(), (batch, time, width));
    let encoded = layer.apply(x.leaky_trace(), &mask, Pass::Evaluation { seed });
    let encoded = encoded.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output(
        "output",
        &array(&[batch, time, width], encoded.output.as_vec()),
    );
    let Some(cotangent) = file.cotangent::<T>()? else {
        return Ok(computed);
    };
    let cotangent = device.tensor_from_vec(cotangent.into_iter().collect(), (batch, time, width));
    let mut gradients = (encoded.output * cotangent).sum().backward();
    computed.gradient(
        "x",
        &array(&[batch, time, width], gradients.get(&x).as_vec()),
    );
    let mut found = Ok(());
    layer.for_each(
        "",
        &mut |name, parameter| match parameter.gradient(&mut gradients) {
            Ok(gradient) => {
                let gradient = array(&parameter.dims(), gradient.to_vec());
                computed.gradient(in_file(name), &gradient);
            }
            Err(error) => found = Err(Fault::refused(error)),
        },
    );
    found.map(|()| computed)
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
