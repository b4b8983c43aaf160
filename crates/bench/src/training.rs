//! Training steps of a small Transformer encoder: forward, backward, Adam.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{self as attention, Mask, Softmax};
use bochner_models::encoder::{Encoder, EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::{Adam, alloc_gradients, mean_squared_error, zero_gradients};
use bochner_numerics::{Seed, standard_normal};
use bochner_ops::{AdamConfig, Rows};
use dfdx::tensor::{Cpu, TensorFromVec, Trace};
use dfdx::tensor_ops::Backward;
use ndarray::Array3;

/// `(B, T, width, heads, hidden, layers)`
const SHAPE: [usize; 6] = [32, 64, 128, 8, 256, 2];

/// The encoder without and with dropout.
pub(crate) fn workloads() -> Vec<Workload> {
    let kinds = [("encoder-step", 0.0), ("encoder-step-dropout", 0.1)];
    let of = |(name, dropout)| {
        let start = move || start(dropout);
        Workload::new(name, SHAPE, vec![pass()], start).with("dropout", dropout)
    };
    kinds.map(of).into()
}

fn pass() -> Pass {
    let [batch, time, width, _, hidden, layers] = SHAPE;
    let rows = batch * time;
    let maps = 4 * width * width + 2 * width * hidden;
    // Adam reads the gradient, the moments and the value of each parameter, and writes the last three.
    let bytes = 4.0 * (7 * layers * maps + rows * width) as f64;
    Pass::new("step", bytes)
}

fn start(dropout: f64) -> Result<Vec<Run>, Error> {
    let [batch, time, width, heads, hidden, layers] = SHAPE;
    let layer = EncoderLayerConfig {
        width,
        heads,
        hidden,
        attention: Softmax::default().into(),
        dropout,
        norm: NormPlacement::Post,
        ..Default::default()
    };
    let (device, config) = (Cpu::default(), EncoderConfig::new(layers, layer));
    let mut stream = Seed::new(2).stream("data");
    let mut random = || -> Array3<f32> {
        Array3::from_shape_simple_fn((batch, time, width), || standard_normal(&mut stream))
    };
    let (x, target) = (random(), random().into_shared());
    let x = device.tensor_from_vec(x.into_iter().collect(), (batch, time, width));
    let mut model: Encoder<f32> = Encoder::try_new(&device, &config, Seed::new(1))?;
    let mut adam = Adam::new(AdamConfig::default())?;
    let mut kept = Some(alloc_gradients(&model)?);
    Ok(vec![Box::new(move || {
        let gradients = kept.take().ok_or("a step has failed")?;
        let pass = attention::Pass::Training {
            seed: Seed::new(1).nth(adam.state().steps),
            dropout,
        };
        let y = model.apply(x.trace(gradients), &Mask::none(), pass)?;
        let loss = mean_squared_error(y.output, target.clone(), Rows::All)? + y.penalty;
        let mut gradients = loss.backward();
        adam.step(&mut model, &mut gradients)?;
        zero_gradients(&model, &mut gradients)?;
        kept = Some(gradients);
        Ok(())
    })])
}
