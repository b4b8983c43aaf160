//! The exponents $u_{ij}$ that a magnitude adds to the logarithm of a weight.

use super::PairDropout;
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Real, elementary};
use std::ops::Range;

/// The exponents of one head's pairs: $u_{ij} = m_j$, or with the dropout of the released code
/// $u_{ij} = \delta_{ij} (m_i + m_j)$.
///
/// Held in double precision together with their logarithms: differences of huge magnitudes decide
/// who wins, and for small p a magnitude can be far above f32's range.
#[derive(Clone)]
pub(crate) struct Exponents {
    keys: Vec<Level>,
    pairs: Option<Pairs>,
}

/// The query part and the dropout of the released code.
#[derive(Clone)]
struct Pairs {
    queries: Vec<f64>,
    dropout: PairDropout,
}

/// One exponent and its logarithm (which stays finite where the exponent overflows).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    value: f64,
    log: f64,
}

impl Level {
    /// Below every exponent.
    pub(crate) const NONE: Self = Self {
        value: f64::NEG_INFINITY,
        log: f64::NEG_INFINITY,
    };

    fn plain(value: f64) -> Self {
        Self { value, log: value }
    }

    /// Whether it exceeds `other`, overflowed or not; NaN exceeds nothing.
    fn exceeds(self, other: Self) -> bool {
        self.log > other.log
    }

    /// The larger of two.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.exceeds(self) || self == Self::NONE {
            other
        } else {
            self
        }
    }

    /// `self - reference`.
    pub(crate) fn minus(self, reference: Self) -> f64 {
        if reference.value.is_finite() {
            self.value - reference.value
        } else if self.log >= reference.log {
            0.0
        } else {
            // The reference lies beyond 1e308: any difference that f64 can tell is astronomical.
            f64::NEG_INFINITY
        }
    }
}

impl Exponents {
    /// No magnitude: all exponents zero.
    pub(crate) fn zero(keys: usize) -> Self {
        Self {
            keys: vec![
                Level {
                    value: 0.0,
                    log: f64::NEG_INFINITY
                };
                keys
            ],
            pairs: None,
        }
    }

    /// $m_j = |k_j|_p^2 / \text{divisor}$.
    pub(crate) fn of_keys<T: Real>(keys: Mat<T>, p: f64, divisor: f64) -> Self {
        Self {
            keys: levels(keys, p, divisor),
            pairs: None,
        }
    }

    /// Adds the queries' magnitudes and the dropout that falls on the sum.
    pub(crate) fn with_pairs<T: Real>(
        self,
        queries: Mat<T>,
        p: f64,
        divisor: f64,
        dropout: PairDropout,
    ) -> Self {
        let levels = levels(queries, p, divisor);
        let queries = levels.iter().map(|level| level.value).collect();
        Self {
            pairs: Some(Pairs { queries, dropout }),
            ..self
        }
    }

    pub(crate) fn has_pairs(&self) -> bool {
        self.pairs.is_some()
    }

    /// The largest exponent of row `i` among the keys before `limit` that `kept` lets through.
    pub(crate) fn reference(&self, i: usize, limit: usize, kept: Option<&[bool]>) -> Level {
        (0..limit)
            .filter(|&j| kept.is_none_or(|kept| kept[j]))
            .map(|j| self.level(i, j))
            .fold(Level::NONE, Level::max)
    }

    /// The references of `rows` when each row keeps exactly the keys before its limit, and limits
    /// never decrease: one running maximum serves all.
    pub(crate) fn running_references(&self, limits: &[usize]) -> Vec<Level> {
        let (mut best, mut seen) = (Level::NONE, 0);
        limits
            .iter()
            .map(|&limit| {
                best = self.keys[seen..limit]
                    .iter()
                    .copied()
                    .fold(best, Level::max);
                seen = limit;
                best
            })
            .collect()
    }

    /// `u[i, j] - reference` of some keys.
    pub(crate) fn differences(&self, i: usize, keys: Range<usize>, reference: Level) -> Vec<f64> {
        keys.map(|j| self.level(i, j).minus(reference)).collect()
    }

    /// $\exp(u_{ij} - \text{reference})$ of some keys.
    pub(crate) fn relative<T: Real>(
        &self,
        i: usize,
        keys: Range<usize>,
        reference: Level,
    ) -> Vec<T> {
        let mut relative = self.differences(i, keys, reference);
        elementary::exp_in_place(&mut relative);
        relative.into_iter().map(T::of).collect()
    }

    /// The largest exponent of all keys, where queries do not count.
    pub(crate) fn largest(&self) -> Option<Level> {
        (!self.has_pairs()).then(|| self.largest_from(0))
    }

    /// The largest exponent of the keys from one on.
    pub(crate) fn largest_from(&self, key: usize) -> Level {
        self.keys[key..]
            .iter()
            .copied()
            .fold(Level::NONE, Level::max)
    }

    /// Appends the exponents of more keys; not where queries count.
    pub(crate) fn append(&mut self, more: Self) {
        self.keys.extend(more.keys);
    }

    /// Forgets all keys but the first ones.
    pub(crate) fn truncate(&mut self, keys: usize) {
        self.keys.truncate(keys);
    }

    /// Multiplies with the derivatives of $u_{ij}$, from key `j` on, with respect to $m_j$ and,
    /// where queries count, to $m_i$.
    pub(crate) fn scale_by_factors<T: Real>(&self, i: usize, j: usize, du: &mut [T]) {
        if let Some(pairs) = &self.pairs {
            for (j, du) in (j..).zip(du) {
                *du *= pairs.dropout.factor(i, j);
            }
        }
    }

    fn level(&self, i: usize, j: usize) -> Level {
        match &self.pairs {
            None => self.keys[j],
            Some(pairs) => {
                let factor: f64 = pairs.dropout.factor(i, j);
                Level::plain(if factor == 0.0 {
                    0.0
                } else {
                    factor * (pairs.queries[i] + self.keys[j].value)
                })
            }
        }
    }
}

fn levels<T: Real>(x: Mat<T>, p: f64, divisor: f64) -> Vec<Level> {
    record(SquaredNorms::cost(p, x.data().len()));
    let norms = SquaredNorms::new(x.data(), x.shape().1, p);
    let log_divisor = divisor.ln();
    let logs: Vec<f64> = norms.logarithms().map(|log| log - log_divisor).collect();
    let mut values = logs.clone();
    elementary::exp_in_place(&mut values);
    let levels = values.into_iter().zip(logs);
    levels.map(|(value, log)| Level { value, log }).collect()
}
