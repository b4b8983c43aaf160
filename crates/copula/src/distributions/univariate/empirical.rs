//! The distribution of a sample, linear between its values.

use super::tails::within;
use crate::Error;
use crate::distributions::marginal::{LogTails, Marginal};
use crate::distributions::univariate::fit::sorted_sample;
use bochner_numerics::{ArgumentError, argument, normal};
use serde::{Deserialize, Serialize};

/// The distribution of a sample, whose distribution function is linear between its values.
///
/// $$F(x_{(k)}) = (r_k - r_1) / (r_K - r_1)$$
///
/// *where* $x_{(1)} < \dots < x_{(K)}$ are the distinct values and $r_k$ their mean ranks. Without ties quantiles are
/// those of numpy and R (their type 7). Draws stay within the sample, and the density has a step at each value: for
/// densities take a [`KernelDensity`](super::KernelDensity).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empirical {
    values: Vec<f64>,
    distribution: Vec<f64>,
}

impl Empirical {
    /// The distribution of a sample of two distinct values or more.
    ///
    /// # Errors
    /// [`Error::Argument`] for a value that is not finite, [`Error::TooFew`], [`Error::Constant`] (column 0).
    pub fn new(sample: &[f64]) -> Result<Self, Error> {
        let sorted = sorted_sample(sample)?;
        let (mut values, mut ranks, mut before) = (Vec::new(), Vec::new(), 0);
        for tied in sorted.chunk_by(|a, b| a == b) {
            values.push(tied[0]);
            ranks.push(before as f64 + 0.5 * (tied.len() - 1) as f64);
            before += tied.len();
        }
        let (first, last) = (ranks[0], ranks[ranks.len() - 1]);
        let share = |rank: f64| (rank - first) / (last - first);
        Ok(Self {
            values,
            distribution: ranks.into_iter().map(share).collect(),
        })
    }

    /// The ends of the piece before a value.
    fn piece(&self, upper: usize) -> (&[f64], &[f64]) {
        let upper = upper.clamp(1, self.values.len() - 1);
        (
            &self.values[upper - 1..=upper],
            &self.distribution[upper - 1..=upper],
        )
    }
}

impl Marginal for Empirical {
    fn support(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let count = self.values.len();
        argument::in_range(
            count > 1,
            "the number of values",
            count as f64,
            "at least 2",
        )?;
        argument::shape("distribution", &[count], &[self.distribution.len()])?;
        for (name, numbers) in [
            ("values", &self.values),
            ("distribution", &self.distribution),
        ] {
            argument::finite(name, &[count], numbers)?;
            if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(argument::out_of_range(name, pair[1], "in ascending order"));
            }
        }
        let ends = (self.distribution[0], self.distribution[count - 1]);
        let holds = ends == (0.0, 1.0);
        argument::in_range(
            holds,
            "the last of distribution",
            ends.1,
            "1, and the first 0",
        )
    }

    fn log_density(&self, z: f64) -> f64 {
        let (low, high) = self.support();
        if !(low..=high).contains(&z) {
            return f64::NEG_INFINITY;
        }
        let (values, shares) = self.piece(self.values.partition_point(|v| *v <= z));
        ((shares[1] - shares[0]) / (values[1] - values[0])).ln()
    }

    fn log_tails(&self, z: f64) -> LogTails {
        let (low, high) = self.support();
        within(low, high, z, || {
            let (values, shares) = self.piece(self.values.partition_point(|v| *v <= z));
            let weight = (z - values[0]) / (values[1] - values[0]);
            let lower = shares[0] + weight * (shares[1] - shares[0]);
            LogTails {
                lower: lower.ln(),
                upper: (-lower).ln_1p(),
            }
        })
    }

    fn at_score(&self, x: f64) -> f64 {
        let u = normal::cdf(x);
        let (values, shares) = self.piece(self.distribution.partition_point(|f| *f <= u));
        let weight = (u - shares[0]) / (shares[1] - shares[0]);
        (values[0] + weight * (values[1] - values[0])).clamp(values[0], values[1])
    }
}
