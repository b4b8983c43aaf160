//! Started on the lines of the data's spectrum, a spectral mixture continues an oscillation of
//! which a radial basis function forgets everything within a lengthscale.

use bochner_gp::{FitConfig, GaussianProcess, rbf_process, spectral_mixture_process};
use bochner_numerics::Seed;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use std::f64::consts::TAU;

fn series(from: usize, to: usize) -> (Array2<f64>, Array1<f64>) {
    let t = Array1::from_iter((from..to).map(|i| 0.1 * i as f64 + 0.03 * (2.9 * i as f64).sin()));
    let y = t.mapv(|t| (TAU * t / 1.3).sin() + 0.5 * (TAU * t / 3.1 + 0.7).cos());
    (t.insert_axis(Axis(1)), y)
}

fn error_ahead(mut process: GaussianProcess, x: ArrayView2<f64>, y: &Array1<f64>) -> f64 {
    process.fit(x, y.view(), &FitConfig::default()).unwrap();
    let (at, want) = series(80, 100);
    let got = process.condition(x, y.view()).unwrap().predict(at.view());
    let error = got.unwrap().mean - want;
    error.mapv(|e| e * e).mean().unwrap().sqrt()
}

#[test]
fn a_spectral_mixture_goes_on() {
    let (x, y) = series(0, 80);
    let smooth = error_ahead(rbf_process(x.view(), y.view()).unwrap(), x.view(), &y);
    let mixture = spectral_mixture_process(x.view(), y.view(), 3, Seed::new(1)).unwrap();
    let mixture = error_ahead(mixture, x.view(), &y);
    assert!(mixture < 0.25, "{mixture}");
    assert!(mixture < 0.5 * smooth, "{mixture} {smooth}");
}
