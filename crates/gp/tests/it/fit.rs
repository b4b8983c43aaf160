//! Fits by both rules.

use crate::testing::{config, process, scaled_rbf};
use bochner_dense::Cholesky;
use bochner_gp::{
    AdamConfig, Error, Fit, FitConfig, GaussianProcessConfig, Optimiser, Prior, Stop, ard_process,
    rbf_process, seasonal_process, spectral_mixture_process,
};
use bochner_kernels::{Kernel, Lengthscale, MaternConfig, ScaleConfig, Smoothness};
use bochner_numerics::check::random;
use bochner_numerics::{Seed, finite_difference, relative_error};
use ndarray::{Array, Array1, Array2, Axis, array};
use std::ops::ControlFlow;

fn data() -> (Array2<f64>, Array1<f64>) {
    let x: Array2<f64> = random((25, 1), "x");
    let y = x.column(0).mapv(|x| (2.0 * x).sin() + 3.0) + random::<f64, _>(25, "y") * 0.1;
    (x, y)
}

fn adam(steps: usize, learning_rate: f64) -> FitConfig {
    let adam = AdamConfig {
        learning_rate,
        ..AdamConfig::default()
    };
    FitConfig {
        optimiser: Optimiser::Adam(adam),
        steps,
        ..FitConfig::default()
    }
}

fn log_likelihood(fit: &Fit) -> f64 {
    fit.evidence().log_likelihood
}

#[test]
fn the_maximum_is_found_from_either_side_by_both_rules() {
    let (x, y) = data();
    let arrive = |config: &FitConfig, variance, lengthscale, noise| {
        let mut process = process(scaled_rbf(variance, lengthscale), 2.0, noise);
        let fit = process.fit(x.view(), y.view(), config).unwrap();
        let left = process.evidence(x.view(), y.view()).unwrap();
        assert_eq!(left.log_likelihood, log_likelihood(&fit));
        let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
        let largest = gradient
            .coordinates
            .iter()
            .fold(0.0_f64, |l, g| l.max(g.abs()));
        assert!(largest < 0.1, "{fit}");
        (process.coordinates(), fit)
    };
    let (a, fit) = arrive(&FitConfig::default(), 1.0, 1.0, 0.5);
    assert!(fit.stop.is_converged() && fit.gradient < 1e-4, "{fit}");
    assert!(fit.to_string().starts_with("converged: "), "{fit}");
    let (b, again) = arrive(&FitConfig::default(), 3.0, 0.4, 0.01);
    let (c, by_adam) = arrive(&adam(1200, 0.03), 3.0, 0.4, 0.01);
    assert!(
        again.starts[0].unwrap().evaluations < by_adam.trace.len() / 10,
        "{again} {by_adam}"
    );
    for (a, (b, c)) in a.iter().zip(b.iter().zip(&c)) {
        assert!((a - b).abs() < 1e-3 && (a - c).abs() < 0.05, "{a} {b} {c}");
    }
    // The noise of the data is 0.01.
    assert!(a[1].exp() > 0.004 && a[1].exp() < 0.025);
}

