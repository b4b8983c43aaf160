//! From the gradients of features and exponents to those of the arguments.

use super::prepare::exp2;
use super::units::{Units, multiplied};
use super::{Call, Prepared};
use crate::attend::AttentionGradients;
use crate::engine::{HeadGradients, Score};
use crate::magnitude::PNorm;
use crate::similarity::PointsGradients;
use crate::{Error, Magnitude, Similarity};
use bochner_kernels::feature_map_vjp;
use bochner_numerics::{Real, parallel};
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
        let mut gradients = AttentionGradients {
            q: Array4::zeros(self.q.raw_dim()),
            k: Array4::zeros(self.k.raw_dim()),
            v: Array4::zeros(self.v.raw_dim()),
            points: match &self.settings.similarity {
                Similarity::Squared { points, .. } => Some(points.zero_gradients()),
                _ => None,
            },
        };
        let heads = parallel::map(parts.len(), |h| {
            let head = self.pull_back_head(h, &states[h], &parts[h]);
            head.map(|head| head.in_unit::<T>(units.product()))
        });
        for (h, (head, part)) in heads.into_iter().zip(parts).enumerate() {
            let head = head?;
            let (b, m, kept) = (h / self.heads, h % self.heads, self.kept(h));
            let values = part
                .values
                .iter()
                .map(|x| multiplied(x.as_f64(), units.cotangents));
            let values = Array2::from_shape_vec((kept, self.value_width()), values.collect());
            gradients.q.slice_mut(s![b, m, .., ..]).assign(&head.q);
            gradients.k.slice_mut(s![b, m, ..kept, ..]).assign(&head.k);
            gradients
                .v
                .slice_mut(s![b, m, ..kept, ..])
                .assign(&values.expect("one row a value"));
            if let (Some(all), Some(own)) = (&mut gradients.points, head.points)
                && let Similarity::Squared { points, .. } = &self.settings.similarity
            {
                let set = points.set(b);
                all.add(set, m, &own);
            }
        }
        Ok(gradients)
    }

    fn pull_back_head(
        &self,
        h: usize,
        state: &Prepared<T>,
        part: &HeadGradients<T>,
    ) -> Result<OneHead<f64>, Error> {
        let (queries, keys) = (self.rows(&self.q, h), self.kept_rows(h));
        let width = part.left.len() / self.queries;
        let shaped = |data: &[T], rows: usize| {
            Array2::from_shape_vec((rows, width), data.to_vec()).expect("one row a position")
        };
        let (left, right) = (
            shaped(&part.left, self.queries),
            shaped(&part.right, self.kept(h)),
        );
        let mut head = match &self.settings.similarity {
            Similarity::Rbf => {
                let root = (self.width as f64).sqrt();
                OneHead {
                    q: double(left) * (exp2(state.scaling.right) / root),
                    k: double(right) * (exp2(state.scaling.left) / root),
                    points: None,
                }
            }
            Similarity::Expsin { .. } => OneHead {
                q: double(left) * exp2(-state.scaling.left),
                k: double(right) * exp2(-state.scaling.right),
                points: None,
            },
            Similarity::Linear => OneHead {
                q: self.by_powers(h, double(left)),
                k: double(right),
                points: None,
            },
            Similarity::Squared { points, .. } => {
                let own = points.head(h / self.heads, h % self.heads);
                let pull = |x, cotangent: Array2<T>| {
                    feature_map_vjp(without_masked(x, &cotangent).view(), &own, cotangent.view())
                };
                let (q, k) = (pull(queries, left)?, pull(keys, right)?);
                let w2 = q.w2.zip(k.w2).map(|(q, k)| double(q) + double(k));
                OneHead {
                    q: double(q.x),
                    k: double(k.x),
                    points: Some((double(q.w1) + double(k.w1), w2)),
                }
            }
        };
        self.add_magnitude(&state.score, keys, &part.keys, &mut head.k);
        self.add_magnitude(&state.score, queries, &part.queries, &mut head.q);
        Ok(head)
    }

    /// Adds what flows through the exponents of `x`.
    fn add_magnitude(
        &self,
        score: &Score,
        x: ArrayView2<T>,
        cotangent: &[T],
        gradient: &mut Array2<f64>,
    ) {
        let root = (self.width as f64).sqrt();
        let (p, square) = match (self.settings.magnitude, score) {
            (_, Score::Exponential { bias: None, .. }) => return,
            (Magnitude::None, Score::Exponential { .. }) => (None, root.recip()),
            (Magnitude::None, _) => return,
            (Magnitude::Norm { p }, Score::Exponential { .. }) => (Some(p), root.recip()),
            (Magnitude::Norm { p } | Magnitude::Released { p, .. }, _) => (Some(p), 0.0),
        };
        for ((mut gradient, row), &c) in
            gradient.rows_mut().into_iter().zip(x.rows()).zip(cotangent)
        {
            if c == T::zero() {
                continue;
            }
            let norm = p.map(|p| PNorm::of(row, p));
            for (g, &x) in gradient.iter_mut().zip(row) {
                let (x, c) = (x.as_f64(), c.as_f64());
                let pulled = norm
                    .as_ref()
                    .map_or(0.0, |n| n.pull_back(x, c / self.divisor()));
                *g += pulled - square * c * x;
            }
        }
    }
}

/// The gradients of one head.
struct OneHead<T> {
    q: Array2<T>,
    k: Array2<T>,
    points: Option<(Array2<T>, Option<Array2<T>>)>,
}

impl OneHead<f64> {
    /// The same from gradients in units of a power of two.
    fn in_unit<T: Real>(self, power: i32) -> OneHead<T> {
        let own = |x: Array2<f64>| x.mapv(|x| multiplied(x, power));
        OneHead {
            q: own(self.q),
            k: own(self.k),
            points: self.points.map(|(w1, w2)| (own(w1), w2.map(own))),
        }
    }
}

/// Sums of parts that overflow in the type itself may well be in its range.
fn double<T: Real>(x: Array2<T>) -> Array2<f64> {
    x.mapv(|x| x.as_f64())
}

impl<T: Real> PointsGradients<T> {
    fn add(&mut self, set: usize, head: usize, own: &(Array2<T>, Option<Array2<T>>)) {
        let mut w1 = self.w1.slice_mut(s![set, head, .., ..]);
        w1 += &own.0;
        if let (Some(w2), Some(own)) = (&mut self.w2, &own.1) {
            let mut w2 = w2.slice_mut(s![set, head, .., ..]);
            w2 += own;
        }
    }
}

/// `x` with zeros in place of the rows that are not finite and had no influence: behind a mask they
/// may hold anything, and `0 * NaN` would carry it into the gradient of the points.
fn without_masked<'a, T: Real>(
    x: ArrayView2<'a, T>,
    cotangent: &Array2<T>,
) -> CowArray<'a, T, Ix2> {
    let mut x = CowArray::from(x);
    if x.iter().any(|x| !x.is_finite()) {
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
