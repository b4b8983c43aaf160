//! Spectral points and the features they give.

mod blocks;
mod kernel;
mod map;
mod nonstationary;
mod one_pass;
mod squared;
mod stationary;

pub use kernel::{KernelMatrixGradients, kernel_matrix, kernel_matrix_vjp};
pub use map::{
    FeatureMapGradients, feature_map, feature_map_into, feature_map_vjp, feature_map_vjp_in,
};
pub use one_pass::feature_map_with_vjp;
pub use squared::{squared_kernel_matrix, squared_kernel_matrix_vjp};

use bochner_numerics::{ArgumentError, Buffer, Buffers, Real, argument};
use ndarray::ArrayView2;

/// The frequencies at which a kernel is sampled: $R$ points in $\mathbb{R}^d$ for a stationary
/// kernel, $R$ pairs of points for a non-stationary one.
///
/// Bochner's theorem writes a stationary kernel as an average of $\cos w \cdot (x - y)$ over a
/// density of frequencies $w$; Yaglom's writes a non-stationary one as an average over a density
/// of pairs $(w_1, w_2)$. The points are draws from that density, or parameters in its place.
///
/// # Shapes
/// Every array is `[R, d]`.
#[derive(Clone, Copy, Debug)]
pub enum SpectralPoints<'a, T> {
    /// Points of $f_S(x, y) = \frac1R \sum_r \cos w_r \cdot (x - y)$.
    Stationary {
        /// The points $w_r$.
        w: ArrayView2<'a, T>,
    },
    /// Pairs of points of $f_{NS}$; with `w1 = w2` it is $f_S$.
    Nonstationary {
        /// The first point of each pair.
        w1: ArrayView2<'a, T>,
        /// The second point of each pair.
        w2: ArrayView2<'a, T>,
    },
}

impl<T: Real> SpectralPoints<'_, T> {
    /// The number $R$ of points, or of pairs.
    pub fn count(&self) -> usize {
        self.first().nrows()
    }

    /// The width $d$ of the inputs.
    pub fn width(&self) -> usize {
        self.first().ncols()
    }

    /// The $c$ of $f(x, y) = \phi(x) \cdot \phi(y) / c$: $R$ or $4R$.
    pub fn normaliser(&self) -> T {
        let features_per_point = match self {
            Self::Stationary { .. } => 1.0,
            Self::Nonstationary { .. } => 4.0,
        };
        T::of(features_per_point * self.count() as f64)
    }

    fn first(&self) -> ArrayView2<'_, T> {
        match self {
            Self::Stationary { w } => w.view(),
            Self::Nonstationary { w1, .. } => w1.view(),
        }
    }

    /// What the first points are called.
    fn name(&self) -> &'static str {
        match self {
            Self::Stationary { .. } => "w",
            Self::Nonstationary { .. } => "w1",
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if let Self::Nonstationary { w1, w2 } = self {
            argument::shape("w2", w1.shape(), w2.shape())?;
        }
        argument::not_empty(self.name(), self.first().shape())
    }

    /// Whether the points have the width of the inputs.
    fn check_width(&self, width: usize) -> Result<(), ArgumentError> {
        argument::shape(self.name(), &[self.count(), width], self.first().shape())
    }

    fn check_input(&self, what: &'static str, x: &ArrayView2<T>) -> Result<(), ArgumentError> {
        argument::shape(what, &[x.nrows(), self.width()], x.shape())
    }

    /// Rows of [`stacked`](Self::stacked).
    fn stacked_rows(&self) -> usize {
        match self {
            Self::Stationary { .. } => self.count(),
            Self::Nonstationary { .. } => 2 * self.count(),
        }
    }

    /// All points as the rows of one row-major matrix, `w1` above `w2`, so that one product
    /// projects on both.
    fn stacked(&self, buffers: &Buffers<T>) -> Buffer<T> {
        let mut all = buffers.empty(self.stacked_rows() * self.width());
        let mut add = |w: &ArrayView2<T>| match w.as_slice() {
            Some(w) => all.extend_from_slice(w),
            None => w.rows().into_iter().for_each(|w| match w.as_slice() {
                Some(w) => all.extend_from_slice(w),
                None => all.extend(w),
            }),
        };
        match self {
            Self::Stationary { w } => add(w),
            Self::Nonstationary { w1, w2 } => [w1, w2].into_iter().for_each(add),
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;
    use ndarray::{Array2, array};

    #[test]
    fn the_normaliser_counts_pairs_four_times() {
        let w = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let stationary = SpectralPoints::Stationary { w: w.view() };
        let (w1, w2) = (w.view(), w.view());
        let nonstationary = SpectralPoints::Nonstationary { w1, w2 };
        assert_eq!((stationary.count(), stationary.width()), (2, 3));
        assert_eq!(stationary.normaliser(), 2.0);
        assert_eq!(nonstationary.normaliser(), 8.0);
    }

    #[test]
    fn ill_formed_points_are_named() {
        let [none, one, two] = [0, 1, 2].map(|count| Array2::<f32>::zeros((count, 3)));
        let empty = SpectralPoints::Stationary { w: none.view() };
        assert_eq!(refused(empty.check()), "w");
        let uneven = SpectralPoints::Nonstationary {
            w1: one.view(),
            w2: two.view(),
        };
        assert_eq!(refused(uneven.check()), "w2");
    }
}
