//! Lists the regression sets that are on this machine, and how well the mean of each predicts.
//!
//! `cargo run --package bochner-datasets --example at_hand [DIRECTORY]`

#![allow(clippy::print_stdout)]

use bochner_datasets::{DataStore, Error, Policy, Protocol, RegressionSet, Rows, load};

fn main() -> Result<(), Error> {
    let store = DataStore::new(Policy::Offline);
    let store = match std::env::args().nth(1) {
        Some(directory) => store.with_directory(directory)?,
        None => store,
    };
    println!("set         rows  inputs  error of the mean (ten folds)");
    for set in RegressionSet::ALL {
        print!("{:<10} {:5}  {:6}  ", set.name(), set.rows(), set.inputs());
        match load(set, Protocol::P10, Rows::All, &store) {
            Ok(data) => {
                let errors = data.splits.iter().map(|split| {
                    let mean = mean(&split.train, |i| data.target[i]);
                    mean_error(&split.test, &data.target, mean)
                });
                println!("{:.3}", errors.sum::<f64>() / data.splits.len() as f64);
            }
            Err(Error::Unavailable { .. }) => println!("not at hand"),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn mean(rows: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    rows.iter().map(|&i| value(i)).sum::<f64>() / rows.len() as f64
}

/// The root mean square error for the target scaled to [-1, 1].
fn mean_error(rows: &[usize], target: &[f64], predicted: f64) -> f64 {
    mean(rows, |i| (target[i] - predicted).powi(2)).sqrt()
}
