//! Features of time stamps, whose inner products are kernels of the gap between two times.

use bochner_kernels::TimeFeatures;
use bochner_numerics::check::{largest, random};
use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};
use ndarray::{Array1, Array2, Axis, array};
use std::f64::consts::PI;

fn times(n: usize) -> Array1<f64> {
    random((n, 1), "times").remove_axis(Axis(1)) * 5.0
}

fn kernel(time: &TimeFeatures<f64>, t: &Array1<f64>) -> Array2<f64> {
    let phi = time.features(t.view()).unwrap();
    phi.dot(&phi.t())
}

fn mercer(coefficients: Array2<f64>) -> TimeFeatures<f64> {
    TimeFeatures::Mercer {
        half_periods: array![1.5, 4.0],
        coefficients,
    }
}

fn bochner() -> TimeFeatures<f64> {
    let frequencies = array![0.2, 1.0, 3.0];
    TimeFeatures::Bochner { frequencies }
}

/// A shift of all times changes no inner product, if and only if the coefficients are paired.
#[test]
fn paired_features_depend_on_gaps_alone() {
    let paired = mercer(array![[0.3, 0.5, 0.5, 0.1, 0.1], [0.2, 0.0, 0.0, 0.7, 0.7]]);
    let unpaired = mercer(array![[0.3, 0.5, 0.1, 0.1, 0.1], [0.2, 0.0, 0.0, 0.7, 0.7]]);
    let t = times(6);
    let moved = |time: &TimeFeatures<f64>| largest(&(kernel(time, &t) - kernel(time, &(&t + 0.7))));
    assert!(moved(&bochner()) < 1e-13 && moved(&paired) < 1e-13);
    assert!(moved(&unpaired) > 1e-2, "{}", moved(&unpaired));
    assert!(
        kernel(&bochner(), &t)
            .diag()
            .iter()
            .all(|k| (k - 1.0).abs() < 1e-14)
    );
}

#[test]
fn phases_that_overflow_are_named() {
    let fast = TimeFeatures::Bochner {
        frequencies: array![1.0, 1e300],
    };
    assert!(fast.features(array![1e8].view()).is_ok());
    let tiny = TimeFeatures::Mercer {
        half_periods: array![1e-310],
        coefficients: array![[0.3, 0.5, 0.2]],
    };
    for (time, t) in [(fast, 1e10), (tiny, 0.0)] {
        let refused = time.features(array![t].view()).unwrap_err().to_string();
        assert!(refused.contains("frequencies"), "{refused}");
    }
}

/// Mercer features repeat after twice the half-period.
#[test]
fn a_base_repeats_after_two_half_periods() {
    let time = TimeFeatures::Mercer {
        half_periods: array![1.5],
        coefficients: array![[0.3, 0.5, 0.2, 0.1, 0.4]],
    };
    let t = times(5);
    let [one, later, half] = [0.0, 3.0, 1.5].map(|by| time.features((&t + by).view()).unwrap());
    assert!(largest(&(&one - &later)) < 1e-13);
    assert!(largest(&(&one - &half)) > 0.1);
}

/// A triangle wave, whose coefficients fall as the square of the degree: what is cut off is the sum of the
/// coefficients beyond the degree.
#[test]
fn a_truncated_series_misses_its_tail_alone() {
    let coefficient = |j: usize| {
        if j % 2 == 1 {
            8.0 / (PI * j as f64).powi(2)
        } else {
            0.0
        }
    };
    for degree in [1, 5, 25] {
        let row = (0..=2 * degree).map(|n: usize| coefficient(n.div_ceil(2)));
        let coefficients = Array2::from_shape_vec((1, 2 * degree + 1), row.collect()).unwrap();
        let half_periods = array![1.0];
        let time = TimeFeatures::Mercer {
            half_periods,
            coefficients,
        };
        let t = times(30);
        let tail: f64 = (degree + 1..20_000).map(coefficient).sum();
        let kernel = kernel(&time, &t);
        let off = Array2::from_shape_fn(kernel.dim(), |(i, j)| {
            let gap = (t[i] - t[j]).rem_euclid(2.0);
            kernel[[i, j]] - (1.0 - 2.0 * gap.min(2.0 - gap))
        });
        let worst = largest(&off);
        // At a gap of zero nothing cancels in the tail.
        assert!(
            worst < tail * 1.0001 + 1e-4 && worst > 0.9 * tail,
            "{degree}: {worst} {tail}"
        );
    }
}

