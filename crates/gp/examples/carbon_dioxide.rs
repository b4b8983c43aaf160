//! Fifty years of carbon dioxide at Mauna Loa by the classic sum of four kernels, in years and in days; and how far the
//! two fits are apart.
//!
//! `BOCHNER_DATA=.. cargo run --release --package bochner-gp --example carbon_dioxide`

#![allow(clippy::print_stdout)]

use bochner_datasets::regression::co2;
use bochner_gp::ndarray::{Array1, Array2};
use bochner_gp::{FitConfig, seasonal_process};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// The units of the dates, and their number in a year.
const UNITS: [(&str, f64); 2] = [("years", 1.0), ("days", 365.25)];

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
    let mut fits = Vec::new();
    for (unit, days) in UNITS {
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
        let prediction = process.condition(x.view(), ppm.view())?;
        let ahead =
            Array2::from_shape_fn((24, 1), |(month, _)| days * (2017.0 + month as f64 / 12.0));
        let ahead = prediction.predict(ahead.view())?.mean;
        fits.push((fit.evidence().log_likelihood, ahead));
    }
    let [(in_years, ahead_in_years), (in_days, ahead_in_days)] = &fits[..] else {
        unreachable!("one fit for each of two units")
    };
    let apart = ahead_in_years - ahead_in_days;
    println!(
        "ln p in years less that in days: {:.1e}; predictions of 2017 and 2018 are up to {:.1e} ppm apart",
        in_years - in_days,
        apart.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
    );
    Ok(())
}
