//! A sparse process of fifty thousand generated rows: a fit, predictions with error bars, and a file.
//!
//! `cargo run --release --package bochner-gp --example fifty_thousand_rows`

#![allow(clippy::print_stdout)]

use bochner_gp::ndarray::{Array1, Array2};
use bochner_gp::rand::Rng;
use bochner_gp::{FitConfig, SparsePosterior, SparseProcess, ard_process, inducing_points};
use bochner_numerics::{Seed, standard_normal};
use std::error::Error;
use std::time::Instant;

const INPUTS: usize = 4;

/// Rows of four inputs, of which two count, and targets with noise of standard deviation 0.1.
fn rows(count: usize, seed: u64) -> (Array2<f64>, Array1<f64>, Array1<f64>) {
    let mut stream = Seed::new(seed).stream("rows");
    let x = Array2::from_shape_simple_fn((count, INPUTS), || stream.gen_range(0.0..1.0));
    let truth: Array1<f64> = x
        .rows()
        .into_iter()
        .map(|x| f64::sin(6.0 * x[0]) + x[1] * x[1])
        .collect();
    let y = truth.mapv(|f| f + 0.1 * standard_normal::<f64>(&mut stream));
    (x, y, truth)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (x, y, _) = rows(50_000, 1);
    let inducing = inducing_points(x.view(), 200, Seed::new(1))?;
    let mut process = SparseProcess::new(ard_process(x.view(), y.view())?, inducing)?;
    let start = Instant::now();
    process.bound(x.view(), y.view())?;
    println!("bound: {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    process.bound_gradient(x.view(), y.view())?;
    println!(
        "bound with gradient: {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let config = FitConfig {
        steps: 30,
        ..FitConfig::default()
    };
    let start = Instant::now();
    let fit = process.fit(x.view(), y.view(), &config)?;
    println!("fit: {fit}, {:.1} s", start.elapsed().as_secs_f64());
    for parameter in process.process().parameters() {
        println!("  {:<28} {:.5}", parameter.name, parameter.value);
    }
    let posterior = process.condition(x.view(), y.view())?;
    let text = serde_json::to_string(&posterior)?;
    let read: SparsePosterior = serde_json::from_str(&text)?;
    let (at, seen, truth) = rows(2_000, 2);
    let predicted = read.predict(at.view())?;
    let rms = |off: Array1<f64>| (off.mapv(|o| o * o).sum() / off.len() as f64).sqrt();
    println!(
        "saved: {} bytes; error {:.4}",
        text.len(),
        rms(&predicted.mean - &truth)
    );
    let standard = (&predicted.mean - &seen) / predicted.observed_variance.mapv(f64::sqrt);
    println!("standardised error of observations: {:.3}", rms(standard));
    Ok(())
}
