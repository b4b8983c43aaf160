//! From the gradients of features and exponents to those of the arguments.

use super::prepare::{Scaling, exp2};
use super::units::{Units, fill_multiplied};
use super::{Call, Prepared, slab};
use crate::attend::AttentionGradients;
use crate::engine::{HeadGradients, Score};
use crate::similarity::{PointsGradients, PointsOfHeads};
use crate::{Magnitude, Similarity};
use bochner_kernels::{FeatureMapGradients, feature_map_vjp};
use bochner_numerics::elementary::{SquaredNorms, max_norm};
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{Array2, ArrayView2, CowArray, Ix2, Zip};
use std::ops::Range;

/// Gradients along the points of one head of one example: one array of a stationary kernel, two of
/// another.
type AlongPoints<T> = Vec<Vec<T>>;

impl<T: Real> Call<'_, '_, T> {
    /// From gradients with respect to features and exponents, `parts(h)` of head `h`, to those with
    /// respect to the arguments.
    ///
    /// A head goes all the way at once: what reaches its features is still in the cache then, and
    /// the next one takes the same memory.
    pub(crate) fn pull_back(
        &self,
        states: &[Prepared<T>],
        parts: impl Fn(usize) -> HeadGradients<T> + Send + Sync,
        units: Units,
    ) -> AttentionGradients<T> {
        let lengths = [self.q.view(), self.k.view(), self.v.view()].map(|x| x.len());
        let mut along_points = vec![None; states.len()];
        let [q, k, v] = written_by(lengths, |all| {
            let mut lengths = lengths.into_iter().map(|n| n / states.len());
            let [q, k, v] = all.map(|all| all.chunks(lengths.next().expect("three lengths")));
            let heads = q.zip(k).zip(v).zip(&mut along_points).enumerate();
            parallel::for_each(heads.collect(), |(h, (((q, k), v), along_points))| {
                let (part, state) = (parts(h), &states[h]);
                let out = [q, k, v].map(Unwritten::zeros);
                *along_points = self.pull_back_head(h, state, &part, units, out);
            });
        });
        AttentionGradients {
            q: self.array(self.queries, self.width, q),
            k: self.array(self.keys, self.width, k),
            v: self.array(self.keys, self.value_width(), v),
            points: self.sum_along_points(&along_points),
        }
    }

    /// Writes the gradients of queries, keys and values; returns those along the points.
    fn pull_back_head(
        &self,
        h: usize,
        state: &Prepared<T>,
        part: &HeadGradients<T>,
        units: Units,
        [q, k, v]: [&mut [T]; 3],
    ) -> Option<AlongPoints<T>> {
        let values = &part.values;
        let kept = &mut v[..values.len()];
        fill_multiplied(kept, units.cotangents, |i| values[i].as_f64());
        let keys = Side {
            x: self.kept_keys(h),
            operand: &part.right,
            exponents: &part.keys,
        };
        let k = &mut k[..keys.x.data().len()];
        let (left, right) = self.factors_back(state);
        let unit = units.product();
        let along_keys = self.pull_back_side(h, state, &keys, right, unit, k);
        let queries = Side {
            x: slab(self.q.view(), h),
            operand: &part.left,
            exponents: &part.queries,
        };
        if let Similarity::Linear = self.settings.similarity {
            self.write_scaled(h, state, &queries, unit, q);
            return None;
        }
        let along_queries = self.pull_back_side(h, state, &queries, left, unit, q);
        along_queries
            .zip(along_keys)
            .map(|(q, k)| added(&q, &k, unit))
    }

    /// Writes the gradients of the queries of a linear kernel, each of which has a scale of its own.
    fn write_scaled(
        &self,
        h: usize,
        state: &Prepared<T>,
        queries: &Side<T>,
        unit: i32,
        out: &mut [T],
    ) {
        let mut operand = Vec::with_capacity(queries.operand.len());
        self.for_each_power(h, &[], |i, power| {
            let row = queries.operand[i * self.width..(i + 1) * self.width].iter();
            operand.extend(row.map(|x| libm::scalbn(x.as_f64(), power)));
        });
        self.write(&state.score, queries, unit, |i| operand[i], out);
    }

