//! What each head's scores are computed from: features or scaled operands, and exponents.

use super::units::log2_largest;
use super::{Call, slab};
use crate::engine::{Bias, Exponents, Finite, Score, Wave};
use crate::similarity::PointsOfHeads;
use crate::{Form, Magnitude, Points, Similarity};
use bochner_kernels::feature_map;
use bochner_numerics::elementary::max_norm;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::{largest, log2_range};
use bochner_numerics::{Buffer, Mat, Operations, Real, parallel};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

/// What is kept of one head between the passes: O(T) numbers. By default, nothing yet.
#[derive(Default)]
pub(crate) struct Prepared<T> {
    pub(super) operands: Operands<T>,
    pub(super) scaling: Scaling,
    pub(super) score: Score,
    /// Found out once: every block asks.
    pub(super) finite: Finite,
    /// Keys that are not padding.
    pub(super) kept: usize,
}

impl<T> std::fmt::Debug for Prepared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl<T: Real> Prepared<T> {
    /// The logarithm of the largest number that stands in place of a query or a key.
    pub(super) fn log2_largest(&self) -> f64 {
        let (left, right) = &self.operands;
        let both = left.iter().chain(right);
        both.map(|x| log2_largest(ArrayView1::from(x.as_slice())))
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

/// What stands in place of queries and of keys: features, or scaled copies.
type Operands<T> = (Option<Buffer<T>>, Option<Buffer<T>>);

pub(super) type Parts<T> = (Operands<T>, Scaling, Score);

/// The powers of two by which queries and keys were divided so that no product overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Scaling {
    pub(super) left: i32,
    pub(super) right: i32,
}

impl<T: Real> Call<'_, '_, T> {
    /// Operands and exponents of every head; in linear time, which makes features when a head's turn
    /// comes, exponents alone.
    pub(crate) fn prepare(&self, form: Form) -> Buffer<Prepared<T>> {
        let heads = self.all_heads();
        let mut prepared = self.workspace.prepared.empty(heads);
        parallel::map_into(heads, |h| self.prepare_head(h, form), &mut prepared);
        prepared
    }

    pub(crate) fn prepare_head(&self, h: usize, form: Form) -> Prepared<T> {
        let parts = match &self.settings.similarity {
            Similarity::Rbf => self.exponential(h),
            Similarity::Expsin { period } => self.periodic(h, *period),
            Similarity::Linear => self.linear(h, &[]),
            Similarity::Squared { points, floor } if form == Form::LinearTime => {
                return Prepared {
                    score: self.squared_score(h, points, *floor),
                    kept: self.kept(h),
                    ..Prepared::default()
                };
            }
            Similarity::Squared { points, floor } => self.squared(h, points, *floor),
        };
        self.prepared(h, parts)
    }

    pub(super) fn prepared(&self, h: usize, (operands, scaling, score): Parts<T>) -> Prepared<T> {
        let (left, right) = self.factors(h, &operands);
        let finite = self.finite(left, right, self.kept_values(h));
        Prepared {
            operands,
            scaling,
            score,
            finite,
            kept: self.kept(h),
        }
    }

    /// Whether all that is multiplied is finite.
    pub(super) fn finite(&self, left: Mat<T>, right: Mat<T>, values: Mat<T>) -> Finite {
        let factor = |x: Mat<T>| match self.settings.similarity {
            // What is not finite makes all features of its row, or of its point, NaN: one of each tells.
            Similarity::Squared { .. } => {
                let width = x.shape().1;
                let (row, column) = (x.data().iter().take(width), x.data().iter().step_by(width));
                row.chain(column).all(|x| x.is_finite())
            }
            _ => max_norm(x.data()).is_finite(),
        };
        Finite {
            left: factor(left),
            right: factor(right),
            values: max_norm(values.data()).is_finite(),
        }
    }

    /// What is multiplied: the operands, or queries and keys themselves.
    pub(super) fn factors<'b>(
        &'b self,
        h: usize,
        operands: &'b Operands<T>,
    ) -> (Mat<'b, T>, Mat<'b, T>) {
        let (left, right) = operands;
        let width = self.operand_width();
        (
            match left {
                Some(left) => Mat::new(left, self.queries, width),
                None => slab(self.q.view(), h),
            },
            match right {
                Some(right) => Mat::new(right, self.kept(h), width),
                None => self.kept_keys(h),
            },
        )
    }

    /// Columns of what is multiplied.
    pub(super) fn operand_width(&self) -> usize {
        match &self.settings.similarity {
            Similarity::Squared { points, .. } => points.features(),
            _ => self.width,
        }
    }

    pub(super) fn squared(&self, h: usize, points: &Points<T>, floor: f64) -> Parts<T> {
        let (queries, keys) = (slab(self.q.view(), h), self.kept_keys(h));
        let operands = [queries, keys].map(|x| Some(self.features(h, x, points)));
        let score = self.squared_score(h, points, floor);
        (operands.into(), Scaling::default(), score)
    }

    fn squared_score(&self, h: usize, points: &Points<T>, floor: f64) -> Score {
        Score::Squared {
            normaliser: points.normaliser().as_f64(),
            floor,
            exponents: self.exponents(h),
        }
    }

    /// The features of rows of head `h`.
    pub(super) fn features(&self, h: usize, x: Mat<T>, points: &Points<T>) -> Buffer<T> {
        let own = points.head(h / self.heads, h % self.heads);
        let numbers = &self.workspace.numbers;
        let mut phi = numbers.any(x.shape().0 * points.features());
        let rows = (x.shape().0, points.features());
        let target = ArrayViewMut2::from_shape(rows, &mut phi).expect("row-major");
        let x = ArrayView2::from_shape(x.shape(), x.data()).expect("row-major");
        let made = feature_map(x, &own, target, numbers);
        made.expect("checked with the settings");
        phi
    }

