//! The squared kernel of freshly drawn points is close to softmax attention's similarity.

use bochner_kernels::{SpectralPoints, kernel_matrix};
use bochner_numerics::Seed;
use bochner_spectral::{DirectInit, direct_points};
use ndarray::{Array2, Axis};

const WIDTH: usize = 4;

/// The largest difference of $f_{NS}^2$ from $\exp(-|x - y|^2 / (2 \sqrt d))$.
fn error(init: DirectInit) -> f64 {
    let mut stream = Seed::new(12).stream("spectral points");
    let points = direct_points::<f64>(1, 20_000, WIDTH, init, &mut stream).unwrap();
    let x = Array2::from_shape_fn((6, WIDTH), |(t, l)| 0.9 * (2.3 * t as f64 + l as f64).sin());
    let (w1, w2) = (
        points.w1.index_axis(Axis(0), 0),
        points.w2.index_axis(Axis(0), 0),
    );
    let f = kernel_matrix(
        x.view(),
        x.view(),
        &SpectralPoints::Nonstationary { w1, w2 },
    )
    .unwrap();
    let softmax = |i: usize, j: usize| {
        let gap = &x.row(i) - &x.row(j);
        (-gap.dot(&gap) / (2.0 * (WIDTH as f64).sqrt())).exp()
    };
    f.indexed_iter()
        .map(|((i, j), f)| (f * f - softmax(i, j)).abs())
        .fold(0.0, f64::max)
}

#[test]
fn the_near_softmax_start_is_near_softmax() {
    assert!(error(DirectInit::NearSoftmax) < 0.03);
}

#[test]
fn the_kaiming_start_is_far_from_it() {
    assert!(error(DirectInit::KaimingUniform) > 0.3);
}
