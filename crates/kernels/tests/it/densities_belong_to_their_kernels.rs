//! Densities integrate to one, have the kernel as their Fourier transform, and are what is drawn.

use crate::kernels::with_densities;
use crate::testing::refused;
use bochner_kernels::{
    Cosine, GaussianDensity, Lengthscale, RbfConfig, SpectralDensity, SpectralMixtureConfig,
    Stationary, StudentTDensity,
};
use bochner_numerics::Seed;
use ndarray::{Array2, array};
use std::f64::consts::{FRAC_PI_2, PI, TAU};

fn at(density: &dyn SpectralDensity<f64>, w: f64) -> f64 {
    density.log_density(array![[w]].view()).unwrap()[0].exp()
}

/// The midpoint rule.
fn integral(from: f64, to: f64, steps: usize, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / steps as f64;
    let points = (0..steps).map(|i| f(from + (i as f64 + 0.5) * step));
    step * points.sum::<f64>()
}

/// The integral over the whole line: with $w = \tan \theta$ the heaviest tail here is flat.
fn over_the_line(f: impl Fn(f64) -> f64) -> f64 {
    integral(-FRAC_PI_2, FRAC_PI_2, 4000, |theta| {
        f(theta.tan()) / theta.cos().powi(2)
    })
}

#[test]
fn densities_on_the_line_integrate_to_one() {
    for kernel in with_densities(1) {
        let density = kernel.density(1).unwrap();
        let total = over_the_line(|w| at(density.as_ref(), w));
        assert!((total - 1.0).abs() < 1e-6, "{density:?}: {total}");
    }
}

#[test]
fn elliptic_densities_integrate_to_one_in_more_dimensions() {
    let scales = [0.5, 2.0, 1.5];
    for (width, sphere) in [(2, TAU), (3, 2.0 * TAU)] {
        let scales = scales[..width].to_vec();
        let mut densities: Vec<Box<dyn SpectralDensity<f64>>> =
            vec![Box::new(GaussianDensity::new(scales.clone()).unwrap())];
        for degrees in [1, 3, 5] {
            let density = StudentTDensity::new(degrees, scales.clone());
            densities.push(Box::new(density.unwrap()));
        }
        let volume: f64 = scales.iter().product();
        for density in densities {
            let shell = |r: f64| {
                let mut w = Array2::zeros((1, width));
                w[[0, 0]] = r * scales[0];
                let p = density.log_density(w.view()).unwrap()[0].exp();
                sphere * volume * r.powi(width as i32 - 1) * p
            };
            let total = over_the_line(|r| if r > 0.0 { shell(r) } else { 0.0 });
            assert!((total - 1.0).abs() < 1e-5, "{density:?}: {total}");
        }
    }
}

#[test]
fn mixtures_have_the_kernel_as_their_transform_in_the_plane() {
    for cosine in [Cosine::Joint, Cosine::Product] {
        let config = SpectralMixtureConfig {
            weights: array![0.5, 1.5],
            means: array![[0.2, -0.3], [0.4, 0.1]],
            variances: array![[0.02, 0.01], [0.01, 0.03]],
            cosine,
        };
        let kernel: Box<dyn Stationary<f64>> = Box::new(config.build().unwrap());
        let density = kernel.density(2).unwrap();
        let (steps, half) = (240, 9.0);
        let step = 2.0 * half / steps as f64;
        let w = Array2::from_shape_fn((steps * steps, 2), |(i, n)| {
            let place = if n == 0 { i / steps } else { i % steps };
            (place as f64 + 0.5) * step - half
        });
        let p = density.log_density(w.view()).unwrap();
        for t in [array![0.0, 0.0], array![0.7, 0.4], array![-1.1, 0.9]] {
            let terms = w.rows().into_iter().zip(&p);
            let transform: f64 = terms.map(|(w, p)| w.dot(&t).cos() * p.exp()).sum();
            let k = kernel.value(t.view(), array![0.0, 0.0].view()).unwrap();
            let error = kernel.variance() * transform * step * step - k;
            assert!(error.abs() < 1e-7, "{cosine:?} at {t}: {error}");
        }
    }
}

