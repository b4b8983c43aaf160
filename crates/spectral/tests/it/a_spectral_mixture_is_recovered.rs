//! Fits find the components of a known density.

use bochner_numerics::Seed;
use bochner_spectral::{
    DensityFitConfig, DirectEstimator, GaussianEstimator, ImplicitEstimator, KernelValues, Prior,
    affine_init, fit_nonstationary, fit_stationary,
};
use example::{Components, MEANS, WEIGHTS};
use ndarray::{Array1, Array2, array};

#[path = "../../examples/recover_spectral_mixture.rs"]
#[expect(dead_code, reason = "its `main` only prints")]
mod example;

fn close(found: Components, frequency: f64, share: f64) {
    for ((f, s), (mean, weight)) in found.into_iter().zip(MEANS.into_iter().zip(WEIGHTS)) {
        assert!((f / mean - 1.0).abs() < frequency, "{found:?}");
        assert!((s - weight).abs() < share, "{found:?}");
    }
}

#[test]
fn direct_points_recover_the_mixture_from_its_kernel() {
    let (found, error) = example::from_kernel().unwrap();
    close(found, 0.03, 0.05);
    assert!(error < 2e-3, "{error}");
}

#[test]
fn direct_points_recover_the_mixture_from_samples() {
    let (found, _) = example::from_samples().unwrap();
    close(found, 0.04, 0.06);
}

#[test]
fn a_density_around_zero_cannot() {
    assert!(example::gaussian_error().unwrap() > 0.02);
}

/// An RBF kernel with a lengthscale for each of two dimensions, at lags from the origin.
struct Rbf {
    x: Array2<f64>,
    y: Array2<f64>,
    values: Array2<f64>,
}

const STD: [f64; 2] = [0.5, 2.0];

fn rbf() -> Rbf {
    let mut stream = Seed::new(5).stream("lags");
    let x: Array2<f64> = Prior { std: 1.5 }.sample((80, 2), &mut stream).unwrap();
    let values = Array2::from_shape_fn((80, 1), |(i, _)| {
        let scaled = STD[0].powi(2) * x[[i, 0]].powi(2) + STD[1].powi(2) * x[[i, 1]].powi(2);
        (-0.5 * scaled).exp()
    });
    let y = array![[0.0, 0.0]];
    Rbf { x, y, values }
}

impl Rbf {
    fn target(&self) -> KernelValues<'_> {
        KernelValues {
            x: self.x.view(),
            y: self.y.view(),
            values: self.values.view(),
        }
    }
}

fn noise(rows: usize, purpose: &str) -> Array2<f64> {
    let mut stream = Seed::new(5).stream(purpose);
    Prior { std: 1.0 }.sample((rows, 2), &mut stream).unwrap()
}

#[test]
fn a_gaussian_density_recovers_the_lengthscales() {
    let mut density = GaussianEstimator {
        log_std: array![0.0, 0.0],
        eps: noise(1000, "eps"),
    };
    let config = DensityFitConfig {
        steps: 100,
        ..Default::default()
    };
    fit_stationary(&mut density, &rbf().target(), &config).unwrap();
    for (log_std, want) in density.log_std.iter().zip(STD) {
        assert!((log_std.exp() / want - 1.0).abs() < 0.06, "{density:?}");
    }
}

fn implicit(purpose: &str) -> ImplicitEstimator {
    let mut stream = Seed::new(5).stream(purpose);
    let layers = [(); 3].map(|()| affine_init::<f64>(2, 2, &mut stream));
    ImplicitEstimator {
        weights: layers.clone().map(|layer| layer.0),
        biases: layers.map(|layer| layer.1 + Array1::from_elem(2, 0.1)),
        slope: 0.2,
        z: noise(100, "z"),
    }
}

#[test]
fn an_implicit_density_comes_close_to_the_kernel() {
    let mut density = implicit("layers");
    let config = DensityFitConfig {
        steps: 400,
        ..Default::default()
    };
    let fit = fit_stationary(&mut density, &rbf().target(), &config).unwrap();
    assert!(fit.losses[0] > 0.05, "{}", fit.losses[0]);
    assert!(fit.losses[fit.best] < 4e-3, "{}", fit.losses[fit.best]);
}

#[test]
fn pairs_of_points_come_close_to_the_kernel() {
    let (mut first, mut second) = (
        implicit("layers"),
        DirectEstimator {
            w: noise(100, "second"),
        },
    );
    let config = DensityFitConfig {
        steps: 200,
        ..Default::default()
    };
    let rbf = rbf();
    let fit = fit_nonstationary(&mut first, &mut second, &rbf.target(), &config).unwrap();
    assert!(fit.losses[fit.best] < 0.1 * fit.losses[0]);
}

/// The first step of Adam has the length of the learning rate along every parameter.
#[test]
fn each_density_of_a_pair_steps_by_its_own_gradient() {
    let start = ["first", "second"].map(|purpose| DirectEstimator {
        w: noise(5, purpose),
    });
    let [mut first, mut second] = start.clone();
    let config = DensityFitConfig {
        steps: 1,
        learning_rate: 1e-3,
    };
    let fit = fit_nonstationary(&mut first, &mut second, &rbf().target(), &config).unwrap();
    assert_eq!(fit.best, 1);
    for (before, after) in start.iter().zip([first, second]) {
        let lengths = (after.w - &before.w).mapv(f64::abs);
        let off = lengths.mapv(|length| (length / 1e-3 - 1.0).abs());
        assert!(off.iter().all(|&off| off < 1e-3), "{lengths}");
    }
}