    /// The sums over the heads that share points, in the order of the examples.
    fn sum_along_points(&self, parts: &[Option<AlongPoints<T>>]) -> Option<PointsGradients<T>> {
        let Similarity::Squared { points, .. } = &self.settings.similarity else {
            return None;
        };
        let (mut all, size) = (points.zero_gradients(), points.count() * self.width);
        let arrays = [Some(&mut all.w1), all.w2.as_mut()];
        for (n, array) in arrays.into_iter().flatten().enumerate() {
            let sums = array.as_slice_mut().expect("row-major");
            // Those of one example, or as many as there are heads.
            let distinct = sums.len() / size;
            parallel::for_each_chunk(sums, size, |i, sum| {
                for part in parts.iter().skip(i).step_by(distinct).flatten() {
                    let pairs = sum.iter_mut().zip(&part[n]);
                    pairs.for_each(|(sum, x)| *sum = multiplied(sum.as_f64() + x.as_f64(), 0));
                }
            });
        }
        Some(all)
    }

    /// What the gradients of the operands of queries and of keys are multiplied with.
    fn factors_back(&self, state: &Prepared<T>) -> (f64, f64) {
        let Scaling { left, right } = state.scaling;
        let root = (self.width as f64).sqrt();
        match &self.settings.similarity {
            Similarity::Rbf => (exp2(right) / root, exp2(left) / root),
            Similarity::Expsin { .. } => (exp2(-left), exp2(-right)),
            Similarity::Linear | Similarity::Squared { .. } => (1.0, 1.0),
        }
    }

    /// Writes the gradients of queries or keys, some rows at a time; returns what belongs to the
    /// points.
    fn pull_back_side(
        &self,
        h: usize,
        state: &Prepared<T>,
        side: &Side<T>,
        factor: f64,
        unit: i32,
        out: &mut [T],
    ) -> Option<AlongPoints<T>> {
        let pieces = parallel::map_chunks(out, ROWS * self.width, |i, out| {
            let first = i * ROWS;
            let side = side.rows(first..first + out.len() / self.width);
            self.pull_back_rows(h, state, &side, factor, unit, out)
        });
        let sum = |mut sum: AlongPoints<T>, piece: AlongPoints<T>| {
            let pairs = sum.iter_mut().flatten().zip(piece.iter().flatten());
            pairs.for_each(|(sum, &x)| *sum += x);
            sum
        };
        pieces.into_iter().flatten().reduce(sum)
    }

    fn pull_back_rows(
        &self,
        h: usize,
        state: &Prepared<T>,
        side: &Side<T>,
        factor: f64,
        unit: i32,
        out: &mut [T],
    ) -> Option<AlongPoints<T>> {
        let Side { x, operand, .. } = *side;
        let Similarity::Squared { points, .. } = &self.settings.similarity else {
            let value = |i: usize| operand[i].as_f64() * factor;
            self.write(&state.score, side, unit, value, out);
            return None;
        };
        let own = points.head(h / self.heads, h % self.heads);
        let rows = x.shape().0;
        let shaped = |data, width| ArrayView2::from_shape((rows, width), data);
        let x = shaped(x.data(), self.width).expect("one row a position");
        let cotangent = shaped(operand, points.features()).expect("one row a position");
        let (buffers, x) = (&self.workspace.numbers, without_masked(x, cotangent));
        let pulled = feature_map_vjp(x.view(), &own, cotangent, buffers);
        let FeatureMapGradients { x, points } = pulled.expect("checked with the settings");
        let along_x = x.as_slice().expect("an owned row-major array");
        self.write(&state.score, side, unit, |i| along_x[i].as_f64(), out);
        let along_points = [Some(points.w1), points.w2].into_iter().flatten();
        let numbers = |w: Array2<T>| w.as_slice().expect("an owned row-major array").to_vec();
        Some(along_points.map(numbers).collect())
    }

