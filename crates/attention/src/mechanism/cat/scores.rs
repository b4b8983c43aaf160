//! The scores of each head, and their softmax.

use super::Call;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::scaling::{largest, multiplied, over_power, unit};
use bochner_numerics::{Mat, Real};
use ndarray::Array4;

/// The source of the scores.
pub(super) enum Scores<'a, T> {
    /// A stream of their own, `[B, M, T, 1]`.
    Given(RowMajor<'a, T>),
    /// Queries and the mean of the keys, `[B, M, T, d]` each.
    OfPairs {
        q: RowMajor<'a, T>,
        k: RowMajor<'a, T>,
    },
}

/// The n scores of a head, divided by a power of two, which is 1 unless products of queries and keys would
/// overflow.
pub(super) struct HeadScores<T> {
    pub(super) values: Vec<T>,
    power: i32,
}

/// The gradient along the scores of a head, divided by a power of two.
#[derive(Clone, Default)]
pub(super) struct Slope<T> {
    pub(super) values: Vec<T>,
    pub(super) power: i32,
}

/// The scores of a head, and what dropout multiplies each lag with; no factors without dropout.
pub(super) struct Distribution<T> {
    pub(super) scores: HeadScores<T>,
    pub(super) factors: Vec<T>,
}

/// Queries of a head and the mean of its keys, each divided by a power of two.
struct Pair<'a, T> {
    q: Mat<'a, T>,
    mean: Vec<f64>,
    powers: [i32; 2],
}

impl<T: Real> Pair<'_, T> {
    /// A query over its power of two.
    fn query(&self, i: usize) -> impl Iterator<Item = f64> {
        let power = self.powers[0];
        (self.q.row(i).iter()).map(move |&q| over_power(q, power).as_f64())
    }
}

fn pair<'a, T: Real>([q, k]: [&'a RowMajor<T>; 2], h: usize, n: usize) -> Pair<'a, T> {
    let [q, k] = [q, k].map(|x| {
        let x = x.view();
        let (_, _, time, width) = x.dim();
        let x = x.to_slice().expect("row-major");
        Mat::new(&x[h * time * width..][..n * width], n, width)
    });
    let [of_q, of_k] = [q, k].map(|x| largest(x.data()).as_f64().log2());
    let room = (q.shape().1 as f64).log2();
    let powers = [unit::<T>(of_q, of_k + room), unit::<T>(of_k, of_q + room)];
    let mut mean = vec![0.0; k.shape().1];
    for j in 0..n {
        let row = mean.iter_mut().zip(k.row(j));
        row.for_each(|(mean, &k)| *mean += over_power(k, powers[1]).as_f64() / n as f64);
    }
    Pair { q, mean, powers }
}

impl<T: Real> Scores<'_, T> {
    /// `[B, M, T]`.
    pub(super) fn shape(&self) -> [usize; 3] {
        let (Self::Given(x) | Self::OfPairs { q: x, .. }) = self;
        let (batch, heads, time, _) = x.view().dim();
        [batch, heads, time]
    }

    /// The first `n` scores of head `h` of all heads.
    pub(super) fn of_head(&self, h: usize, n: usize) -> HeadScores<T> {
        match self {
            Self::Given(scores) => {
                let [.., time] = self.shape();
                let scores = scores.view();
                let scores = scores.to_slice().expect("row-major");
                HeadScores {
                    values: scores[h * time..][..n].to_vec(),
                    power: 0,
                }
            }
            Self::OfPairs { q, k } => {
                let pair = pair([q, k], h, n);
                let root = (pair.mean.len() as f64).sqrt();
                let score = |i| {
                    let terms = pair.query(i).zip(&pair.mean).map(|(q, k)| q * k);
                    T::of(terms.sum::<f64>() / root)
                };
                HeadScores {
                    values: (0..n).map(score).collect(),
                    power: pair.powers.iter().sum(),
                }
            }
        }
    }

    /// The gradients along what the scores come from, given those along the scores of each head.
    pub(super) fn pull(&self, call: &Call<T>, slopes: &[Slope<T>]) -> Vec<Array4<T>> {
        let (q, k) = match self {
            Self::Given(_) => {
                let of_scores = call.by_heads(1, |h, of_scores| {
                    let Slope { values, power } = &slopes[h];
                    let all = of_scores.iter_mut().zip(values);
                    all.for_each(|(to, x)| *to = multiplied(x.as_f64(), *power));
                });
                return vec![of_scores];
            }
            Self::OfPairs { q, k } => (q, k),
        };
        let width = q.view().dim().3;
        let root = (width as f64).sqrt();
        let of_queries = call.by_heads(width, |h, of_queries| {
            let Slope { values, power } = &slopes[h];
            let Pair { mean, powers, .. } = pair([q, k], h, values.len());
            for (to, slope) in of_queries.chunks_exact_mut(width).zip(values) {
                let slope = slope.as_f64() / root;
                let all = to.iter_mut().zip(&mean);
                all.for_each(|(to, k)| *to = multiplied(slope * k, power + powers[1]));
            }
        });
        let of_keys = call.by_heads(width, |h, of_keys| {
            let Slope { values, power } = &slopes[h];
            let n = values.len();
            let pair = pair([q, k], h, n);
            let mut sum = vec![0.0; width];
            for (i, slope) in values.iter().enumerate() {
                let slope = slope.as_f64() / (root * n as f64);
                let all = sum.iter_mut().zip(pair.query(i));
                all.for_each(|(sum, q)| *sum += slope * q);
            }
            let row: Vec<T> = (sum.iter())
                .map(|&x| multiplied(x, power + pair.powers[0]))
                .collect();
            of_keys
                .chunks_exact_mut(width)
                .for_each(|to| to.copy_from_slice(&row));
        });
        vec![of_queries, of_keys]
    }
}

impl<T: Real> HeadScores<T> {
    /// The softmax of the first `n` scores.
    pub(super) fn softmax(&self, n: usize) -> Vec<T> {
        let scores = &self.values[..n];
        let highest = scores.iter().copied().fold(T::neg_infinity(), T::max);
        let relative = |&z: &T| match self.power {
            0 => z - highest,
            power => multiplied((z - highest).as_f64(), power),
        };
        let mut weights: Vec<T> = scores.iter().map(relative).collect();
        exp_in_place(&mut weights);
        let total = T::of(weights.iter().map(|w| w.as_f64()).sum());
        weights.iter_mut().for_each(|w| *w /= total);
        weights
    }
}

impl<T: Real> Distribution<T> {
    /// The dropout factor of lag `l`.
    #[inline]
    pub(super) fn factor(&self, l: usize) -> T {
        self.factors.get(l).copied().unwrap_or(T::one())
    }
}
