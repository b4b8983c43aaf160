//! The similarity: how alike a query and a key are, as a kernel.

use crate::Error;
use crate::call::units::log2_largest;
use crate::error::same_shape;
use bochner_kernels::SpectralPoints;
use bochner_numerics::Real;
use ndarray::{Array4, ArrayView3, ArrayView4, Axis};

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
#[derive(Clone, Copy, Debug)]
pub enum Points<'a, T> {
    /// $f_S(x,y) = \frac1R \sum_r \cos(w_r \cdot (x-y))$.
    Stationary {
        /// The frequencies.
        w: ArrayView4<'a, T>,
    },
    /// $f_{NS} = \phi(x) \cdot \phi(y) / 4R$ with
    /// $\phi = [\cos w_{1r}x + \cos w_{2r}x] \mathbin{+\!\!+} [\sin w_{1r}x + \sin w_{2r}x]$.
    Nonstationary {
        /// The first frequencies.
        w1: ArrayView4<'a, T>,
        /// The second frequencies.
        w2: ArrayView4<'a, T>,
    },
}

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
                points: match points {
                    Points::Stationary { w } => Points::Stationary { w: w.reborrow() },
                    Points::Nonstationary { w1, w2 } => Points::Nonstationary {
                        w1: w1.reborrow(),
                        w2: w2.reborrow(),
                    },
                },
                floor,
            },
        }
    }
}

/// Gradients with respect to [`Points`], shaped as they were given.
#[derive(Clone, Debug, PartialEq)]
pub struct PointsGradients<T> {
    /// With respect to `w`, or to `w1`.
    pub w1: Array4<T>,
    /// With respect to `w2` of a non-stationary kernel.
    pub w2: Option<Array4<T>>,
}

impl<'a, T: Real> Points<'a, T> {
    /// Stationary points `[M, R, d]` shared by all examples.
    pub fn shared_stationary(w: ArrayView3<'a, T>) -> Self {
        Self::Stationary {
            w: w.insert_axis(Axis(0)),
        }
    }

    /// Non-stationary points `[M, R, d]` shared by all examples.
    pub fn shared_nonstationary(w1: ArrayView3<'a, T>, w2: ArrayView3<'a, T>) -> Self {
        Self::Nonstationary {
            w1: w1.insert_axis(Axis(0)),
            w2: w2.insert_axis(Axis(0)),
        }
    }

    /// The points of one head; shared points serve every example.
    pub(crate) fn head(&self, example: usize, head: usize) -> SpectralPoints<'a, T> {
        let pick = |w: ArrayView4<'a, T>| {
            let set = self.set(example);
            w.index_axis_move(Axis(0), set)
                .index_axis_move(Axis(0), head)
        };
        match *self {
            Self::Stationary { w } => SpectralPoints::Stationary { w: pick(w) },
            Self::Nonstationary { w1, w2 } => SpectralPoints::Nonstationary {
                w1: pick(w1),
                w2: pick(w2),
            },
        }
    }

    /// Which set of points an example uses.
    pub(crate) fn set(&self, example: usize) -> usize {
        if self.first().len_of(Axis(0)) == 1 {
            0
        } else {
            example
        }
    }

    /// The number R of points.
    pub(crate) fn count(&self) -> usize {
        self.first().len_of(Axis(2))
    }

    /// The number of features, a cosine and a sine a point.
    pub(crate) fn features(&self) -> usize {
        2 * self.count()
    }

    /// The normaliser c of $f = \phi \cdot \phi / c$.
    pub(crate) fn normaliser(&self) -> f64 {
        self.head(0, 0).normaliser().as_f64()
    }

    /// The arrays of points: one of a stationary kernel, two of another.
    pub(crate) fn sets(&self) -> Vec<ArrayView4<'a, T>> {
        match *self {
            Self::Stationary { w } => vec![w],
            Self::Nonstationary { w1, w2 } => vec![w1, w2],
        }
    }

    /// Points of one or two arrays.
    ///
    /// # Panics
    /// If there are none or more.
    pub(crate) fn of_sets(sets: &'a [Array4<T>]) -> Self {
        match sets {
            [w] => Self::Stationary { w: w.view() },
            [w1, w2] => Self::Nonstationary {
                w1: w1.view(),
                w2: w2.view(),
            },
            sets => unreachable!("{} sets of spectral points", sets.len()),
        }
    }

    /// The logarithm of the largest finite coordinate.
    pub(crate) fn log2_largest(&self) -> f64 {
        match *self {
            Self::Stationary { w } => log2_largest(w),
            Self::Nonstationary { w1, w2 } => log2_largest(w1).max(log2_largest(w2)),
        }
    }

    pub(crate) fn zero_gradients(&self) -> PointsGradients<T> {
        let zeros = Array4::zeros(self.first().raw_dim());
        PointsGradients {
            w2: matches!(self, Self::Nonstationary { .. }).then(|| zeros.clone()),
            w1: zeros,
        }
    }

    pub(crate) fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
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

    fn first(&self) -> ArrayView4<'a, T> {
        match *self {
            Self::Stationary { w } | Self::Nonstationary { w1: w, .. } => w,
        }
    }
}
