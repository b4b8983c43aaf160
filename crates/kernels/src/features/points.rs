//! Spectral points, and gradients along them.

use bochner_numerics::{ArgumentError, Buffer, Buffers, Real, argument};
use ndarray::{Array, ArrayView, ArrayView2, ArrayView3, Axis, Dimension, Ix2, Ix4};

/// The frequencies at which a kernel is sampled: $R$ points in $\mathbb{R}^d$ for a stationary
/// kernel, $R$ pairs of points for a non-stationary one.
///
/// Bochner's theorem writes a stationary kernel as an average of $\cos w \cdot (x - y)$ over a
/// density of frequencies $w$; Yaglom's writes a non-stationary one as an average over a density
/// of pairs $(w_1, w_2)$. The points are draws from that density, or parameters in its place.
///
/// # Shapes
/// Every array is `[R, d]`; the points of several kernels stand side by side in arrays with more axes in
/// front, such as `[M, R, d]` for M heads.
#[derive(Clone, Copy, Debug)]
pub enum SpectralPoints<'a, T, D: Dimension = Ix2> {
    /// Points of $f_S(x, y) = \frac1R \sum_r \cos w_r \cdot (x - y)$.
    Stationary {
        /// The points $w_r$.
        w: ArrayView<'a, T, D>,
    },
    /// Pairs of points of $f_{NS} = \phi(x) \cdot \phi(y) / 4R$ with
    /// $\phi = [\cos w_{1r} x + \cos w_{2r} x] \mathbin{+\mkern-6mu +} [\sin w_{1r} x + \sin w_{2r} x]$; with
    /// `w1 = w2` it is $f_S$.
    Nonstationary {
        /// The first point of each pair.
        w1: ArrayView<'a, T, D>,
        /// The second point of each pair.
        w2: ArrayView<'a, T, D>,
    },
}

/// Gradients along [`SpectralPoints`], shaped as these.
#[derive(Clone, Debug, PartialEq)]
pub struct PointsGradients<T, D: Dimension = Ix2> {
    /// Along the points, or along the first of each pair.
    pub w1: Array<T, D>,
    /// Along the second point of each pair; `None` for a stationary kernel.
    pub w2: Option<Array<T, D>>,
}

impl<T: Real, D: Dimension> PointsGradients<T, D> {
    /// Adds other gradients along points of the same shape.
    pub fn add(&mut self, other: &Self) {
        self.w1 += &other.w1;
        if let (Some(w2), Some(other)) = (&mut self.w2, &other.w2) {
            *w2 += other;
        }
    }
}

impl<'a, T: Real, D: Dimension> SpectralPoints<'a, T, D> {
    /// The number $R$ of points, or of pairs.
    pub fn count(&self) -> usize {
        let first = self.first();
        first.len_of(Axis(first.ndim() - 2))
    }

    /// The width $d$ of the inputs.
    pub fn width(&self) -> usize {
        let first = self.first();
        first.len_of(Axis(first.ndim() - 1))
    }

    /// The number $2R$ of features: a cosine and a sine for each point.
    pub fn features(&self) -> usize {
        2 * self.count()
    }

    /// The $c$ of $f(x, y) = \phi(x) \cdot \phi(y) / c$: $R$ or $4R$.
    pub fn normaliser(&self) -> T {
        let features_per_point = match self {
            Self::Stationary { .. } => 1.0,
            Self::Nonstationary { .. } => 4.0,
        };
        T::of(features_per_point * self.count() as f64)
    }

    /// The points, or the first of each pair.
    pub fn first(&self) -> ArrayView<'a, T, D> {
        let (Self::Stationary { w } | Self::Nonstationary { w1: w, .. }) = self;
        w.clone()
    }

    /// The arrays of points: one of a stationary kernel, two of another.
    pub fn sets(&self) -> impl Iterator<Item = ArrayView<'a, T, D>> {
        let second = match self {
            Self::Stationary { .. } => None,
            Self::Nonstationary { w2, .. } => Some(w2.clone()),
        };
        [Some(self.first()), second].into_iter().flatten()
    }

    /// The points of one or two arrays, as [`sets`](Self::sets) gives them.
    ///
    /// # Panics
    /// If there are no arrays, or more than two.
    pub fn of_sets(sets: &'a [Array<T, D>]) -> Self {
        match sets {
            [w] => Self::Stationary { w: w.view() },
            [w1, w2] => Self::Nonstationary {
                w1: w1.view(),
                w2: w2.view(),
            },
            sets => panic!("{} sets of spectral points", sets.len()),
        }
    }

    /// The points that `f` makes of each array, such as those of one head.
    pub fn map<'b, E: Dimension>(
        &self,
        f: impl Fn(ArrayView<'a, T, D>) -> ArrayView<'b, T, E>,
    ) -> SpectralPoints<'b, T, E> {
        match self {
            Self::Stationary { w } => SpectralPoints::Stationary { w: f(w.clone()) },
            Self::Nonstationary { w1, w2 } => SpectralPoints::Nonstationary {
                w1: f(w1.clone()),
                w2: f(w2.clone()),
            },
        }
    }

    /// Gradients that are zero.
    pub fn zero_gradients(&self) -> PointsGradients<T, D> {
        let zeros = Array::zeros(self.first().raw_dim());
        PointsGradients {
            w2: matches!(self, Self::Nonstationary { .. }).then(|| zeros.clone()),
            w1: zeros,
        }
    }
}

impl<'a, T: Real> SpectralPoints<'a, T, Ix4> {
    /// Pairs of points `[M, R, d]` of heads, shared by all examples: `[1, M, R, d]`.
    pub fn shared_nonstationary(w1: ArrayView3<'a, T>, w2: ArrayView3<'a, T>) -> Self {
        Self::Nonstationary {
            w1: w1.insert_axis(Axis(0)),
            w2: w2.insert_axis(Axis(0)),
        }
    }
}

impl<T: Real> SpectralPoints<'_, T> {
    /// The name of the first points.
    fn name(&self) -> &'static str {
        match self {
            Self::Stationary { .. } => "w",
            Self::Nonstationary { .. } => "w1",
        }
    }

    pub(super) fn check(&self) -> Result<(), ArgumentError> {
        if let Self::Nonstationary { w1, w2 } = self {
            argument::shape("w2", w1.shape(), w2.shape())?;
        }
        argument::not_empty(self.name(), self.first().shape())
    }

    /// Refuses inputs of another width than the points.
    pub(super) fn check_width(&self, width: usize) -> Result<(), ArgumentError> {
        argument::shape(self.name(), &[self.count(), width], self.first().shape())
    }

    /// Refuses points that are ill-formed, and inputs of another width.
    pub(super) fn check_with(
        &self,
        name: &'static str,
        x: &ArrayView2<T>,
    ) -> Result<(), ArgumentError> {
        self.check()?;
        argument::shape(name, &[x.nrows(), self.width()], x.shape())
    }

    /// Rows of [`stacked`](Self::stacked).
    pub(super) fn stacked_rows(&self) -> usize {
        self.sets().count() * self.count()
    }

    /// All points as the rows of one row-major matrix, `w1` above `w2`, so that one product
    /// projects on both.
    pub(super) fn stacked(&self, buffers: &Buffers<T>) -> Buffer<T> {
        let mut all = buffers.empty(self.stacked_rows() * self.width());
        for w in self.sets() {
            match w.as_slice() {
                Some(w) => all.extend_from_slice(w),
                None => w.rows().into_iter().for_each(|w| match w.as_slice() {
                    Some(w) => all.extend_from_slice(w),
                    None => all.extend(w),
                }),
            }
        }
        all
    }
}
