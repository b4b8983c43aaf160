//! Searches whose minimum is known.

use bochner_ops::{LbfgsConfig, Stop, lbfgs};

const FREE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// $\sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2$.
fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
    gradient.fill(0.0);
    let mut value = 0.0;
    for i in 0..x.len() - 1 {
        let (valley, slope) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
        value += 100.0 * valley * valley + slope * slope;
        gradient[i] -= 400.0 * valley * x[i] + 2.0 * slope;
        gradient[i + 1] += 200.0 * valley;
    }
    value
}

fn tight() -> LbfgsConfig {
    LbfgsConfig {
        tolerance: 1e-9,
        relative_change: 0.0,
        ..LbfgsConfig::default()
    }
}

#[test]
fn the_minimum_of_rosenbrock_is_found() {
    for count in [2, 10] {
        let mut x = vec![-1.2; count];
        let report = lbfgs(&mut x, &vec![FREE; count], &tight(), &mut rosenbrock).unwrap();
        assert!(report.stop.is_converged(), "{report:?}");
        assert!(
            report.gradient < 1e-6 && report.evaluations < 200,
            "{report:?}"
        );
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6), "{x:?}");
    }
}

#[test]
fn active_bounds_hold_the_minimum() {
    // With x0 at most 0.5 the minimum is at (0.5, 0.25); with x1 at least 1.5 at the root of the gradient along x0.
    let mut x = [-1.2, 1.0];
    let report = lbfgs(&mut x, &[(-2.0, 0.5), FREE], &tight(), &mut rosenbrock).unwrap();
    assert!(report.stop.is_converged(), "{report:?}");
    assert!(
        x[0] == 0.5 && (x[1] - 0.25).abs() < 1e-7,
        "{x:?} {report:?}"
    );
    let mut x = [1.0, 2.0];
    lbfgs(&mut x, &[FREE, (1.5, 3.0)], &tight(), &mut rosenbrock).unwrap();
    let mut gradient = [0.0; 2];
    rosenbrock(&x, &mut gradient);
    assert!(
        x[1] == 1.5 && gradient[0].abs() < 1e-5 && gradient[1] > 0.0,
        "{x:?}"
    );
    // Bounds that are not active change nothing, and a start at a bound leaves it.
    let mut x = [-2.0, -2.0];
    lbfgs(&mut x, &[(-2.0, 2.0); 2], &tight(), &mut rosenbrock).unwrap();
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6), "{x:?}");
}

#[test]
fn a_quadratic_of_a_large_condition_is_solved() {
    let scales: Vec<f64> = (0..20).map(|i| 10.0_f64.powf(0.2 * f64::from(i))).collect();
    let mut bowl = |x: &[f64], gradient: &mut [f64]| {
        let mut value = 0.0;
        for ((g, x), a) in gradient.iter_mut().zip(x).zip(&scales) {
            *g = a * (x - 1.0);
            value += 0.5 * a * (x - 1.0).powi(2);
        }
        value
    };
    let mut x = vec![0.0; 20];
    // scipy's L-BFGS-B takes 642 steps.
    let report = lbfgs(&mut x, &[FREE; 20], &tight(), &mut bowl).unwrap();
    assert!(
        report.stop.is_converged() && report.evaluations < 800,
        "{report:?}"
    );
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6), "{x:?}");
}

#[test]
fn settings_bounds_and_starts_that_cannot_stand_are_named() {
    let search = |x: f64, bounds, config: LbfgsConfig| {
        let start = &mut [x, 0.0];
        lbfgs(start, &[bounds, FREE], &config, &mut rosenbrock)
            .unwrap_err()
            .to_string()
    };
    let outside = search(3.0, (0.0, 1.0), tight());
    assert_eq!(
        outside,
        "`the start 0` is 3, but must be from 0.0 to 1.0, its bounds"
    );
    let crossed = search(3.0, (1.0, 0.0), tight());
    assert!(crossed.starts_with("`the upper bound 0` is 0"), "{crossed}");
    let huge = search(1e200, FREE, tight());
    assert!(
        huge.starts_with("`the value at the start` is inf"),
        "{huge}"
    );
    let memory = search(
        0.0,
        FREE,
        LbfgsConfig {
            memory: 0,
            ..tight()
        },
    );
    assert!(memory.starts_with("`memory` is 0"), "{memory}");
}

#[test]
fn a_search_reports_why_it_ended() {
    let mut few = LbfgsConfig {
        steps: 3,
        ..tight()
    };
    let mut x = [-1.2, 1.0];
    let report = lbfgs(&mut x, &[FREE; 2], &few, &mut rosenbrock).unwrap();
    assert_eq!((report.stop, report.steps), (Stop::Steps, 3));
    assert!(!report.stop.is_converged() && report.gradient > 0.1);
    // A gradient of the wrong sign: every step leads up.
    few.steps = 50;
    let mut wrong = |x: &[f64], gradient: &mut [f64]| {
        gradient[0] = -2.0 * x[0];
        x[0] * x[0]
    };
    let report = lbfgs(&mut [1.0], &[FREE], &few, &mut wrong).unwrap();
    assert_eq!(report.stop, Stop::NoStep);
    // With no tolerance the search ends where rounding hides the steps.
    let mut x = [-1.2, 1.0];
    few = LbfgsConfig {
        tolerance: 0.0,
        relative_change: 0.0,
        ..LbfgsConfig::default()
    };
    let mut raised = |x: &[f64], gradient: &mut [f64]| 1e3 + rosenbrock(x, gradient);
    let report = lbfgs(&mut x, &[FREE; 2], &few, &mut raised).unwrap();
    assert_eq!(report.stop, Stop::Flat);
    assert!((x[0] - 1.0).abs() < 1e-2, "{x:?}");
}

#[test]
fn values_that_are_not_finite_shorten_the_step() {
    // The logarithm's argument is positive only near the minimum.
    let mut barrier = |x: &[f64], gradient: &mut [f64]| {
        gradient[0] = 1.0 - 1.0 / x[0];
        x[0] - x[0].ln()
    };
    let mut x = [1e-3];
    let report = lbfgs(&mut x, &[FREE], &tight(), &mut barrier).unwrap();
    assert!(
        report.stop.is_converged() && (x[0] - 1.0).abs() < 1e-6,
        "{x:?}"
    );
}

/// The value tends to its infimum, which lies at infinity, and its gradient to zero.
#[test]
fn a_ridge_without_an_end_converges_by_its_value() {
    let mut ridge = |x: &[f64], gradient: &mut [f64]| {
        gradient[0] = -0.1 * (-0.1 * x[0]).exp();
        (-0.1 * x[0]).exp() - 160.0
    };
    let config = LbfgsConfig {
        tolerance: 0.0,
        ..LbfgsConfig::default()
    };
    let mut x = [0.0];
    let report = lbfgs(&mut x, &[FREE], &config, &mut ridge).unwrap();
    assert_eq!(report.stop, Stop::Flat);
    assert!(
        report.value + 160.0 < 1e-6 && report.steps < 100,
        "{report:?}"
    );
    let refused = LbfgsConfig {
        relative_change: -1.0,
        ..config
    };
    let error = lbfgs(&mut x, &[FREE], &refused, &mut ridge).unwrap_err();
    assert_eq!(error.name(), "relative_change");
}
