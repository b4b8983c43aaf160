//! A sparse process of fifty thousand generated rows: a fit, predictions with error bars, and a file.
//!
//! `cargo run --release --package bochner-gp --example fifty_thousand_rows [FILE]`
//!
//! With a file of `gp_sparse.py` in `crates/bench/peers`, its rows are fitted, with its inducing points.

#![allow(clippy::print_stdout)]

use bochner_datasets::{Header, TableConfig, table};
use bochner_gp::ndarray::{Array1, Array2, s};
use bochner_gp::rand::Rng;
use bochner_gp::{FitConfig, SparsePosterior, SparseProcess, ard_process, inducing_points};
use bochner_numerics::{Seed, standard_normal};
use std::error::Error;
use std::time::Instant;

const INPUTS: usize = 4;
const ROWS: usize = 50_000;
const TESTED: usize = 2_000;
const INDUCING: usize = 200;

/// Inputs, targets and their values without noise.
type Rows = (Array2<f64>, Array1<f64>, Array1<f64>);

/// Rows of four inputs, of which two count, and targets with noise of standard deviation 0.1.
fn rows(count: usize, seed: u64) -> Rows {
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

/// The rows of a file: those that are fitted, and those behind them.
fn read(file: &str) -> Result<[Rows; 2], Box<dyn Error>> {
    let config = TableConfig {
        header: Header::None,
        ..TableConfig::default()
    };
    let table = table::parse(file, &std::fs::read(file)?, &config)?.table;
    let shape = (table.rows(), table.columns());
    let values = Array2::from_shape_vec(shape, table.values().to_vec())?;
    let part = |rows: std::ops::Range<usize>| {
        let column = |n: usize| values.slice(s![rows.clone(), n]).to_owned();
        let x = values.slice(s![rows.clone(), ..INPUTS]).to_owned();
        (x, column(INPUTS), column(INPUTS + 1))
    };
    let fitted = shape.0.saturating_sub(TESTED);
    Ok([part(0..fitted), part(fitted..shape.0)])
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let ([(x, y, _), (at, seen, truth)], fixed) = match &file {
        Some(file) => (read(file)?, vec!["inducing".to_owned()]),
        None => ([rows(ROWS, 1), rows(TESTED, 2)], Vec::new()),
    };
    let inducing = match file {
        Some(_) => x.slice(s![..INDUCING, ..]).to_owned(),
        None => inducing_points(x.view(), INDUCING, Seed::new(1))?,
    };
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
        fixed,
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
    let predicted = read.predict(at.view())?;
    let rms = |off: Array1<f64>| (off.mapv(|o| o * o).sum() / off.len() as f64).sqrt();
    println!(
        "saved: {} bytes; error {:.6}, against observations {:.6}",
        text.len(),
        rms(&predicted.mean - &truth),
        rms(&predicted.mean - &seen)
    );
    let standard = (&predicted.mean - &seen) / predicted.observed_variance.mapv(f64::sqrt);
    println!("standardised error of observations: {:.3}", rms(standard));
    Ok(())
}