#[test]
fn kernels_are_the_fourier_transforms_of_their_densities() {
    // The tail of the roughest, of 1 / w^2, is beyond this quadrature; its draws are tested.
    for kernel in with_densities(1)
        .into_iter()
        .enumerate()
        .filter(|(i, _)| *i != 1)
    {
        let kernel = kernel.1;
        let density = kernel.density(1).unwrap();
        for t in [0.0, 0.4, 1.3] {
            let p = |w: f64| at(density.as_ref(), w) * (w * t).cos();
            let transform = 2.0 * integral(0.0, 400.0, 40_000, p);
            let k = kernel.value(array![t].view(), array![0.0].view()).unwrap();
            let error = kernel.variance() * transform - k;
            assert!(error.abs() < 1e-6, "{density:?} at {t}: {error}");
        }
    }
}

#[test]
fn draws_follow_the_density() {
    let count = 40_000;
    for (i, kernel) in with_densities(1).into_iter().enumerate() {
        let density = kernel.density(1).unwrap();
        let mut stream = Seed::new(6).nth(i as u64).stream("frequencies");
        let w = density.sample(count, &mut stream).unwrap();
        for edge in [0.5, 1.5, 4.0] {
            let want = integral(-PI, edge, 4000, |w| at(density.as_ref(), w));
            let inside = w.iter().filter(|w| (-PI..edge).contains(*w)).count();
            let got = inside as f64 / count as f64;
            let bound = 5.0 * (want * (1.0 - want) / count as f64).sqrt();
            assert!((got - want).abs() < bound, "{density:?}: {got}, not {want}");
        }
    }
}

#[test]
fn moments_of_draws_are_those_of_the_density() {
    let count = 100_000;
    let second = |density: &dyn SpectralDensity<f64>, purpose| {
        let mut stream = Seed::new(7).stream(purpose);
        let w = density.sample(count, &mut stream).unwrap();
        w.t().dot(&w) / count as f64
    };
    let close = |got: &Array2<f64>, want: &Array2<f64>| {
        let scale = want.diag().mapv(f64::sqrt);
        got.indexed_iter().all(|((i, j), g)| {
            let error = (g - want[[i, j]]) / (scale[i] * scale[j]);
            error.abs() < 0.05
        })
    };
    let gaussian = GaussianDensity::new(vec![0.5, 2.0]).unwrap();
    let want = array![[0.25, 0.0], [0.0, 4.0]];
    assert!(close(&second(&gaussian, "gaussian"), &want));
    let student = StudentTDensity::new(5, vec![0.5, 2.0]).unwrap();
    let want = &want * (5.0 / 3.0);
    assert!(close(&second(&student, "student"), &want));

    for (cosine, covariance) in [(Cosine::Joint, -0.15), (Cosine::Product, 0.0)] {
        let config = SpectralMixtureConfig {
            weights: array![2.0],
            means: array![[0.5, -0.3]],
            variances: array![[0.1, 0.2]],
            cosine,
        };
        let density = config.build().unwrap().density(2).unwrap();
        let want = array![[0.35, covariance], [covariance, 0.29]] * (TAU * TAU);
        let got = second(density.as_ref(), "mixture");
        assert!(close(&got, &want), "{cosine:?}: {got}");
    }
}

#[test]
fn widths_that_do_not_fit_are_refused() {
    let lengthscale = Lengthscale::PerDimension(vec![1.0, 2.0]);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    assert!(kernel.density(2).is_ok() && kernel.density(3).is_err());
    let shared = Lengthscale::Shared(1.0);
    let kernel = RbfConfig {
        lengthscale: shared,
    };
    let kernel = kernel.build().unwrap();
    assert!(kernel.density(3).is_ok() && kernel.density(0).is_err());
    let density = kernel.density(3).unwrap();
    assert!(density.log_density(Array2::zeros((1, 2)).view()).is_err());
    let mut stream = Seed::new(0).stream("none");
    assert!(density.sample(0, &mut stream).is_err());
}

#[test]
fn settings_that_cannot_stand_are_named() {
    for std in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(GaussianDensity::new(vec![1.0, std])), "std");
    }
    assert_eq!(refused(GaussianDensity::<f64>::new(Vec::new())), "std");
    assert_eq!(refused(StudentTDensity::new(0, vec![1.0])), "degrees");
    assert_eq!(refused(StudentTDensity::new(3, vec![1.0, -1.0])), "scale");
}
