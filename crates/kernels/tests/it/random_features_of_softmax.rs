//! The error of random features of $e^{x \cdot y}$ on average over the draws (Performer, section 2).

use bochner_kernels::{
    Coupling, Lengthscale, Norms, RandomFeatureMap, RbfConfig, coupled_frequencies,
    random_feature_map,
};
use bochner_numerics::Seed;
use ndarray::{Array2, array};

const WIDTH: usize = 8;
const DRAWS: u64 = 2_000;

const MAPS: [RandomFeatureMap; 3] = [
    RandomFeatureMap::Positive,
    RandomFeatureMap::Hyperbolic,
    RandomFeatureMap::Trigonometric,
];

/// Two points not far from each other, whose product is -0.18.
fn points() -> Array2<f64> {
    array![
        [0.3, -0.2, 0.1, 0.4, 0.0, -0.3, 0.2, 0.1],
        [-0.1, 0.3, 0.2, -0.2, 0.3, 0.1, -0.1, 0.2]
    ]
}

/// The mean of the estimates, their mean squared error and the standard deviation of their mean.
struct Measured {
    mean: f64,
    error: f64,
    deviation: f64,
}

fn measured(
    map: RandomFeatureMap,
    how: (Coupling, Norms),
    count: usize,
    draws: u64,
    x: &Array2<f64>,
) -> Measured {
    let lengthscale = Lengthscale::Shared(1.0);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let exact = x.row(0).dot(&x.row(1)).exp();
    let (mut sum, mut squares, mut errors) = (0.0, 0.0, 0.0);
    for draw in 0..draws {
        let mut stream = Seed::new(41).nth(draw).stream("frequencies");
        let w = coupled_frequencies::<f64>(&kernel, WIDTH, count, how, &mut stream);
        let phi = random_feature_map(x.view(), w.unwrap().w.view(), map).unwrap();
        let estimate = phi.row(0).dot(&phi.row(1));
        sum += estimate;
        squares += estimate * estimate;
        errors += (estimate - exact).powi(2);
    }
    let draws = draws as f64;
    let mean = sum / draws;
    Measured {
        mean,
        error: errors / draws,
        deviation: ((squares / draws - mean * mean) / draws).sqrt(),
    }
}

const INDEPENDENT: (Coupling, Norms) = (Coupling::Independent, Norms::Chi);
const ORTHOGONAL: (Coupling, Norms) = (Coupling::Orthogonal, Norms::Chi);
const SIMPLEX: (Coupling, Norms) = (Coupling::Simplex, Norms::Chi);

#[test]
fn the_mean_is_the_exponential_of_the_product() {
    let x = points();
    let exact = x.row(0).dot(&x.row(1)).exp();
    for map in MAPS {
        for how in [INDEPENDENT, ORTHOGONAL, SIMPLEX] {
            let got = measured(map, how, WIDTH, DRAWS, &x);
            let off = (got.mean - exact).abs() / got.deviation;
            assert!(off < 6.0, "{map:?}, {how:?}: {off} standard deviations");
        }
    }
}

/// The mean squared errors of independent draws in closed form.
#[test]
fn independent_draws_err_as_the_formulas_say() {
    let x = points();
    let (sum, difference) = (&x.row(0) + &x.row(1), &x.row(0) - &x.row(1));
    let (sum, difference) = (sum.dot(&sum), difference.dot(&difference));
    let (exact, m) = (x.row(0).dot(&x.row(1)).exp(), WIDTH as f64);
    let positive = sum.exp() * exact.powi(2) * (1.0 - (-sum).exp()) / m;
    let want = [
        positive,
        0.5 * (1.0 - (-sum).exp()) * positive,
        sum.exp() / exact.powi(2) * (1.0 - (-difference).exp()).powi(2) / (2.0 * m),
    ];
    for (map, want) in MAPS.into_iter().zip(want) {
        let got = measured(map, INDEPENDENT, WIDTH, DRAWS, &x).error;
        assert!((got / want - 1.0).abs() < 0.15, "{map:?}: {got} for {want}");
    }
}

/// Coupled frequencies repeat each other less, those of a simplex least.
#[test]
fn coupling_lowers_the_error_of_positive_features() {
    let x = points();
    // The gain is a tenth of the error: it shows in the difference of two errors only after many draws.
    let (map, draws) = (RandomFeatureMap::Positive, 10 * DRAWS);
    let [independent, orthogonal, simplex] =
        [INDEPENDENT, ORTHOGONAL, SIMPLEX].map(|how| measured(map, how, WIDTH, draws, &x).error);
    let (m, width) = (WIDTH as f64, WIDTH as f64);
    let (exact, norms) = (x.row(0).dot(&x.row(1)).exp(), x.mapv(|x| x * x).sum());
    let gain = 2.0 * (m - 1.0) / (m * (width + 2.0)) * (exact - (-norms / 2.0).exp()).powi(2);
    assert!(
        orthogonal < independent - 0.8 * gain,
        "{orthogonal} {independent} {gain}"
    );
    assert!(simplex < 0.9 * orthogonal, "{simplex} {orthogonal}");
}

/// The mean with norms of one size lies below the kernel, not by much.
#[test]
fn fixed_norms_give_the_regularised_kernel() {
    let x = points() * 2.0;
    let exact = x.row(0).dot(&x.row(1)).exp();
    let how = (Coupling::Orthogonal, Norms::Root);
    let got = measured(RandomFeatureMap::Positive, how, WIDTH, DRAWS, &x).mean / exact;
    assert!(
        got < 1.0 && got > 1.0 - 2.0 / (WIDTH as f64).cbrt(),
        "{got}"
    );
    // It is another kernel.
    let chi = measured(RandomFeatureMap::Positive, ORTHOGONAL, WIDTH, DRAWS, &x);
    assert!(
        (got - chi.mean / exact).abs() > 3.0 * chi.deviation / exact,
        "{got}"
    );
}

/// One of the maps makes no error if one point is the other, or its mirror image.
#[test]
fn each_map_is_exact_somewhere() {
    let x = points();
    let one = |sign: f64| ndarray::stack![ndarray::Axis(0), x.row(0), sign * &x.row(0)];
    let error = |map, x: &Array2<f64>| measured(map, INDEPENDENT, 3, 20, x).error;
    assert!(error(RandomFeatureMap::Trigonometric, &one(1.0)) < 1e-28);
    assert!(error(RandomFeatureMap::Positive, &one(-1.0)) < 1e-28);
    assert!(error(RandomFeatureMap::Trigonometric, &one(-1.0)) > 1e-6);
    assert!(error(RandomFeatureMap::Positive, &one(1.0)) > 1e-6);
}
