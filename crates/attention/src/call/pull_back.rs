//! From the gradients of features and exponents to those of the arguments.

use super::prepare::{Scaling, exp2};
use super::units::{Units, fill_multiplied, multiplied};
use super::{Call, Prepared, slab};
use crate::attend::AttentionGradients;
use crate::engine::{HeadGradients, Score, all_finite};
use crate::similarity::PointsGradients;
use crate::{Error, Magnitude, Similarity};
use bochner_kernels::{FeatureMapGradients, feature_map_vjp};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{Array2, Array4, ArrayView2, CowArray, Ix2, Zip, s};

impl<T: Real> Call<'_, '_, T> {
    /// From gradients with respect to features and exponents to those with respect to the
    /// arguments.
    pub(crate) fn pull_back(
        &self,
        states: &[Prepared<T>],
        parts: Vec<HeadGradients<T>>,
        units: Units,
    ) -> Result<AttentionGradients<T>, Error> {
        let (mut q, mut k) = (
            vec![T::zero(); self.q.view().len()],
            vec![T::zero(); self.k.view().len()],
        );
        let mut v = vec![T::zero(); self.v.view().len()];
        let unit = units.product();
        let queries = parallel::map_chunks(&mut q, self.queries * self.width, |h, out| {
            let side = Side {
                x: slab(self.q.view(), h),
                operand: &parts[h].left,
                exponents: &parts[h].queries,
            };
            match &self.settings.similarity {
                Similarity::Linear => {
                    let mut operand = Vec::with_capacity(side.operand.len());
                    self.for_each_power(h, &[], |i, power| {
                        let row = side.operand[i * self.width..(i + 1) * self.width].iter();
                        operand.extend(row.map(|x| libm::scalbn(x.as_f64(), power)));
                    });
                    self.write(&states[h].score, &side, unit, |i| operand[i], out);
                    Ok(None)
                }
                _ => self.pull_back_side(
                    h,
                    &states[h],
                    &side,
                    self.factors_back(&states[h]).0,
                    unit,
                    out,
                ),
            }
        });
        let keys = parallel::map_chunks(&mut k, self.keys * self.width, |h, out| {
            let side = Side {
                x: self.kept_keys(h),
                operand: &parts[h].right,
                exponents: &parts[h].keys,
            };
            let out = &mut out[..side.x.data().len()];
            self.pull_back_side(
                h,
                &states[h],
                &side,
                self.factors_back(&states[h]).1,
                unit,
                out,
            )
        });
        parallel::for_each_chunk(&mut v, self.keys * self.value_width(), |h, out| {
            let values = &parts[h].values;
            let out = &mut out[..values.len()];
            fill_multiplied(out, units.cotangents, |i| values[i].as_f64());
        });
        let mut gradients = AttentionGradients {
            q: self.array(self.queries, self.width, q),
            k: self.array(self.keys, self.width, k),
            v: self.array(self.keys, self.value_width(), v),
            points: None,
        };
        if let Similarity::Squared { points, .. } = &self.settings.similarity {
            let mut all = points.zero_gradients();
            for (h, (q, k)) in queries.into_iter().zip(keys).enumerate() {
                if let (Some(q), Some(k)) = (q?, k?) {
                    all.add(points.set(h / self.heads), h % self.heads, unit, &q, &k);
                }
            }
            gradients.points = Some(all);
        }
        Ok(gradients)
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

    /// Writes the gradients of queries or keys; returns what belongs to the points.
    fn pull_back_side(
        &self,
        h: usize,
        state: &Prepared<T>,
        side: &Side<T>,
        factor: f64,
        unit: i32,
        out: &mut [T],
    ) -> Result<Option<FeatureMapGradients<T>>, Error> {
        let Side { x, operand, .. } = *side;
        let Similarity::Squared { points, .. } = &self.settings.similarity else {
            let value = |i: usize| operand[i].as_f64() * factor;
            self.write(&state.score, side, unit, value, out);
            return Ok(None);
        };
        let own = points.head(h / self.heads, h % self.heads);
        let rows = x.shape().0;
        let shaped = |data, width| ArrayView2::from_shape((rows, width), data);
        let x = shaped(x.data(), self.width).expect("one row a position");
        let features = points.features();
        let cotangent = shaped(operand, features).expect("one row a position");
        let pulled = feature_map_vjp(without_masked(x, cotangent).view(), &own, cotangent)?;
        let along_x = pulled.x.as_slice().expect("an owned row-major array");
        self.write(&state.score, side, unit, |i| along_x[i].as_f64(), out);
        Ok(Some(pulled))
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

impl<T: Real> PointsGradients<T> {
    /// Adds what queries and keys contribute, in units of a power of two.
    fn add(
        &mut self,
        set: usize,
        head: usize,
        unit: i32,
        q: &FeatureMapGradients<T>,
        k: &FeatureMapGradients<T>,
    ) {
        let add = |all: &mut Array4<T>, q: &Array2<T>, k: &Array2<T>| {
            Zip::from(all.slice_mut(s![set, head, .., ..]))
                .and(q)
                .and(k)
                .for_each(|all, q, k| *all += multiplied(q.as_f64() + k.as_f64(), unit));
        };
        add(&mut self.w1, &q.w1, &k.w1);
        if let (Some(all), Some(q), Some(k)) = (&mut self.w2, &q.w2, &k.w2) {
            add(all, q, k);
        }
    }
}

/// `x` with zeros in place of the rows that are not finite and had no influence: behind a mask they
/// may hold anything, and `0 * NaN` would carry it into the gradient of the points.
fn without_masked<'a, T: Real>(
    x: ArrayView2<'a, T>,
    cotangent: ArrayView2<T>,
) -> CowArray<'a, T, Ix2> {
    let mut x = CowArray::from(x);
    if !all_finite(x.as_slice().expect("rows of a head")) {
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
