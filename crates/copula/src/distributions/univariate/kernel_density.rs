//! The distribution of a sample, smoothed by normal kernels.

use super::fit::{moments, sorted_sample};
use crate::Error;
use crate::distributions::marginal::{LogTails, Marginal, Start};
use bochner_numerics::normal::{cdf, ln_cdf, ln_density};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The number of values up to which each has its kernel.
const EXACT: usize = 1024;

/// The number of nodes in a bandwidth above that.
const NODES: f64 = 32.0;

/// The number of bandwidths beyond which a kernel's share is below rounding.
const REACH: f64 = 9.0;

/// The distribution of a sample, smoothed by a normal kernel at each of its values.
///
/// $$F(z) = \sum_k w_k \Phi\big((z - x_k) / h\big)$$
///
/// # Numerics
/// Samples of more than 1024 values are binned linearly, to nodes that are 1/32 of the bandwidth apart. That changes
/// the density by a relative error of about 1e-4, and the data stay small. Density and tails take the kernels within 9
/// bandwidths of the point, or of the nearest node if that is farther.
///
/// # Reference
/// Silverman, *Density estimation for statistics and data analysis*, 1986; Scott's rule for the bandwidth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Nodes", into = "Nodes")]
pub struct KernelDensity {
    nodes: Nodes,
    /// The sums of the weights before each node.
    before: Vec<f64>,
}

/// The serialised form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nodes {
    values: Vec<f64>,
    weights: Vec<f64>,
    bandwidth: f64,
}

impl KernelDensity {
    /// Smooths a sample, with the bandwidth of Scott's rule, $\sigma n^{-1/5}$, unless another is given.
    ///
    /// # Errors
    /// [`Error::Argument`] for a value that is not finite or a bandwidth that is not positive, [`Error::TooFew`],
    /// [`Error::Constant`] (column 0).
    pub fn new(sample: &[f64], bandwidth: Option<f64>) -> Result<Self, Error> {
        let sorted = sorted_sample(sample)?;
        let n = sorted.len() as f64;
        let bandwidth = match bandwidth {
            Some(bandwidth) => bandwidth,
            None => (moments(&sorted).1 * n / (n - 1.0)).sqrt() * n.powf(-0.2),
        };
        argument::positive("bandwidth", bandwidth)?;
        let (values, weights) = if sorted.len() <= EXACT {
            (sorted, vec![1.0 / n; sample.len()])
        } else {
            binned(&sorted, bandwidth / NODES)
        };
        Ok(Self::try_from(Nodes {
            values,
            weights,
            bandwidth,
        })?)
    }

    /// The bandwidth *h*.
    pub fn bandwidth(&self) -> f64 {
        self.nodes.bandwidth
    }

    /// The distance of a point from a node, in bandwidths.
    fn distance(&self, z: f64, node: usize) -> f64 {
        (z - self.nodes.values[node]) / self.nodes.bandwidth
    }

    /// The nodes whose kernels matter at a point, and the distance of the nearest one.
    fn near(&self, z: f64) -> (Range<usize>, f64) {
        let values = &self.nodes.values;
        let next = values.partition_point(|x| *x < z);
        let candidates = [next.saturating_sub(1), next.min(values.len() - 1)];
        let [a, b] = candidates.map(|node| self.distance(z, node));
        let nearest = if a.abs() < b.abs() { a } else { b };
        let radius = (nearest.abs() + REACH) * self.nodes.bandwidth;
        let first = values.partition_point(|x| *x < z - radius);
        let last = values.partition_point(|x| *x <= z + radius);
        (first..last, nearest)
    }

    /// The logarithm of a sum of kernels, from the logarithm of the largest.
    fn log_sum(
        &self,
        z: f64,
        near: Range<usize>,
        ln_kernel: impl Fn(f64) -> f64,
        largest: f64,
    ) -> f64 {
        let terms =
            near.map(|k| self.nodes.weights[k] * (ln_kernel(self.distance(z, k)) - largest).exp());
        largest + terms.sum::<f64>().ln()
    }

