//! A table of thirty columns: fitted Gamma marginals and copula, ten thousand draws, saved and loaded; and the times of
//! these, of Kendall's tau, and of copulas of ten coordinates over 100,000 rows.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release --package bochner-copula --example table`; the other side is
//! `crates/bench/peers/copula_table.py`.

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

    let copula = GaussianCopula::from_correlation(neighbours(10).view())?;
    let heavy = StudentsTCopula::new(copula.clone(), 4.0)?;
    let u = timed("Gaussian, 100,000 draws of 10", || {
        copula.sample(100_000, &mut rng)
    });
    timed("Gaussian, their log densities", || {
        copula.log_density(u.view())
    })?;
    timed("Gaussian, their fit", || {
        GaussianCopula::fit_maximum_likelihood(u.view())
    })?;
    let u = timed("t, 100,000 draws of 10", || heavy.sample(100_000, &mut rng));
    timed("t, their log densities", || heavy.log_density(u.view()))?;
    Ok(())
}

/// A correlation matrix in which neighbours are correlated.
fn neighbours(columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((columns, columns), |(i, j)| {
        0.8_f64.powi(i.abs_diff(j) as i32)
    })
}

/// Draws with Gamma marginals, whose neighbours are correlated.
fn table(rows: usize, columns: usize) -> Result<Array2<f64>, bochner_copula::Error> {
    let copula = GaussianCopula::from_correlation(neighbours(columns).view())?;
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
    println!("{name:30} {:8.1} ms", 1e3 * least);
    last.expect("called five times")
}
