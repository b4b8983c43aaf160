//! The square of a kernel that is given by its spectral points.

use super::{AlongPoints, Given, Gradient, LinearForm, PairKernel, Score, Side, SquareOf};
use crate::Error;
use crate::engine::{HeadAt, Squares, log2_largest, without_masked};
use crate::error::floor;
use crate::mask::one_or;
use crate::normaliser::Sum;
use bochner_kernels::{FeatureMapGradients, SpectralPoints, feature_map, feature_map_vjp};
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::{Buffer, Mat, Real, argument};
use ndarray::{Array2, Array4, ArrayView2, ArrayViewMut2, Axis, Ix4};
use std::sync::Arc;

/// Spectral points of all heads, `[1 or B, M, R, d]`: shared by the examples or one set each.
pub type Points<'a, T> = SpectralPoints<'a, T, Ix4>;

/// Gradients with respect to [`Points`], shaped as they were given.
pub type PointsGradients<T> = bochner_kernels::PointsGradients<T, Ix4>;

/// $a_{ij} = f(q_i, k_j)^2 + e$ (equations 12 to 16).
#[derive(Clone, Debug)]
pub(crate) struct Squared<T> {
    /// The spectral points `[1 or B, M, R, d]`: one array of a stationary kernel, two of another.
    pub(crate) sets: Arc<[Array4<T>]>,
    /// The floor e, from 0 to 1.
    pub(crate) floor: f64,
}

impl<T: Real> Squared<T> {
    pub(crate) fn all(&self) -> Points<'_, T> {
        Points::of_sets(&self.sets)
    }

    /// The points of one head.
    pub(crate) fn of_head(&self, at: &HeadAt<T>) -> SpectralPoints<'_, T> {
        self.all().map(|w| {
            let set = if w.len_of(Axis(0)) == 1 {
                0
            } else {
                at.example()
            };
            w.index_axis_move(Axis(0), set)
                .index_axis_move(Axis(0), at.head())
        })
    }
}

/// Checks points against the sizes of a call.
fn check_points<T: Real>(
    points: &Points<T>,
    batch: usize,
    heads: usize,
    width: usize,
) -> Result<(), Error> {
    let first = points.first();
    let shape = first.shape();
    let what = match points {
        Points::Stationary { .. } => "spectral points w",
        Points::Nonstationary { .. } => "spectral points w1",
    };
    let sets = shape[0];
    if sets != 1 && sets != batch {
        let (name, got) = (format!("sets of {what}"), sets as f64);
        let allowed = format!("{} for a batch of {batch}", one_or(batch));
        return Err(argument::out_of_range(name, got, allowed).into());
    }
    argument::shape(what, &[sets, heads, shape[2], width], shape)?;
    argument::not_empty("spectral points", shape)?;
    match points {
        Points::Stationary { .. } => Ok(()),
        Points::Nonstationary { w2, .. } => {
            Ok(argument::shape("spectral points w2", shape, w2.shape())?)
        }
    }
}

impl<T: Real> PairKernel<T> for Squared<T> {
    type Score = Square;