    /// The tails far below all nodes, or far above with the signs turned.
    fn beyond(&self, near: Range<usize>, z: f64, turn: fn(f64) -> f64, nearest: f64) -> LogTails {
        let lower = self.log_sum(z, near, |x| ln_cdf(turn(x)), ln_cdf(nearest));
        LogTails {
            lower,
            upper: (-lower.exp()).ln_1p(),
        }
    }
}

impl Marginal for KernelDensity {
    fn log_density(&self, z: f64) -> f64 {
        let (near, nearest) = self.near(z);
        self.log_sum(z, near, ln_density, ln_density(nearest)) - self.bandwidth().ln()
    }

    fn log_tails(&self, z: f64) -> LogTails {
        let (near, nearest) = self.near(z);
        let outside = nearest.abs() > REACH;
        let values = &self.nodes.values;
        if outside && z < values[0] {
            return self.beyond(near, z, |x| x, nearest);
        }
        if outside && z > values[values.len() - 1] {
            return self.beyond(near, z, |x| -x, -nearest).mirrored();
        }
        let sum = |sign: f64| -> f64 {
            let part = near.clone();
            part.map(|k| self.nodes.weights[k] * cdf(sign * self.distance(z, k)))
                .sum()
        };
        let below = self.before[near.start] + sum(1.0);
        let above = 1.0 - self.before[near.end] + sum(-1.0);
        LogTails {
            lower: below.min(1.0).ln(),
            upper: above.min(1.0).ln(),
        }
    }

    fn at_score(&self, x: f64) -> f64 {
        let values = &self.nodes.values;
        let count = self.before.partition_point(|f| *f < cdf(x));
        let start = Start {
            guess: values[count.clamp(1, values.len()) - 1],
            origin: None,
        };
        start.solve(self, x)
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }
}

impl TryFrom<Nodes> for KernelDensity {
    type Error = ArgumentError;

    fn try_from(nodes: Nodes) -> Result<Self, ArgumentError> {
        let count = nodes.values.len();
        argument::not_empty("values", &[count])?;
        argument::shape("weights", &[count], &[nodes.weights.len()])?;
        argument::finite("values", &[count], &nodes.values)?;
        if let Some(pair) = nodes.values.windows(2).find(|pair| pair[0] > pair[1]) {
            let name = "values";
            return Err(argument::out_of_range(name, pair[1], "in ascending order"));
        }
        argument::positive("bandwidth", nodes.bandwidth)?;
        let mut sum = 0.0;
        let mut before = vec![0.0];
        for &weight in &nodes.weights {
            argument::positive("weights", weight)?;
            sum += weight;
            before.push(sum);
        }
        let holds = (sum - 1.0).abs() < 1e-9;
        argument::in_range(holds, "the sum of weights", sum, "1")?;
        Ok(Self { nodes, before })
    }
}

impl From<KernelDensity> for Nodes {
    fn from(density: KernelDensity) -> Self {
        density.nodes
    }
}

/// The nodes of a sorted sample at multiples of a step, each value shared between its two neighbours.
fn binned(sorted: &[f64], step: f64) -> (Vec<f64>, Vec<f64>) {
    let share = 1.0 / sorted.len() as f64;
    let (mut values, mut weights) = (Vec::<f64>::new(), Vec::<f64>::new());
    let mut add = |node: f64, weight: f64| {
        // A sorted sample meets a node again at most two places from the end.
        let from = values.len().saturating_sub(2);
        match values[from..].iter().position(|x| *x == node) {
            Some(place) => weights[from + place] += weight,
            None if weight > 0.0 => {
                values.push(node);
                weights.push(weight);
            }
            None => {}
        }
    };
    for &x in sorted {
        let below = ((x - sorted[0]) / step).floor();
        let part = (x - sorted[0]) / step - below;
        add(sorted[0] + below * step, share * (1.0 - part));
        add(sorted[0] + (below + 1.0) * step, share * part);
    }
    (values, weights)
}
