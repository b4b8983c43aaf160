//! Times one training step of small Transformer encoders in single precision.
//!
//! `cargo run --release -p bochner-models --example training_step [case] [steps]`

use bochner_attention::{IkanDirect, Pass, Softmax, Variant};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::encoder::{Encoder, EncoderConfig, EncoderLayerConfig};
use bochner_nn::{
    Adam, AdamConfig, Parameters, Rows, alloc_gradients, cross_entropy, mean_squared_error,
    zero_gradients,
};
use bochner_numerics::{Seed, standard_normal};
use dfdx::prelude::*;
use rand::Rng;
use std::error::Error;
use std::time::Instant;

/// Median and minimum milliseconds of a step.
type Times = Result<[f64; 2], Box<dyn Error>>;
type Recorded = Tensor<(), f32, Cpu, OwnedTape<f32, Cpu>>;

/// Forward, backward and Adam.
struct Training<M, L> {
    model: M,
    loss: L,
    adam: Adam<f32>,
    gradients: Option<Gradients<f32, Cpu>>,
    step: u64,
    dropout: f64,
}

impl<M, L> Training<M, L>
where
    M: Parameters<f32>,
    L: Fn(&M, Gradients<f32, Cpu>, Pass) -> Result<Recorded, Box<dyn Error>>,
{
    fn new(model: M, loss: L, dropout: f64) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            gradients: Some(alloc_gradients(&model)?),
            adam: Adam::new(AdamConfig::default())?,
            model,
            loss,
            step: 0,
            dropout,
        })
    }

    fn step(&mut self) -> Result<(), Box<dyn Error>> {
        let pass = Pass::Training {
            seed: Seed::new(1).nth(self.step),
            dropout: self.dropout,
        };
        let gradients = self.gradients.take().expect("the last step succeeded");
        let loss = (self.loss)(&self.model, gradients, pass)?;
        let mut gradients = loss.backward();
        self.adam.step(&mut self.model, &mut gradients)?;
        zero_gradients(&self.model, &mut gradients)?;
        self.gradients = Some(gradients);
        self.step += 1;
        Ok(())
    }

    fn time(mut self, steps: usize) -> Times {
        for _ in 0..2 {
            self.step()?;
        }
        let mut times = Vec::new();
        for _ in 0..steps {
            let start = Instant::now();
            self.step()?;
            times.push(1e3 * start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok([times[steps / 2], times[0]])
    }
}

fn layer(
    [width, heads, hidden]: [usize; 3],
    attention: Variant,
    dropout: f64,
) -> EncoderLayerConfig {
    EncoderLayerConfig {
        width,
        heads,
        hidden,
        attention,
        dropout,
    }
}

fn encoder(dropout: f64, steps: usize) -> Times {
    let (batch, time, width) = (32, 64, 128);
    let config = EncoderConfig {
        layers: 2,
        layer: layer([width, 8, 256], Softmax {}.into(), dropout),
    };
    let device = Cpu::default();
    let mut stream = Seed::new(2).stream("data");
    let mut random = || -> Tensor<(usize, usize, usize), f32, Cpu> {
        let values = (0..batch * time * width).map(|_| standard_normal(&mut stream));
        device.tensor_from_vec(values.collect(), (batch, time, width))
    };
    let (x, target) = (random(), random());
    let model: Encoder<f32> = Encoder::try_new(&device, &config, Seed::new(1))?;
    let mask = bochner_attention::Mask::none();
    let loss = move |model: &Encoder<f32>, gradients, pass| {
        let y = model.apply(x.trace(gradients), &mask, pass)?;
        Ok(mean_squared_error(y.output, target.clone(), Rows::All)? + y.penalty)
    };
    Training::new(model, loss, dropout)?.time(steps)
}

fn text(attention: Variant, dropout: f64, steps: usize) -> Times {
    let (batch, time, words, classes) = (32, 56, 18_000, 2);
    let config = TextClassifierConfig {
        words,
        classes,
        encoder: EncoderConfig {
            layers: 1,
            layer: layer([256, 8, 512], attention, dropout),
        },
    };
    let device = Cpu::default();
    let mut stream = Seed::new(2).stream("data");
    let sentences: Vec<usize> = (0..batch * time)
        .map(|_| stream.gen_range(0..words))
        .collect();
    let labels: Vec<usize> = (0..batch).map(|_| stream.gen_range(0..classes)).collect();
    let sentences: Tensor<(usize, usize), usize, Cpu> =
        device.tensor_from_vec(sentences, (batch, time));
    let model: TextClassifier<f32> = TextClassifier::try_new(&device, &config, Seed::new(1))?;
    let loss = move |model: &TextClassifier<f32>, gradients, pass| {
        let y = model.apply(sentences.trace(gradients), None, pass)?;
        Ok(cross_entropy(y.output, &labels)? + y.penalty)
    };
    Training::new(model, loss, dropout)?.time(steps)
}

fn main() -> Result<(), Box<dyn Error>> {
    bochner_numerics::memory::keep_freed_memory();
    let chosen = std::env::args().nth(1).unwrap_or_default();
    let steps = std::env::args().nth(2).map_or(Ok(20), |n| n.parse())?;
    let ikan = IkanDirect {
        p: 1.5,
        points: 64,
        ..Default::default()
    };
    for dropout in [0.0, 0.1] {
        let cases: [(&str, &dyn Fn() -> Times); 3] = [
            ("encoder", &|| encoder(dropout, steps)),
            ("text_softmax", &|| text(Softmax {}.into(), dropout, steps)),
            ("text_ikan", &|| text(ikan.clone().into(), dropout, steps)),
        ];
        for (name, run) in cases {
            let name = format!("{name}_{dropout}");
            if name.starts_with(&chosen) {
                let [median, minimum] = run()?;
                println!("{name}: {median:.2} ms a step (fastest {minimum:.2} ms)");
            }
        }
    }
    Ok(())
}