    const KEEPS_KEYS: bool = false;
    /// Every head has points of its own.
    const HAS_OWN_OPERANDS: bool = true;

    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        floor(self.floor)?;
        check_points(&self.all(), batch, heads, width)
    }

    fn operand_width(&self, _: usize) -> usize {
        self.all().features()
    }

    fn score(&self, _: &HeadAt<T>) -> Square {
        Square {
            normaliser: self.all().normaliser().as_f64(),
            floor: self.floor,
            powers: Buffer::default(),
        }
    }

    /// The features $\phi$.
    fn operand(&self, at: &HeadAt<T>, _: &Square, _: Side, x: Mat<T>) -> Option<Buffer<T>> {
        let (own, numbers) = (self.of_head(at), at.numbers());
        let mut phi = numbers.any(x.shape().0 * own.features());
        let shape = (x.shape().0, own.features());
        let target = ArrayViewMut2::from_shape(shape, &mut phi).expect("row-major");
        let x = ArrayView2::from_shape(x.shape(), x.data()).expect("row-major");
        feature_map(x, &own, target, numbers).expect("checked with the settings");
        Some(phi)
    }

    /// What is not finite makes all features of its row, or of its point, NaN: one of each tells.
    fn is_finite(&self, features: Mat<T>) -> bool {
        let width = features.shape().1;
        let row = features.data().iter().take(width);
        let column = features.data().iter().step_by(width);
        row.chain(column).all(|x| x.is_finite())
    }

    fn pull_back(
        &self,
        at: &HeadAt<T>,
        _: &Square,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let own = self.of_head(at);
        let rows = given.x.shape().0;
        let shaped = |data, width| ArrayView2::from_shape((rows, width), data);
        let x = shaped(given.x.data(), at.width()).expect("one row a position");
        let cotangent = shaped(given.operand, own.features()).expect("one row a position");
        let x = without_masked(x, cotangent);
        let pulled = feature_map_vjp(x.view(), &own, cotangent, at.numbers());
        let FeatureMapGradients { x, points } = pulled.expect("checked with the settings");
        let along_x = x.as_slice().expect("an owned row-major array");
        out.write(|i| along_x[i].as_f64());
        let along_points = [Some(points.w1), points.w2].into_iter().flatten();
        let numbers = |w: Array2<T>| w.as_slice().expect("an owned row-major array").to_vec();
        along_points.map(numbers).collect()
    }

    /// Features are sums of one or two cosines; their gradients are multiplied with points.
    fn log2_largest(&self, at: &HeadAt<T>) -> Option<f64> {
        let sets = self.of_head(at);
        Some(sets.sets().map(log2_largest).fold(1.0, f64::max))
    }

    fn points(&self) -> Option<Points<'_, T>> {
        Some(self.all())
    }

    fn linear_form(&self) -> Option<LinearForm> {
        Some(LinearForm::Squared {
            points: self.all().count(),
            floor: self.floor,
        })
    }

    fn reordered(&self, indices: &[usize]) -> Option<Self> {
        let own = |w: &Array4<T>| w.len_of(Axis(0)) > 1;
        self.sets.iter().any(own).then(|| Self {
            sets: (self.sets.iter())
                .map(|w| {
                    if own(w) {
                        w.select(Axis(0), indices)
                    } else {
                        w.clone()
                    }
                })
                .collect(),
            floor: self.floor,
        })
    }
}

/// $a = (x / c)^2 + e$.
#[derive(Clone, Debug)]
pub(crate) struct Square {
    /// c.
    pub(crate) normaliser: f64,
    /// e.
    pub(crate) floor: f64,
    /// The power of two that each query was multiplied with; empty if none was.
    pub(crate) powers: Buffer<i32>,
}

impl Default for Square {
    fn default() -> Self {
        Self {
            normaliser: 1.0,
            floor: 0.0,
            powers: Buffer::default(),
        }
    }
}

impl<T: Real> Score<T> for Square {
    type Norm = Sum;
    type Rank = Squares<T>;

    const MULTIPLY_ADDS: usize = 3;

    #[inline(always)]
    fn score<A: Arithmetic>(&self, raw: T) -> T {
        let f = raw * T::of(1.0 / self.normaliser);
        A::mul_add(f, f, T::of(self.floor))
    }

    #[inline(always)]
    fn score_and_slope<A: Arithmetic>(&self, raw: T, _: T) -> (T, T) {
        let f = raw * T::of(1.0 / self.normaliser);
        (A::mul_add(f, f, T::of(self.floor)), f)
    }

    fn slope_factor(&self) -> T {
        let scale = T::of(1.0 / self.normaliser);
        scale + scale
    }

    fn square_of(&self) -> Option<SquareOf<T>> {
        Some(SquareOf {
            scale: T::of(self.normaliser.sqrt().recip()),
            floor: T::of(self.floor),
        })
    }
}
