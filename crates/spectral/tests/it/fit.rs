//! Densities fitted to a kernel, or to samples of functions, by gradient.

use bochner_numerics::check::random;
use bochner_numerics::{finite_difference, relative_error};
use bochner_spectral::{
    DensityFitConfig, DirectEstimator, Error, Estimator, GaussianEstimator, ImplicitEstimator,
    KernelValues, fit_stationary,
};
use ndarray::{Array2, array};

fn direct(purpose: &str) -> Box<dyn Estimator> {
    Box::new(DirectEstimator {
        w: random((5, 2), purpose),
    })
}

fn gaussian() -> Box<dyn Estimator> {
    Box::new(GaussianEstimator {
        log_std: array![0.2, -0.3],
        eps: random((5, 2), "eps"),
    })
}

fn implicit() -> Box<dyn Estimator> {
    Box::new(ImplicitEstimator {
        weights: ["weight1", "weight2", "weight3"].map(|name| random((2, 2), name)),
        biases: ["b1", "b2", "b3"].map(|name| random(2, name)),
        slope: 0.2,
        z: random((5, 2), "z"),
    })
}

#[test]
fn gradients_agree_with_finite_differences() {
    for mut estimator in [direct("w"), gaussian(), implicit()] {
        let cotangent: Array2<f64> = random((5, 2), "cotangent");
        let parameters = estimator.parameters();
        let got = estimator.points_vjp(cotangent.view()).unwrap();
        let want = finite_difference(&parameters, |values| {
            estimator.set_parameters(values).unwrap();
            (estimator.points().unwrap() * &cotangent).sum()
        });
        assert!(relative_error(&got, &want) < 1e-6);
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let (x, y) = (array![[0.0], [1.0]], array![[0.0]]);
    let fit = |values: Array2<f64>, steps, learning_rate| {
        let (x, y, values) = (x.view(), y.view(), values.view());
        let target = KernelValues { x, y, values };
        let (log_std, eps) = (array![0.0], random((3, 1), "eps"));
        let mut density = GaussianEstimator { log_std, eps };
        let config = DensityFitConfig {
            steps,
            learning_rate,
        };
        fit_stationary(&mut density, &target, &config).unwrap_err()
    };
    let good = array![[1.0], [0.5]];
    let named = |error: Error, name: &str| {
        assert!(error.to_string().starts_with(name), "{error}");
    };
    named(fit(array![[1.0]], 1, 0.1), "`values`");
    named(fit(array![[1.0], [f64::NAN]], 1, 0.1), "`values`");
    let mean = "`mean of values at equal inputs` is 5, but must be 1";
    named(fit(array![[5.0], [2.5]], 1, 0.1), mean);
    named(fit(good.clone(), 0, 0.1), "`steps`");
    named(fit(good.clone(), 1, -0.1), "`learning_rate`");
}

/// At the second step the points are so large that their kernel is refused or NaN.
#[test]
fn a_fit_that_diverges_keeps_the_best_parameters() {
    let (x, y) = (array![[0.0], [1.0]], array![[0.0]]);
    let values = array![[1.0], [0.5]];
    let (x, y, values) = (x.view(), y.view(), values.view());
    let target = KernelValues { x, y, values };
    let mut density = GaussianEstimator {
        log_std: array![0.0],
        eps: array![[0.9], [-1.4], [0.3]],
    };
    let config = DensityFitConfig {
        steps: 3,
        learning_rate: 1e300,
    };
    assert!(fit_stationary(&mut density, &target, &config).is_err());
    assert_eq!(density.log_std, array![0.0]);
}

#[test]
fn the_best_parameters_seen_are_kept() {
    let (x, y) = (array![[0.5], [1.5]], array![[0.0]]);
    let values = x.mapv(|t: f64| (2.0 * t).cos());
    let (x, y, values) = (x.view(), y.view(), values.view());
    let target = KernelValues { x, y, values };
    let mut density = DirectEstimator { w: array![[2.001]] };
    let config = DensityFitConfig {
        steps: 1,
        learning_rate: 1.0,
    };
    let fit = fit_stationary(&mut density, &target, &config).unwrap();
    assert!(fit.best == 0 && fit.losses[1] > fit.losses[0]);
    assert_eq!(density.w, array![[2.001]]);
}
