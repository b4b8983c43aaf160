//! Fifty years of carbon dioxide at Mauna Loa by the classic sum of four kernels, in years and in days.
//!
//! `BOCHNER_DATA=.. cargo run --release --package bochner-gp --example carbon_dioxide`

#![allow(clippy::print_stdout)]

use bochner_datasets::regression::co2;
use bochner_gp::ndarray::{Array1, Array2};
use bochner_gp::{FitConfig, seasonal_process};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// The dates in years, as a column, and the mole fractions in parts per million.
fn months() -> Result<(Array2<f64>, Array1<f64>), Box<dyn Error>> {
    let data = std::env::var_os("BOCHNER_DATA").ok_or("BOCHNER_DATA names the data directory")?;
    let path = PathBuf::from(data).join("co2").join(co2::FILE);
    let months = co2::parse(co2::FILE, &std::fs::read(path)?)?;
    let measured = months
        .iter()
        .filter_map(|month| Some((month.date, month.ppm?)));
    let (years, ppm): (Vec<f64>, Vec<f64>) = measured.unzip();
    let years = Array2::from_shape_vec((years.len(), 1), years)?;
    Ok((years, ppm.into()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (years, ppm) = months()?;
    let config = FitConfig {
        fixed: vec!["mean".to_owned()],
        ..FitConfig::default()
    };
    for (unit, days) in [("years", 1.0), ("days", 365.25)] {
        let x = &years * days;
        let mut process = seasonal_process(x.view(), ppm.view(), days)?;
        let start = Instant::now();
        process.evidence_gradient(x.view(), ppm.view())?;
        let once = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let fit = process.fit(x.view(), ppm.view(), &config)?;
        let seconds = start.elapsed().as_secs_f64();
        let evaluations: usize = fit.starts.iter().flatten().map(|s| s.evaluations).sum();
        println!("{unit}: {fit}");
        println!(
            "{once:.3} s an evaluation at the start, {evaluations} evaluations in {seconds:.2} s"
        );
        for parameter in process.parameters() {
            println!("  {:<32} {:.6}", parameter.name, parameter.value);
        }
    }
    Ok(())
}
