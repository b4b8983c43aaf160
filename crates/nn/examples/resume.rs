//! A run that is stopped, saved and resumed ends with the bits of one that was not.
//!
//! `cargo run --package bochner-nn --example resume`

#![allow(clippy::print_stdout)]

use bochner_nn::{Adam, Checkpoint, Linear, Progress, alloc_gradients, mean_squared_error};
use bochner_numerics::{Seed, Stream, standard_normal};
use bochner_ops::{AdamConfig, Rows};
use dfdx::prelude::*;
use std::error::Error;

type Model = Linear<usize, usize, f32>;

/// Steps of training, each on a batch of its own.
fn train(
    model: &mut Model,
    adam: &mut Adam<f32>,
    batches: &mut Stream,
    steps: usize,
) -> Result<f32, Box<dyn Error>> {
    let (device, mut last) = (Cpu::default(), f32::NAN);
    for _ in 0..steps {
        let x: Vec<f32> = (0..48).map(|_| standard_normal(batches)).collect();
        let y = x.chunks(3).map(|x| x[0] - 2.0 * x[1]).collect();
        let x: Tensor<(usize, usize), f32, Cpu> = device.tensor_from_vec(x, (16, 3));
        let y = device.tensor_from_vec(y, (16, 1));
        let predicted = model.apply(x.trace(alloc_gradients(model)?))?;
        let loss = mean_squared_error(predicted, y, Rows::All)?;
        last = loss.array();
        adam.step(model, &mut loss.backward())?;
    }
    Ok(last)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut initial = Seed::new(1).stream("initial values");
    let mut model: Model = Linear::try_new(&Cpu::default(), 3, 1, &mut initial)?;
    let mut adam = Adam::new(AdamConfig {
        learning_rate: 0.05,
        ..Default::default()
    })?;
    let mut batches = Seed::new(1).stream("batches");
    println!(
        "error after  50 steps: {:e}",
        train(&mut model, &mut adam, &mut batches, 50)?
    );

    let path = std::env::temp_dir().join(format!("bochner-resume-{}", std::process::id()));
    let mut progress = Progress {
        step: 50,
        ..Default::default()
    };
    progress.streams.insert("batches".into(), batches.state());
    let run = Checkpoint::of("linear 3 to 1", &model).with_adam(&adam);
    run.with_progress(progress).write(&path)?;
    println!(
        "error after 100 steps: {:e}",
        train(&mut model, &mut adam, &mut batches, 50)?
    );

    let saved = Checkpoint::<f32>::read(&path)?;
    std::fs::remove_file(&path)?;
    let mut other: Model = Linear::try_new(&Cpu::default(), 3, 1, &mut initial)?;
    saved.restore("linear 3 to 1", &mut other)?;
    let state = saved.adam().ok_or("saved with Adam")?.clone();
    let mut adam = Adam::with_state(*adam.config(), state)?;
    let mut batches = Stream::from_state(&saved.progress().streams["batches"]);
    println!(
        "the same, resumed:     {:e}",
        train(&mut other, &mut adam, &mut batches, 50)?
    );
    assert_eq!(model.weight.as_vec(), other.weight.as_vec());
    Ok(())
}