    /// $\log a_{ij} = (q_i \cdot k_j - |k_j|^2 / 2) / \sqrt d + m_j$ up to a constant of the row; the
    /// last two cancel at p = 2.
    fn exponential(&self, h: usize) -> Parts<T> {
        let (queries, keys) = (slab(self.q.view(), h), self.kept_keys(h));
        let largest = (largest(queries.data()), largest(keys.data()));
        let scaling = Scaling::of(largest, self.width, self.is_biased());
        let operands = (
            self.scaled(queries, scaling.left),
            self.scaled(keys, scaling.right),
        );
        (operands, scaling, self.exponential_score(h, scaling))
    }

    pub(super) fn exponential_score(&self, h: usize, scaling: Scaling) -> Score {
        let scale = exp2(scaling.left + scaling.right) / (self.width as f64).sqrt();
        Score::Exponential {
            scale: scale.min(f64::MAX),
            bias: self.is_biased().then(|| self.bias(h, scaling)),
        }
    }

    /// Whether a magnitude and half a squared norm do not cancel.
    pub(super) fn is_biased(&self) -> bool {
        !matches!(self.settings.magnitude, Magnitude::Norm { p: 2.0 })
    }

    /// Distances in units of the period's power of two: where they overflow or vanish, so does
    /// what can be told of the phase.
    pub(super) fn periodic(&self, h: usize, period: f64) -> Parts<T> {
        let unit = period.log2().floor() as i32;
        let operands = (
            self.scaled(slab(self.q.view(), h), unit),
            self.scaled(self.kept_keys(h), unit),
        );
        let wave = Wave {
            period: period * exp2(-unit),
            sharpness: 2.0 / (self.width as f64).sqrt(),
        };
        let score = Score::Periodic {
            wave,
            exponents: self.exponents(h),
        };
        let scaling = Scaling {
            left: unit,
            right: unit,
        };
        (operands, scaling, score)
    }

    fn bias(&self, h: usize, scaling: Scaling) -> Bias {
        let (keys, down) = (self.kept_keys(h), exp2(-scaling.right));
        record(Operations::multiply_adds(keys.data().len()));
        let square = |j| {
            let row = keys.row(j).iter().map(|x| (x.as_f64() * down).powi(2));
            row.sum::<f64>() / 2.0
        };
        let mut squares = self.workspace.doubles.empty(keys.shape().0);
        squares.extend((0..keys.shape().0).map(square));
        Bias {
            squares,
            exponents: self.exponents(h),
        }
    }

    pub(super) fn exponents(&self, h: usize) -> Exponents {
        let (keys, divisor) = (self.kept_keys(h), self.divisor());
        let levels = &self.workspace.levels;
        match self.settings.magnitude {
            Magnitude::None => Exponents::zero(levels, keys.shape().0),
            Magnitude::Norm { p } | Magnitude::Released { p, dropout: None } => {
                Exponents::of_keys(levels, keys, p, divisor)
            }
            Magnitude::Released {
                p,
                dropout: Some(mask),
            } => {
                let (queries, pairs) = (slab(self.q.view(), h), self.pairs(h, mask));
                let exponents = Exponents::of_keys(levels, keys, p, divisor)
                    .with_pairs(levels, queries, p, divisor, pairs);
                if self.settings.mask.is_causal() || self.settings.mask.has_matrix() {
                    exponents
                } else {
                    exponents.seen_by_all(&self.workspace.doubles)
                }
            }
        }
    }

    /// A copy divided by a power of two, if that is not one; what overflows becomes the largest number.
    fn scaled(&self, x: Mat<T>, down: i32) -> Option<Buffer<T>> {
        let (factor, largest) = (T::of(exp2(-down)), T::max_value());
        let scaled = |&x: &T| match x.is_finite() {
            true => (x * factor).max(-largest).min(largest),
            false => x,
        };
        (down != 0).then(|| {
            let mut copy = self.workspace.numbers.empty(x.data().len());
            copy.extend(x.data().iter().map(scaled));
            copy
        })
    }

    /// What the squared norms are divided by.
    pub(super) fn divisor(&self) -> f64 {
        let root = (self.width as f64).sqrt();
        match self.settings.magnitude {
            Magnitude::Released { .. } => 2.0 * root.sqrt(),
            _ => 2.0 * root,
        }
    }
}

impl Scaling {
    /// Given the largest numbers of queries and of keys; none wherever the products of queries with
    /// keys (and, if `biased`, of keys with themselves) are in range anyway.
    pub(super) fn of<T: Real>((queries, keys): (T, T), width: usize, biased: bool) -> Self {
        let range = log2_range::<T>();
        let (q, k) = (queries.as_f64().log2(), keys.as_f64().log2());
        let width = (width as f64).log2();
        let partner = if biased { q.max(k) } else { q };
        if partner + k + width < range - 8.0 {
            return Self::default();
        }
        let excess = |log: f64| (log.ceil() - (range / 2.0 - 16.0)).max(0.0) as i32;
        let (left, right) = (excess(q), excess(k));
        if biased {
            // One unit for products and squares.
            let both = left.max(right);
            return Self {
                left: both,
                right: both,
            };
        }
        Self { left, right }
    }
}

pub(super) fn exp2(power: i32) -> f64 {
    f64::from(power).exp2()
}