/// Normal frequencies give the Gaussian kernel, with an error that falls as the root of their number.
#[test]
fn normal_frequencies_approximate_the_gaussian() {
    let error = |count: usize| {
        let mut stream = Seed::new(6).stream("frequencies");
        let mut square = 0.0;
        for _ in 0..40 {
            let draw = || standard_normal::<f64>(&mut stream);
            let frequencies = Array1::from_shape_simple_fn(count, draw);
            let t = array![0.0, 0.5, 1.0, 2.0];
            let kernel = kernel(&TimeFeatures::Bochner { frequencies }, &t);
            let off = |(t, k): (&f64, &f64)| (k - (-0.5 * t * t).exp()).powi(2);
            square += t.iter().zip(kernel.row(0)).map(off).sum::<f64>();
        }
        square.sqrt()
    };
    let ratio = error(64) / error(1024);
    assert!((2.8..5.6).contains(&ratio), "{ratio}");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let coefficients = array![[0.3, 0.5, 0.4, 0.1, 0.2], [0.2, 0.6, 0.9, 0.7, 0.7]];
    for time in [bochner(), mercer(coefficients)] {
        let t = times(7);
        let cotangent = random((7, time.width()), "cotangent");
        let flat = |time: &TimeFeatures<f64>| -> Vec<f64> {
            match time {
                TimeFeatures::Bochner { frequencies } => frequencies.to_vec(),
                TimeFeatures::Mercer {
                    half_periods,
                    coefficients,
                } => half_periods.iter().chain(coefficients).copied().collect(),
            }
        };
        let with = |x: &[f64]| match &time {
            TimeFeatures::Bochner { .. } => TimeFeatures::Bochner {
                frequencies: x.to_vec().into(),
            },
            TimeFeatures::Mercer {
                half_periods,
                coefficients,
            } => {
                let (b, c) = x.split_at(half_periods.len());
                TimeFeatures::Mercer {
                    half_periods: b.to_vec().into(),
                    coefficients: Array2::from_shape_vec(coefficients.raw_dim(), c.to_vec())
                        .unwrap(),
                }
            }
        };
        let got = flat(&time.features_vjp(t.view(), cotangent.view()).unwrap());
        let want = finite_difference(&flat(&time), |x| {
            (with(x).features(t.view()).unwrap() * &cotangent).sum()
        });
        assert!(relative_error(&got, &want) < 1e-7, "{got:?} {want:?}");
    }
}

#[test]
fn a_tiny_half_period_without_effect_has_a_gradient_of_zero() {
    for (coefficients, t) in [(array![[1.0]], 2.0), (array![[0.3, 0.5, 0.2]], 0.0)] {
        let cotangent = Array2::ones((1, coefficients.len()));
        let half_periods = array![1e-200];
        let time = TimeFeatures::Mercer {
            half_periods,
            coefficients,
        };
        let gradients = time.features_vjp(array![t].view(), cotangent.view());
        let TimeFeatures::Mercer { half_periods, .. } = gradients.unwrap() else {
            panic!("the gradients of another variant");
        };
        assert_eq!(half_periods, array![0.0]);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let named = |time: &TimeFeatures<f64>, t: f64| {
        time.features(array![0.0, t].view())
            .unwrap_err()
            .to_string()
    };
    assert!(named(&bochner(), f64::NAN).contains("`t`"));
    assert!(named(&mercer(array![[1.0, 1.0], [1.0, 1.0]]), 1.0).contains("coefficients"));
    assert!(named(&mercer(array![[1.0], [-0.1]]), 1.0).contains("coefficients"));
    let half_periods = array![0.0];
    let zero = TimeFeatures::Mercer {
        half_periods,
        coefficients: array![[1.0]],
    };
    assert!(named(&zero, 1.0).contains("half_periods"));
    assert!(
        bochner()
            .features_vjp(array![1.0].view(), Array2::zeros((1, 5)).view())
            .is_err()
    );
}
