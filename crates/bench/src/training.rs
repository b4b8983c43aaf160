//! Training steps of small Transformer encoders: forward, backward, Adam.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{self as attention, IkanDirect, Mask, Softmax, Variant};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::encoder::{Encoder, EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::{
    Adam, Parameters, alloc_gradients, cross_entropy, mean_squared_error, zero_gradients,
};
use bochner_numerics::{Seed, standard_normal};
use bochner_ops::{AdamConfig, Rows};
use dfdx::tensor::{Cpu, Gradients, OwnedTape, Tensor, TensorFromVec, Trace};
use dfdx::tensor_ops::Backward;
use ndarray::Array3;
use rand::Rng;

/// Encoders, `(B, T, width, heads, hidden, layers)`, and text classifiers, which also have `words`
/// and `classes`, without and with dropout.
pub(crate) fn workloads() -> Vec<Workload> {
    let encoder = [32, 64, 128, 8, 256, 2];
    let text = [32, 56, 256, 8, 512, 1, 18_000, 2];
    let ikan = IkanDirect {
        p: 1.5,
        points: 64,
        ..Default::default()
    };
    let ikan = Variant::from(ikan);
    let softmax = Variant::from(Softmax::default());
    let (encoder, text) = (&encoder[..], &text[..]);
    let kinds = [
        ("encoder-step", &softmax, encoder, 0.0),
        ("encoder-step-dropout", &softmax, encoder, 0.1),
        ("text-softmax-step", &softmax, text, 0.0),
        ("text-softmax-step-dropout", &softmax, text, 0.1),
        ("text-ikan-step", &ikan, text, 0.0),
        ("text-ikan-step-dropout", &ikan, text, 0.1),
    ];
    let of = |(name, attention, shape, dropout): (_, &Variant, &[usize], _)| {
        let passes = vec![pass(attention, shape)];
        let (attention, sizes) = (attention.clone(), shape.to_vec());
        let start = move || start(&sizes, attention.clone(), dropout);
        Workload::new(name, shape, passes, start).with("dropout", dropout)
    };
    kinds.map(of).into()
}

/// Three times the products of the forward pass, and for attention what the backward pass recomputes.
fn pass(attention: &Variant, shape: &[usize]) -> Pass {
    let [batch, time, width, heads, hidden, layers] = shape[..6] else {
        unreachable!("six sizes")
    };
    let (rows, head) = (batch * time, width / heads);
    let maps = 4 * width * width + 2 * width * hidden;
    let (factor, features) = match attention.card().points {
        None => (head, 0),
        Some(points) => (2 * points, 4 * points * width),
    };
    let pairs = time * heads * (4 * factor + 3 * head);
    let parameters = layers * maps + shape.get(6).map_or(0, |words| words * width);
    let operations = 2.0 * (rows * layers * (3 * (maps + features) + pairs)) as f64;
    // Adam reads the gradient, the moments and the value of each parameter, and writes the last three.
    let bytes = 4.0 * (7 * parameters + rows * width) as f64;
    Pass::new("step", operations, bytes)
}

fn start(shape: &[usize], attention: Variant, dropout: f64) -> Result<Vec<Run>, Error> {
    let [batch, time, width, heads, hidden, layers] = shape[..6] else {
        unreachable!("six sizes")
    };
    let layer = EncoderLayerConfig {
        width,
        heads,
        hidden,
        attention,
        dropout,
        norm: NormPlacement::Post,
        ..Default::default()
    };
    let encoder = EncoderConfig::new(layers, layer);
    let device = Cpu::default();
    let mut stream = Seed::new(2).stream("data");
    let run = match shape[6..] {
        [words, classes] => {
            let config = TextClassifierConfig {
                words,
                classes,
                encoder,
                embedding: Default::default(),
                vocabulary: None,
                class_names: Vec::new(),
            };
            let tokens = (0..batch * time).map(|_| stream.gen_range(0..words));
            let tokens: Vec<usize> = tokens.collect();
            let tokens: Tensor<(usize, usize), usize, Cpu> =
                device.tensor_from_vec(tokens, (batch, time));
            let labels: Vec<usize> = (0..batch).map(|_| stream.gen_range(0..classes)).collect();
            let model: TextClassifier<f32> =
                TextClassifier::try_new(&device, &config, Seed::new(1))?;
            let loss = move |model: &TextClassifier<f32>, gradients, pass| {
                let y = model.apply(tokens.trace(gradients), None, pass)?;
                Ok(cross_entropy(y.output, &labels)? + y.penalty)
            };
            training(model, loss, dropout)?
        }
        _ => {
            let dims = (batch, time, width);
            let mut random = || -> Array3<f32> {
                Array3::from_shape_simple_fn(dims, || standard_normal(&mut stream))
            };
            let (x, target) = (random(), random().into_shared());
            let x = device.tensor_from_vec(x.into_iter().collect(), dims);
            let model: Encoder<f32> = Encoder::try_new(&device, &encoder, Seed::new(1))?;
            let mask = Mask::none();
            let loss = move |model: &Encoder<f32>, gradients, pass| {
                let y = model.apply(x.trace(gradients), &mask, pass)?;
                Ok(mean_squared_error(y.output, target.clone(), Rows::All)? + y.penalty)
            };
            training(model, loss, dropout)?
        }
    };
    Ok(vec![run])
}

type Loss = Tensor<(), f32, Cpu, OwnedTape<f32, Cpu>>;

/// One step after the other.
fn training<M: Parameters<f32> + 'static>(
    mut model: M,
    loss: impl Fn(&M, Gradients<f32, Cpu>, attention::Pass) -> Result<Loss, Error> + 'static,
    dropout: f64,
) -> Result<Run, Error> {
    let mut adam = Adam::new(AdamConfig::default())?;
    let mut kept = Some(alloc_gradients(&model)?);
    Ok(Box::new(move || {
        let gradients = match kept.take() {
            Some(gradients) => gradients,
            None => alloc_gradients(&model)?,
        };
        let pass = attention::Pass::Training {
            seed: Seed::new(1).nth(adam.state().steps),
            dropout,
        };
        let mut gradients = loss(&model, gradients, pass)?.backward();
        adam.step(&mut model, &mut gradients)?;
        zero_gradients(&model, &mut gradients)?;
        kept = Some(gradients);
        Ok(())
    }))
}
