//! A table of thirty columns: fitted Gamma marginals and copula, ten thousand draws, saved and loaded; and the times of
//! these and of Kendall's tau over 100,000 rows and twenty columns.
//!
//! `cargo run --release --package bochner-copula --example table`

#![allow(clippy::print_stdout)]

use bochner_copula::ndarray::Array2;
use bochner_copula::{
    Dependence, Family, GaussianCopula, Joint, JointOptions, StudentsTCopula, Univariate,
};
use bochner_numerics::Seed;
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let table = table(10_000, 30)?;
    let names: Vec<String> = (1..=30).map(|column| format!("gauge {column}")).collect();
    let mut options = JointOptions {
        families: vec![Family::Gamma],
        ..Default::default()
    };
    let fit = timed("fit, normal scores", || {
        Joint::fit(table.view(), &names, &options)
    })?;
    options.dependence = Dependence::MaximumLikelihood;
    timed("fit, maximum likelihood", || {
        Joint::fit(table.view(), &names, &options)
    })?;
    let mut rng = Seed::new(2).stream("draws");
    let draws = timed("10,000 draws", || fit.joint.sample(10_000, &mut rng))?;
    timed("their log densities", || {
        fit.joint.log_density(draws.view())
    })?;

    let saved = serde_json::to_string(&fit.joint)?;
    let loaded: Joint<Univariate> = serde_json::from_str(&saved)?;
    println!(
        "saved and loaded: {} bytes, equal: {}",
        saved.len(),
        loaded == fit.joint
    );
    let given = [(loaded.coordinate("gauge 1")?, 20.0)];
    let likely = loaded.conditional_sample(&given, 1000, &mut rng)?;
    println!(
        "mean of gauge 2: {:.2}, where gauge 1 is 20: {:.2}",
        draws.column(1).sum() / draws.nrows() as f64,
        likely.column(1).sum() / likely.nrows() as f64
    );

    let long = self::table(100_000, 20)?;
    timed("Kendall, 100,000 x 20", || {
        GaussianCopula::fit_kendall(long.view())
    })?;
    let t = timed("t copula, 10,000 x 30", || {
        StudentsTCopula::fit(table.view())
    })?;
    println!("degrees of freedom: {:.1}", t.freedom());
    Ok(())
}

/// Draws with Gamma marginals, whose neighbours are correlated.
fn table(rows: usize, columns: usize) -> Result<Array2<f64>, bochner_copula::Error> {
    let r = Array2::from_shape_fn((columns, columns), |(i, j)| {
        0.8_f64.powi(i.abs_diff(j) as i32)
    });
    let copula = GaussianCopula::from_correlation(r.view())?;
    let gamma = |column| Univariate::Gamma {
        shape: 0.5 + 0.25 * column as f64,
        rate: 0.5,
    };
    let joint = Joint::new(copula, (0..columns).map(gamma).collect())?;
    joint.sample(rows, &mut Seed::new(1).stream("table"))
}

/// Calls a function five times and prints the least time.
fn timed<R>(name: &str, mut f: impl FnMut() -> R) -> R {
    let mut least = f64::INFINITY;
    let mut last = None;
    for _ in 0..5 {
        let start = Instant::now();
        last = Some(f());
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{name:24} {:8.1} ms", 1e3 * least);
    last.expect("called five times")
}
