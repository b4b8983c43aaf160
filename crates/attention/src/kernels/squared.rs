//! The square of a kernel that is given by its spectral points.

use crate::error::floor;
use bochner_engine::{Error, HeadRows, Kind, PairKernel, Shape, Square, Tile};
use bochner_kernels::{FeatureMapGradients, SpectralPoints, feature_map, feature_map_vjp};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffers, Mat, Operations, Real, argument};
use ndarray::{Array3, Array4, ArrayView2, ArrayViewMut2, Axis, Ix4, s};
use std::sync::Arc;

/// Spectral points of all heads, `[1 or B, M, R, d]`: shared by the examples or one set each.
pub type Points<'a, T> = SpectralPoints<'a, T, Ix4>;

/// Gradients with respect to [`Points`], shaped as they were given.
pub type PointsGradients<T> = bochner_kernels::PointsGradients<T, Ix4>;

/// $a_{ij} = f(q_i, k_j)^2 + e$ (equations 12 to 16).
#[derive(Clone, Debug)]
pub(crate) struct Squared<T> {
    /// The spectral points `[1 or B, M, R, d]`: one array of a stationary kernel, two of another.
    sets: Arc<[Array4<T>]>,
    /// The floor e, from 0 to 1.
    floor: f64,
    /// Memory for the next step of a decoder.
    memory: Buffers<T>,
}

impl<T: Real> Squared<T> {
    pub(crate) fn new(sets: Arc<[Array4<T>]>, floor: f64) -> Self {
        Self {
            sets,
            floor,
            memory: Buffers::default(),
        }
    }

    fn all(&self) -> Points<'_, T> {
        Points::of_sets(&self.sets)
    }

    /// The points of one head.
    fn of_head(&self, rows: &HeadRows<T>) -> SpectralPoints<'_, T> {
        self.all().map(|w| {
            let set = rows.example % w.len_of(Axis(0));
            w.index_axis_move(Axis(0), set)
                .index_axis_move(Axis(0), rows.head)
        })
    }

    /// Checks points against the sizes of a call.
    fn check_points(&self, shape: &Shape) -> Result<(), Error> {
        let points = self.all();
        let first = points.first();
        let own = first.shape();
        let what = match points {
            Points::Stationary { .. } => "spectral points w",
            Points::Nonstationary { .. } => "spectral points w1",
        };
        let sets = own[0];
        if sets != 1 && sets != shape.batch {
            let (name, got) = (format!("sets of {what}"), sets as f64);
            let allowed = format!(
                "{} for a batch of {}",
                argument::one_or(shape.batch),
                shape.batch
            );
            return Err(argument::out_of_range(name, got, allowed).into());
        }
        argument::shape(what, &[sets, shape.heads, own[2], shape.width], own)?;
        argument::not_empty("spectral points", own)?;
        for (what, w) in ["spectral points w1", "spectral points w2"]
            .into_iter()
            .zip(self.sets.iter())
        {
            argument::shape(what, own, w.shape())?;
            argument::finite(what, w.shape(), w)?;
        }
        Ok(())
    }
}

impl<T: Real> PairKernel<T> for Squared<T> {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn scale(&self, _: usize) -> f64 {
        self.all().normaliser().as_f64().recip()
    }

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        floor(self.floor)?;
        self.check_points(shape)
    }

    fn operand_width(&self, _: usize) -> usize {
        self.all().features()
    }

    /// Every head has points of its own.
    fn has_own_operands(&self) -> bool {
        true
    }

    /// The features $\phi$.
    fn operands(&self, rows: HeadRows<T>, out: &mut Vec<T>) {
        let (own, (count, width)) = (self.of_head(&rows), rows.x.shape());
        out.resize(count * own.features(), T::zero());
        let target = ArrayViewMut2::from_shape((count, own.features()), out).expect("row-major");
        let x = ArrayView2::from_shape((count, width), rows.x.data()).expect("row-major");
        feature_map(x, &own, target, &self.memory).expect("checked with the settings");
    }

    fn pull_operands(
        &self,
        rows: HeadRows<T>,
        gradient: Mat<T>,
        out: &mut [T],
        parameters: &mut [T],
    ) {
        let own = self.of_head(&rows);
        let shaped =
            |x: Mat<'_, T>| ArrayView2::from_shape(x.shape(), x.data()).map(|x| x.to_owned());
        let [x, cotangent] = [rows.x, gradient].map(|x| shaped(x).expect("row-major"));
        let pulled = feature_map_vjp(x.view(), &own, cotangent.view(), &self.memory);
        let FeatureMapGradients { x, points } = pulled.expect("checked with the settings");
        out.copy_from_slice(x.as_slice().expect("an owned row-major array"));
        let along_points = [Some(points.w1), points.w2].into_iter().flatten().flatten();
        parameters
            .iter_mut()
            .zip(along_points)
            .for_each(|(sum, x)| *sum += x);
    }

    fn scores(&self, _: &Tile<T>, raw: &mut [T]) {
        record(Operations::multiply_adds(2 * raw.len()));
        instructions::run(Scores {
            raw,
            floor: T::of(self.floor),
        });
    }

    fn slopes(&self, _: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        instructions::run(Slopes {
            raw,
            scores,
            floor: T::of(self.floor),
        });
    }

    fn parameters(&self) -> [usize; 2] {
        let first = self.all().first().raw_dim();
        [first[0], self.sets.len() * first[2] * first[3]]
    }

    fn square(&self) -> Option<Square> {
        let scale = self.all().normaliser().as_f64().recip();
        Some(Square {
            scale,
            floor: self.floor,
        })
    }

    fn reordered(&self, indices: &[usize]) -> Option<Arc<dyn PairKernel<T>>> {
        if self.sets.iter().all(|w| w.len_of(Axis(0)) == 1) {
            return None;
        }
        let sets = self
            .sets
            .iter()
            .map(|w| w.select(Axis(0), indices))
            .collect();
        Some(Arc::new(Self::new(sets, self.floor)))
    }
}

/// Returns gradients along spectral points, given those along the parameters of [`squared`](super::squared()),
/// `[sets, M, n]`, and the points and the width of a head.
///
/// # Panics
/// If n is not one or two times the numbers of a head's points.
pub fn points_gradients<T: Real>(
    kernel: &Array3<T>,
    points: usize,
    width: usize,
) -> PointsGradients<T> {
    let (sets, heads, count) = kernel.dim();
    let size = points * width;
    let of = |n: usize| {
        let own = kernel
            .slice(s![.., .., n * size..(n + 1) * size])
            .to_owned();
        own.into_shape_with_order((sets, heads, points, width))
            .expect("as many numbers")
    };
    PointsGradients {
        w1: of(0),
        w2: (count > size).then(|| of(1)),
    }
}

/// $x^2 + e$.
struct Scores<'a, T> {
    raw: &'a mut [T],
    floor: T,
}

impl<T: Real> Task for Scores<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        self.raw
            .iter_mut()
            .for_each(|x| *x = A::mul_add(*x, *x, self.floor));
    }
}

struct Slopes<'a, T> {
    raw: &'a mut [T],
    scores: &'a mut [T],
    floor: T,
}

impl<T: Real> Task for Slopes<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (x, score) in self.raw.iter_mut().zip(self.scores) {
            *score = A::mul_add(*x, *x, self.floor);
            *x += *x;
        }
    }
}
