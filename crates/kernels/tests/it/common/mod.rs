//! Small random inputs and points.

use bochner_kernels::SpectralPoints;
use ndarray::Array2;
use proptest::collection::vec;
use proptest::prelude::*;

/// Angles reach a few hundred here, so their rounding error a few hundred units in the last place.
pub(crate) const ROUNDING: f64 = 1e-12;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) x: Array2<f64>,
    pub(crate) y: Array2<f64>,
    pub(crate) w1: Array2<f64>,
    pub(crate) w2: Array2<f64>,
}

impl Case {
    pub(crate) fn stationary(&self) -> SpectralPoints<'_, f64> {
        SpectralPoints::Stationary { w: self.w1.view() }
    }

    pub(crate) fn nonstationary(&self) -> SpectralPoints<'_, f64> {
        SpectralPoints::Nonstationary {
            w1: self.w1.view(),
            w2: self.w2.view(),
        }
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (1..5usize, 1..5usize, 1..6usize, 1..5usize).prop_flat_map(|(tx, ty, points, width)| {
        (
            matrix(tx, width),
            matrix(ty, width),
            matrix(points, width),
            matrix(points, width),
        )
            .prop_map(|(x, y, w1, w2)| Case { x, y, w1, w2 })
    })
}

fn matrix(rows: usize, cols: usize) -> impl Strategy<Value = Array2<f64>> {
    vec(-8.0..8.0f64, rows * cols)
        .prop_map(move |data| Array2::from_shape_vec((rows, cols), data).unwrap())
}