#[test]
fn the_observer_sees_every_point_and_can_end_it() {
    let (x, y) = data();
    for config in [FitConfig::default(), adam(50, 0.01)] {
        let mut process = process(scaled_rbf(1.0, 1.0), 2.0, 0.5);
        let mut seen = Vec::new();
        let fit = process.fit_observed(x.view(), y.view(), &config, |now, step| {
            let evidence = now.evidence(x.view(), y.view()).unwrap();
            assert_eq!(evidence, step.evidence);
            seen.push(*step);
            match seen.len() {
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let fit = fit.unwrap();
        assert_eq!((fit.stop, fit.best, &fit.trace), (Stop::Observer, 3, &seen));
    }
}

#[test]
fn a_fit_that_cannot_move_is_an_error_and_changes_nothing() {
    let (x, y) = data();
    let mut process = process(scaled_rbf(1.0, 0.8), 3.0, 0.01);
    let start = process.parameters();
    // A step of 900 takes an exponential to zero or infinity, one of 4 leads down.
    let failed = process
        .fit(x.view(), y.view(), &adam(3, 900.0))
        .unwrap_err();
    assert!(matches!(failed, Error::Coordinate { .. }), "{failed}");
    let failed = process.fit(x.view(), y.view(), &adam(1, 4.0)).unwrap_err();
    assert!(matches!(failed, Error::NoImprovement { gradient_norm, .. } if gradient_norm > 0.1));
    assert_eq!(process.parameters(), start);
}

/// Inputs that repeat, far from the scales of the start: scikit-learn's issue 20934.
#[test]
fn a_start_far_from_the_data_converges() {
    let x = array![[20.0], [20.0], [140.0], [140.0]];
    let y = array![740.0, 680.0, 1260.0, 1200.0];
    let matern = |variance, lengthscale, noise| {
        let base = MaternConfig {
            smoothness: Smoothness::ThreeHalves,
            lengthscale: Lengthscale::Shared(lengthscale),
        };
        let base = base.build().unwrap().into();
        let kernel = ScaleConfig { variance, base }.build().unwrap();
        process(kernel, 0.0, noise)
    };
    // The maxima were found by scipy from forty starts, with a free mean and with none.
    let free = FitConfig::default();
    let fixed = FitConfig {
        fixed: vec!["mean".to_owned()],
        ..FitConfig::default()
    };
    for (mut process, config, want) in [
        (matern(0.1, 0.1, 0.1), free, -24.986),
        (matern(1e5, 60.0, 1e3), fixed, -26.996),
    ] {
        let fit = process.fit(x.view(), y.view(), &config).unwrap();
        assert!(fit.stop.is_converged() && fit.gradient < 1e-4, "{fit}");
        assert!((log_likelihood(&fit) - want).abs() < 0.001, "{fit}");
        assert!(config.fixed.is_empty() || process.mean() == 0.0);
    }

    let x = Array::linspace(0.0, 6.0, 100).insert_axis(Axis(1));
    let y = x.column(0).mapv(|x: f64| 1000.0 + x.sin());
    let mut near = rbf_process(x.view(), y.view()).unwrap();
    let mut far = crate::testing::process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
    let near = near.fit(x.view(), y.view(), &FitConfig::default()).unwrap();
    let far = far.fit(x.view(), y.view(), &FitConfig::default()).unwrap();
    assert!(
        near.stop.is_converged() && far.stop.is_converged(),
        "{near} {far}"
    );
    assert!(
        (log_likelihood(&near) - log_likelihood(&far)).abs() < 1.0,
        "{near} {far}"
    );
}

#[test]
fn the_units_of_the_data_do_not_matter() {
    let years = Array1::from_shape_fn(60, |i| f64::from(i as u32) / 6.0);
    let wave = years.mapv(|t| (std::f64::consts::TAU * t).sin() + 0.3 * (7.0 * t).cos() + 0.1 * t);
    let y = wave + random::<f64, _>(60, "y") * 0.1;
    for config in [FitConfig::default(), adam(60, 0.02)] {
        let fitted = |unit: f64, (scale, shift): (f64, f64)| {
            let x = (&years * unit).insert_axis(Axis(1));
            let y = &y * scale + shift;
            let mut process =
                spectral_mixture_process(x.view(), y.view(), 3, Seed::new(1)).unwrap();
            let fit = process.fit(x.view(), y.view(), &config).unwrap();
            let gained = log_likelihood(&fit) - fit.trace[0].evidence.log_likelihood;
            assert!(gained > 1.0, "{fit}");
            log_likelihood(&fit) + 60.0 * scale.ln()
        };
        let want = fitted(1.0, (1.0, 0.0));
        for (unit, target) in [
            (365.25, (1.0, 0.0)),
            (31_557_600.0, (1.0, 0.0)),
            (1.0, (100.0, 50.0)),
        ] {
            let got = fitted(unit, target);
            assert!((got - want).abs() < 1e-3, "{unit} {target:?}: {got} {want}");
        }
    }
}

/// The exponent of the rational quadratic may grow without an end, so that the fit ends by its value.
#[test]
fn a_sum_of_four_kernels_converges_to_the_same_fit_in_years_and_in_days() {
    let years = Array1::from_shape_fn(96, |i| 1970.0 + f64::from(i as u32) / 12.0);
    let wave = years.mapv(|t| 1.4 * (t - 1970.0) + 3.0 * (std::f64::consts::TAU * t).sin());
    let y = wave + random::<f64, _>(96, "y") * 0.3;
    let config = FitConfig {
        fixed: vec!["mean".to_owned()],
        ..FitConfig::default()
    };
    let [in_years, in_days] = [1.0, 365.25].map(|days| {
        let x = (&years * days).insert_axis(Axis(1));
        let mut process = seasonal_process(x.view(), y.view(), days).unwrap();
        let fit = process.fit(x.view(), y.view(), &config).unwrap();
        assert!(fit.stop.is_converged() && fit.trace.len() < 400, "{fit}");
        let period = process
            .parameters()
            .into_iter()
            .find(|p| p.name.ends_with("period"));
        (log_likelihood(&fit), period.unwrap().value / days)
    });
    assert!(
        (in_years.0 - in_days.0).abs() < 1e-2,
        "{in_years:?} {in_days:?}"
    );
    assert!((in_years.1 - in_days.1).abs() < 1e-3 && (in_years.1 - 1.0).abs() < 0.02);
}

#[test]
fn constant_targets_leave_the_noise_at_its_floor() {
    let x: Array2<f64> = random((12, 1), "x");
    let y = Array1::from_elem(12, 3.7);
    let mut process = rbf_process(x.view(), y.view()).unwrap();
    let fit = process
        .fit(x.view(), y.view(), &FitConfig::default())
        .unwrap();
    assert!(fit.stop.is_converged(), "{fit}");
    assert!(
        (process.noise() / 1e-8 - 1.0).abs() < 1e-9,
        "{}",
        process.noise()
    );
}

#[test]
fn two_rows_and_a_constant_column_are_fitted() {
    let (x, y) = (array![[0.0, 7.0], [1.0, 7.0]], array![0.3, 0.5]);
    let mut process = ard_process(x.view(), y.view()).unwrap();
    let before = process.parameters()[4].value;
    let config = FitConfig::default();
    let fit = process.fit(x.view(), y.view(), &config).unwrap();
    assert!(fit.stop.is_converged(), "{fit}");
    assert_eq!(process.parameters()[4].value, before);
    let posterior = process.condition(x.view(), y.view()).unwrap();
    let mean = posterior.predict_mean(array![[0.5, 7.0]].view()).unwrap();
    assert!((0.2..0.6).contains(&mean[0]), "{mean}");
}

#[test]
fn fixed_parameters_stay_and_restarts_find_more() {
    let (x, y) = data();
    let mut process = process(scaled_rbf(1.0, 40.0), 2.0, 0.5);
    let mut config = FitConfig {
        fixed: vec!["kernel.base.lengthscale".to_owned(), "noise".to_owned()],
        ..FitConfig::default()
    };
    process.fit(x.view(), y.view(), &config).unwrap();
    let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
    assert!(
        (values[3] - 40.0).abs() < 1e-12 && (values[1] - 0.5).abs() < 1e-12,
        "{values:?}"
    );

    config.fixed = vec!["lengthscale".to_owned()];
    let known = [
        "mean",
        "noise",
        "kernel.variance",
        "kernel.base.lengthscale",
    ];
    let unknown = Error::UnknownParameter {
        got: "lengthscale".to_owned(),
        known: known.map(str::to_owned).to_vec(),
    };
    assert_eq!(process.fit(x.view(), y.view(), &config), Err(unknown));

    // From a short lengthscale everything is noise.
    let x = Array::linspace(0.0, 12.0, 40).insert_axis(Axis(1));
    let y = x.column(0).mapv(f64::sin);
    let start = crate::testing::process(scaled_rbf(1.0, 0.05), 0.0, 0.1);
    let fitted = |restarts, seed| {
        let config = FitConfig {
            restarts,
            seed,
            ..FitConfig::default()
        };
        let fit = start.clone().fit(x.view(), y.view(), &config).unwrap();
        assert_eq!(fit.starts.len(), restarts + 1);
        fit
    };
    let (one, many) = (fitted(0, 1), fitted(12, 1));
    assert_eq!(many.starts[0], one.starts[0]);
    assert!(
        log_likelihood(&many) > log_likelihood(&one) + 10.0,
        "{one} {many}"
    );
    assert_eq!(fitted(12, 1), many);
}

/// The logarithm of a prior's density, up to a constant.
fn log_density(prior: Prior, theta: f64) -> f64 {
    match prior {
        Prior::Normal { mean, std } => -0.5 * ((theta - mean) / std).powi(2),
        Prior::LogNormal { mean, std } => -0.5 * ((theta.ln() - mean) / std).powi(2) - theta.ln(),
        Prior::Gamma { shape, rate } => (shape - 1.0) * theta.ln() - rate * theta,
    }
}

#[test]
fn priors_pull_to_their_modes() {
    let (x, y) = data();
    let name = "kernel.base.lengthscale";
    let fitted = |prior: Option<Prior>| {
        let priors = prior
            .map(|prior| (name.to_owned(), prior))
            .into_iter()
            .collect();
        let config = FitConfig {
            priors,
            tolerance: 1e-6,
            ..FitConfig::default()
        };
        let mut process = rbf_process(x.view(), y.view()).unwrap();
        let fit = process.fit(x.view(), y.view(), &config).unwrap();
        assert!(fit.stop.is_converged(), "{fit}");
        (process, fit)
    };
    let (free, _) = fitted(None);
    let free = free.parameters()[3].value;
    for (prior, mode) in [
        (
            Prior::Normal {
                mean: 5.0,
                std: 0.01,
            },
            5.0,
        ),
        (
            Prior::LogNormal {
                mean: 1.0,
                std: 0.01,
            },
            1.0_f64.exp(),
        ),
        (
            Prior::Gamma {
                shape: 4e4,
                rate: 1e4,
            },
            4.0,
        ),
    ] {
        let (process, fit) = fitted(Some(prior));
        let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
        assert!(
            (values[3] - mode).abs() < 0.05 && (free - mode).abs() > 0.5,
            "{values:?} {free}"
        );
        // The gradient of likelihood and prior together is zero.
        let mut moved = process.clone();
        let slope = finite_difference(&process.coordinates(), |c| {
            moved.set_coordinates(c).unwrap();
            let evidence = moved.evidence(x.view(), y.view()).unwrap();
            evidence.log_likelihood + log_density(prior, c[3].exp())
        });
        assert!(slope.iter().all(|g| g.abs() < 0.02), "{slope:?} {fit}");
    }
    let config = FitConfig {
        priors: [(
            "mean".to_owned(),
            Prior::Gamma {
                shape: 1.0,
                rate: 1.0,
            },
        )]
        .into(),
        ..FitConfig::default()
    };
    let refused = rbf_process(x.view(), y.view())
        .unwrap()
        .fit(x.view(), y.view(), &config);
    assert!(refused.unwrap_err().to_string().starts_with("`mean` is"));
}

#[test]
fn inputs_that_explain_nothing_have_long_lengthscales() {
    // Ten inputs, of which three count.
    let x: Array2<f64> = random((150, 10), "x") * Array1::logspace(10.0, -2.0, 2.0, 10);
    let standard = &x / &Array1::logspace(10.0, -2.0, 2.0, 10);
    let wave = |n: usize| standard.column(n).mapv(|v| f64::sin(1.5 * v));
    let y = wave(2) * 2.0 + wave(5) - wave(8) + random::<f64, _>(150, "y") * 0.1;
    let mut process = ard_process(x.view(), y.view()).unwrap();
    let fit = process
        .fit(x.view(), y.view(), &FitConfig::default())
        .unwrap();
    assert!(fit.stop.is_converged(), "{fit}");
    let reach = |n: usize| process.parameters()[3 + n].value / x.column(n).std(0.0);
    for n in 0..10 {
        assert_eq!(reach(n) < 8.0, [2, 5, 8].contains(&n), "{n}: {}", reach(n));
    }
}

#[test]
fn noise_of_each_observation_is_that_of_a_larger_covariance() {
    let (x, y) = data();
    let known: Vec<f64> = random::<f64, _>(25, "noise").mapv(|v| v * v).to_vec();
    let noisy = GaussianProcessConfig {
        observation_noise: Some(known.clone()),
        ..config(scaled_rbf(1.3, 0.7), 2.9, 0.1)
    };
    let noisy = noisy.build().unwrap();
    let mut gram = noisy.kernel().gram(x.view(), x.view()).unwrap();
    gram.diag_mut()
        .zip_mut_with(&Array1::from(known), |g, v| *g += v + 0.1);
    let factor = Cholesky::new(gram.view()).unwrap();
    let mut alpha = (&y - 2.9).insert_axis(Axis(0));
    factor.solve(alpha.view_mut()).unwrap();
    let misfit = (&y - 2.9).dot(&alpha.row(0));
    let want = -0.5 * (misfit + factor.log_determinant() + 25.0 * std::f64::consts::TAU.ln());
    let got = noisy.evidence_gradient(x.view(), y.view()).unwrap();
    assert!((got.evidence.log_likelihood - want).abs() < 1e-10);
    let values: Vec<f64> = noisy.parameters().iter().map(|p| p.value).collect();
    let mut moved = noisy.clone();
    let slope = finite_difference(&values, |v| {
        moved.set_parameters(v).unwrap();
        moved.evidence(x.view(), y.view()).unwrap().log_likelihood
    });
    assert!(relative_error(&got.parameters, &slope) < 1e-6);
    let posterior = noisy.condition(x.view(), y.view()).unwrap();
    let off = posterior.fitted() - posterior.predict_mean(x.view()).unwrap();
    assert!(off.iter().all(|o| o.abs() < 1e-10));
    let short = noisy.evidence(x.slice(ndarray::s![..5, ..]), y.slice(ndarray::s![..5]));
    assert!(
        short
            .unwrap_err()
            .to_string()
            .starts_with("`observation_noise` has length 25")
    );
}

#[test]
fn settings_and_data_that_cannot_stand_are_named() {
    let (x, y) = data();
    let mut process = process(scaled_rbf(1.0, 1.0), 2.0, 0.5);
    let none = process.fit(
        Array2::zeros((0, 1)).view(),
        Array1::zeros(0).view(),
        &FitConfig::default(),
    );
    let said = none.unwrap_err().to_string();
    assert!(said.starts_with("`y` has shape [0]"), "{said}");
    let mut refused = |config, name| {
        let said = process.fit(x.view(), y.view(), &config).unwrap_err();
        assert!(
            said.to_string().starts_with(&format!("`{name}` is")),
            "{said}"
        );
    };
    refused(adam(3, -1.0), "learning_rate");
    refused(
        FitConfig {
            tolerance: -1.0,
            ..FitConfig::default()
        },
        "tolerance",
    );
    let noise_floor = f64::NAN;
    refused(
        FitConfig {
            noise_floor,
            ..FitConfig::default()
        },
        "noise_floor",
    );
    let prior = Prior::Normal {
        mean: 0.0,
        std: 0.0,
    };
    let priors = [("mean".to_owned(), prior)].into();
    refused(
        FitConfig {
            priors,
            ..FitConfig::default()
        },
        "the standard deviation of a prior",
    );
}
