//! Four years of airline passengers, forecast by two kernels.
//!
//! `cargo run --release --package bochner-gp --example forecast_passengers`

#![allow(clippy::print_stdout)]

use bochner_datasets::AIRLINE_PASSENGERS;
use bochner_gp::ndarray::{Array, Array1, Axis, s};
use bochner_gp::{FitConfig, GaussianProcess, rbf_process, spectral_mixture_process};
use bochner_numerics::Seed;
use std::error::Error;

const KNOWN: usize = 96;

fn main() -> Result<(), Box<dyn Error>> {
    // The seasons grow with the level: on a logarithmic scale they do not.
    let passengers: Array1<f64> = AIRLINE_PASSENGERS
        .iter()
        .map(|&n| f64::from(n).ln())
        .collect();
    let years = Array::range(0.0, passengers.len() as f64, 1.0) / 12.0;
    let years = years.insert_axis(Axis(1));
    let (x, y) = (years.slice(s![..KNOWN, ..]), passengers.slice(s![..KNOWN]));
    let (ahead, truth) = (years.slice(s![KNOWN.., ..]), passengers.slice(s![KNOWN..]));

    println!(
        "kernel            evidence before  after   error ahead  inside two standard deviations"
    );
    let processes: [(&str, GaussianProcess); 2] = [
        ("rbf", rbf_process(x, y)?),
        (
            "spectral mixture",
            spectral_mixture_process(x, y, 5, Seed::new(1))?,
        ),
    ];
    for (name, mut process) in processes {
        let fit = process.fit(x, y, &FitConfig::default())?;
        let [before, after] = [0, fit.best].map(|i| fit.trace[i].evidence.log_likelihood);
        let predicted = process.condition(x, y)?.predict(ahead)?;
        let off = &predicted.mean - &truth;
        let error = (off.mapv(|e| e * e).sum() / off.len() as f64).sqrt();
        let bars = predicted.observed_variance.mapv(|v| 2.0 * v.sqrt());
        let inside = off
            .iter()
            .zip(&bars)
            .filter(|(e, bar)| e.abs() < **bar)
            .count();
        println!(
            "{name:<16}  {before:15.1}  {after:5.1}   {:9.1} %  {inside} of {}",
            100.0 * error.exp_m1(),
            off.len()
        );
    }
    Ok(())
}
