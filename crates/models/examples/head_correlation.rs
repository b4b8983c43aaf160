//! The dependence that MIKAN learns between its heads, on the airline passengers, fold 0.
//!
//! `cargo run --release --package bochner-models --example head_correlation`

#![allow(clippy::print_stdout)]

use bochner_attention::Mikan;
use bochner_datasets::{DataStore, Policy, Protocol, RegressionSet, Rows, load};
use bochner_models::ndarray::{Array2, Array3};
use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let store = DataStore::new(Policy::Offline);
    let data = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store)?;
    let shape = (data.inputs.rows(), data.inputs.columns());
    let task = Task::new(
        Array2::from_shape_fn(shape, |(i, j)| data.inputs.row(i)[j] as f32),
        data.target.iter().map(|&y| y as f32).collect(),
        data.splits[0].train.clone(),
    )?;
    let mikan = Mikan {
        p: 3.0,
        points: 32,
        ..Default::default()
    };
    let config = RegressorConfig::new(1, mikan.into());
    let mut trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(0))?;

    println!("epoch  mean |r|  largest |r|   (over pairs of heads and latent dimensions)");
    for epoch in 0..=500 {
        if epoch % 100 == 0 {
            let correlation = trainer.inspect()?.correlation.ok_or("MIKAN has a copula")?;
            let (mean, largest) = off_diagonal(&correlation);
            println!("{epoch:5}  {mean:8.4}  {largest:11.4}");
        }
        trainer.epoch()?;
    }
    Ok(())
}

/// Mean and largest absolute value off the diagonals.
fn off_diagonal(correlation: &Array3<f32>) -> (f32, f32) {
    let values: Vec<f32> = correlation
        .indexed_iter()
        .filter(|((_, i, j), _)| i != j)
        .map(|(_, r)| r.abs())
        .collect();
    let largest = values.iter().copied().fold(0.0, f32::max);
    (values.iter().sum::<f32>() / values.len() as f32, largest)
}
