//! The similarity: how alike a query and a key are, as a kernel.

use crate::Error;
use crate::call::units::log2_largest;
use crate::error::same_shape;
use bochner_kernels::SpectralPoints;
use bochner_numerics::Real;
use ndarray::{Axis, Ix4};

/// The similarity $s_{ij} \ge 0$ of a query and a key.
#[derive(Clone, Copy, Debug)]
pub enum Similarity<'a, T> {
    /// $s = \exp(-|q-k|^2 / (2\sqrt d))$, softmax attention's own kernel (Proposition 1).
    Rbf,
    /// $s = \exp(-2 \sin^2(\pi |q-k| / P) / \sqrt d)$: alike at every whole number of periods.
    Expsin {
        /// The period P, from 1e-30 to 1e30.
        period: f64,
    },
    /// $s = (q \cdot k / \sqrt d)^2$, squared so that it is not negative.
    Linear,
    /// $s = f(q,k)^2 + e$ with a kernel given by its spectral points (equations 12-16).
    Squared {
        /// The spectral points of every head.
        points: Points<'a, T>,
        /// The floor e, from 0 to 1, the largest that $f^2$ can be; 1e-5 by default elsewhere.
        floor: f64,
    },
}

/// Spectral points of all heads, `[1 or B, M, R, d]`: shared by the examples or one set each.
pub type Points<'a, T> = SpectralPoints<'a, T, Ix4>;

/// Gradients with respect to [`Points`], shaped as they were given.
pub type PointsGradients<T> = bochner_kernels::PointsGradients<T, Ix4>;

impl<'a, T: Real> Similarity<'a, T> {
    /// The same for a shorter time.
    pub(crate) fn reborrow<'b>(&self) -> Similarity<'b, T>
    where
        'a: 'b,
    {
        match *self {
            Self::Rbf => Similarity::Rbf,
            Self::Expsin { period } => Similarity::Expsin { period },
            Self::Linear => Similarity::Linear,
            Self::Squared { points, floor } => Similarity::Squared {
                points: points.map(|w| w.reborrow()),
                floor,
            },
        }
    }
}

/// What attention asks of the points of all heads.
pub(crate) trait PointsOfHeads<'a, T> {
    /// The points of one head; shared points serve every example.
    fn head(&self, example: usize, head: usize) -> SpectralPoints<'a, T>;

    /// Which set of points an example uses.
    fn set(&self, example: usize) -> usize;

    /// The logarithm of the largest finite coordinate.
    fn log2_largest(&self) -> f64;

    /// `Ok` if the points fit the sequences.
    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error>;
}

impl<'a, T: Real> PointsOfHeads<'a, T> for Points<'a, T> {
    fn head(&self, example: usize, head: usize) -> SpectralPoints<'a, T> {
        let set = self.set(example);
        self.map(|w| {
            w.index_axis_move(Axis(0), set)
                .index_axis_move(Axis(0), head)
        })
    }

    fn set(&self, example: usize) -> usize {
        if self.first().len_of(Axis(0)) == 1 {
            0
        } else {
            example
        }
    }

    fn log2_largest(&self) -> f64 {
        self.sets()
            .map(log2_largest)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        let first = self.first();
        let shape = first.shape();
        let sets = if shape[0] == 1 { 1 } else { batch };
        let what = match self {
            Self::Stationary { .. } => "spectral points w, of one set or one an example,",
            Self::Nonstationary { .. } => "spectral points w1, of one set or one an example,",
        };
        same_shape(what, &[sets, heads, shape[2], width], shape)?;
        if shape[2] == 0 {
            return Err(Error::Empty {
                what: "spectral points",
                axis: "R",
            });
        }
        match self {
            Self::Stationary { .. } => Ok(()),
            Self::Nonstationary { w2, .. } => same_shape("spectral points w2", shape, w2.shape()),
        }
    }
}
