//! A process for functions that oscillate.

use bochner_gp::{
    FitConfig, GaussianProcess, GaussianProcessConfig, Jitter, spectral_mixture_process,
};
use bochner_kernels::{Cosine, SpectralMixture, SpectralMixtureConfig};
use bochner_numerics::Seed;
use bochner_numerics::check::random;
use ndarray::{Array1, Array2};
use std::f64::consts::TAU;

fn rows(process: &GaussianProcess, components: usize) -> Vec<Vec<f64>> {
    let values = process.parameters().into_iter().skip(2).map(|p| p.value);
    let values: Vec<f64> = values.collect();
    let (weights, rest) = values.split_at(components);
    let (means, variances) = rest.split_at(rest.len() / 2);
    let width = means.len() / components;
    let row = |a: &[f64], q: usize| a[q * width..(q + 1) * width].to_vec();
    let each = (0..components).map(|q| [vec![weights[q]], row(means, q), row(variances, q)]);
    each.map(|parts| parts.concat()).collect()
}

fn assert_distinct(rows: &[Vec<f64>]) {
    for (q, row) in rows.iter().enumerate() {
        assert!(!rows[..q].contains(row));
    }
}

#[test]
fn one_input_starts_on_the_lines_of_its_spectrum() {
    let x = Array2::from_shape_fn((60, 1), |(i, _)| {
        0.1 * i as f64 + 0.03 * (1.9 * i as f64).sin()
    });
    let wave = |f: f64| x.column(0).mapv(|t| (TAU * f * t).sin());
    let y = wave(0.8) * 2.0 + wave(2.5) + random::<f64, _>(60, "y") * 0.1;
    let process = spectral_mixture_process(x.view(), y.view(), 3, Seed::new(1)).unwrap();
    let rows = rows(&process, 3);
    assert!((rows[0][1] - 0.8).abs() < 0.05 && (rows[0][0] - 2.0).abs() < 0.3);
    assert!((rows[1][1] - 2.5).abs() < 0.05 && (rows[1][0] - 0.5).abs() < 0.1);
    assert_distinct(&rows);
    assert!(process.noise() < 0.1);
    let noisy = y + random::<f64, _>(60, "noise");
    let process = spectral_mixture_process(x.view(), noisy.view(), 3, Seed::new(1)).unwrap();
    assert!((0.4..1.2).contains(&process.noise()), "{}", process.noise());
}

#[test]
fn drawn_frequencies_are_a_quarter_of_the_reach_at_one_standard_deviation() {
    let x = random((20, 2), "x");
    let process = spectral_mixture_process(x.view(), random(20, "y").view(), 400, Seed::new(1));
    for (n, column) in x.columns().into_iter().enumerate() {
        let reach = column.std(0.0) * 2.0_f64.sqrt();
        let frequencies = rows(process.as_ref().unwrap(), 400).into_iter().skip(1);
        let squares: f64 = frequencies
            .map(|row| (4.0 * reach * row[1 + n]).powi(2))
            .sum();
        assert!((squares / 399.0 - 1.0).abs() < 0.3, "{squares}");
    }
}

#[test]
fn several_inputs_start_apart_and_stay_apart() {
    let (x, y) = (random((20, 3), "x"), random(20, "y"));
    let start = |seed| spectral_mixture_process(x.view(), y.view(), 4, Seed::new(seed)).unwrap();
    let mut process = start(1);
    assert_eq!(rows(&process, 4), rows(&start(1), 4));
    assert_ne!(rows(&process, 4), rows(&start(2), 4));
    assert_distinct(&rows(&process, 4));
    let config = FitConfig {
        steps: 20,
        ..Default::default()
    };
    let fit = process.fit(x.view(), y.view(), &config).unwrap();
    assert!(fit.trace[fit.best].evidence.log_likelihood > fit.trace[0].evidence.log_likelihood);
    assert_distinct(&rows(&process, 4));
}

#[test]
fn components_that_start_alike_stay_alike() {
    let (x, y) = (random((20, 2), "x"), random(20, "y"));
    let mixture = SpectralMixtureConfig {
        weights: Array1::from_elem(3, 0.3),
        means: Array2::from_elem((3, 2), 0.2),
        variances: Array2::from_elem((3, 2), 0.05),
        cosine: Cosine::Joint,
    };
    let kernel: SpectralMixture<f64> = mixture.build().unwrap();
    let config = GaussianProcessConfig {
        kernel: kernel.into(),
        mean: 0.0,
        noise: 0.3,
        observation_noise: None,
        jitter: Jitter::Fixed(0.0),
    };
    let mut process = config.build().unwrap();
    let brief = FitConfig {
        steps: 10,
        ..Default::default()
    };
    process.fit(x.view(), y.view(), &brief).unwrap();
    let rows = rows(&process, 3);
    assert_ne!(rows[0][0], 0.3);
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0], rows[2]);
}

#[test]
fn data_without_a_spectrum_have_a_process_all_the_same() {
    let start = |x: Array2<f64>, y: Array1<f64>, q| {
        let process = spectral_mixture_process(x.view(), y.view(), q, Seed::new(1))?;
        assert_distinct(&rows(&process, q));
        process.evidence(x.view(), y.view())
    };
    assert!(start(Array2::ones((9, 1)), random(9, "y"), 3).is_ok());
    assert!(start(random((9, 1), "x"), Array1::ones(9), 3).is_ok());
    assert!(start(random((2, 1), "x"), random(2, "y"), 5).is_ok());
    assert!(start(random((1, 2), "x"), random(1, "y"), 2).is_ok());
    let none = spectral_mixture_process(
        random((4, 1), "x").view(),
        random(4, "y").view(),
        0,
        Seed::new(1),
    );
    assert!(
        none.unwrap_err()
            .to_string()
            .starts_with("`components` is 0")
    );
}
