//! The columns of a table that matter, by automatic relevance determination: one lengthscale for each column.
//!
//! `cargo run --release --package bochner-gp --example relevant_columns FILE`
//!
//! The first line of the file names the columns, and the last column is the target.

#![allow(clippy::print_stdout)]

use bochner_datasets::{TableConfig, table};
use bochner_gp::ndarray::{Array1, Array2, Axis, s};
use bochner_gp::{FitConfig, ard_process};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name a file")?;
    let read = table::parse(&file, &std::fs::read(&file)?, &TableConfig::default())?;
    let shape = (read.table.rows(), read.table.columns());
    let values = Array2::from_shape_vec(shape, read.table.values().to_vec())?;
    let (x, y) = values.view().split_at(Axis(1), shape.1 - 1);
    let y: Array1<f64> = y.slice(s![.., 0]).to_owned();

    let mut process = ard_process(x, y.view())?;
    let start = Instant::now();
    let fit = process.fit(x, y.view(), &FitConfig::default())?;
    println!("{fit}, {:.2} s", start.elapsed().as_secs_f64());

    // One over the lengthscale in standard deviations of the column: the larger, the more the column matters.
    let parameters = process.parameters();
    let lengthscales = parameters.iter().filter(|p| p.name.contains("lengthscale"));
    let columns = x.axis_iter(Axis(1)).zip(&read.names).zip(lengthscales);
    let mut relevances: Vec<(f64, &str)> = columns
        .map(|((column, name), lengthscale)| (column.std(0.0) / lengthscale.value, name.as_str()))
        .collect();
    relevances.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (relevance, name) in relevances {
        println!("  {name:<12} {relevance:.4}");
    }
    Ok(())
}