    /// Writes gradients of queries or keys, with what flows through the exponents.
    ///
    /// In double precision: sums of parts that overflow in the type itself may well be in its range.
    fn write(
        &self,
        score: &Score,
        side: &Side<T>,
        unit: i32,
        value: impl Fn(usize) -> f64,
        out: &mut [T],
    ) {
        match self.through_exponents(score, side) {
            None => fill_multiplied(out, unit, value),
            Some(more) => {
                let more = &more[..out.len()];
                fill_multiplied(out, unit, |i| value(i) + more[i]);
            }
        }
    }

    /// The gradients that flow through the exponents, if there are any.
    fn through_exponents(&self, score: &Score, side: &Side<T>) -> Option<Vec<f64>> {
        let root = (self.width as f64).sqrt();
        let (p, square) = match (self.settings.magnitude, score) {
            (_, Score::Exponential { bias: None, .. }) => return None,
            (Magnitude::None, Score::Exponential { .. }) => (None, root.recip()),
            (Magnitude::None, _) => return None,
            (Magnitude::Norm { p }, Score::Exponential { .. }) => (Some(p), root.recip()),
            (Magnitude::Norm { p } | Magnitude::Released { p, .. }, _) => (Some(p), 0.0),
        };
        let Side { x, exponents, .. } = side;
        if exponents.iter().all(|&c| c == T::zero()) {
            return None;
        }
        let (data, width) = (x.data(), x.shape().1);
        let mut gradient = match p {
            None => vec![0.0; data.len()],
            Some(p) => {
                let divided = exponents.iter().map(|c| c.as_f64() / self.divisor());
                let cotangents: Vec<f64> = divided.collect();
                SquaredNorms::new(data, width, p).pull_back(data, &cotangents)
            }
        };
        if square != 0.0 {
            let rows = gradient
                .chunks_exact_mut(width)
                .zip(data.chunks_exact(width));
            for ((gradient, row), &c) in rows.zip(*exponents).filter(|(_, c)| **c != T::zero()) {
                for (g, x) in gradient.iter_mut().zip(row) {
                    *g -= square * c.as_f64() * x.as_f64();
                }
            }
        }
        Some(gradient)
    }
}

/// The queries or the keys of one head, and the gradients that have reached them.
struct Side<'a, T> {
    x: Mat<'a, T>,
    /// Of what stands in place of `x`.
    operand: &'a [T],
    /// Of the part of the exponents.
    exponents: &'a [T],
}

impl<'a, T: Real> Side<'a, T> {
    /// Some of the rows.
    fn rows(&self, rows: Range<usize>) -> Self {
        let width = self.operand.len() / self.exponents.len();
        Self {
            x: self.x.row_range(rows.clone()),
            operand: &self.operand[rows.start * width..rows.end * width],
            exponents: &self.exponents[rows],
        }
    }
}

/// Rows that go all the way back at a time.
const ROWS: usize = 1024;

/// What queries and keys contribute along the points, in units of a power of two.
fn added<T: Real>(q: &AlongPoints<T>, k: &AlongPoints<T>, unit: i32) -> AlongPoints<T> {
    let sum = |(q, k): (&Vec<T>, &Vec<T>)| {
        let mut sum = vec![T::zero(); q.len()];
        fill_multiplied(&mut sum, unit, |i| q[i].as_f64() + k[i].as_f64());
        sum
    };
    q.iter().zip(k).map(sum).collect()
}

/// `x` with zeros in place of the rows that are not finite and had no influence: behind a mask they
/// may hold anything, and `0 * NaN` would carry it into the gradient of the points.
fn without_masked<'a, T: Real>(
    x: ArrayView2<'a, T>,
    cotangent: ArrayView2<T>,
) -> CowArray<'a, T, Ix2> {
    let mut x = CowArray::from(x);
    if !max_norm(x.as_slice().expect("rows of a head")).is_finite() {
        Zip::from(x.rows_mut())
            .and(cotangent.rows())
            .for_each(|mut row, cotangent| {
                if cotangent.iter().all(|&c| c == T::zero()) {
                    row.fill(T::zero());
                }
            });
    }
    x
}
