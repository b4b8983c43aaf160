//! What the heads of a layer have learnt, and how they differ.

use crate::statistics::{excess_kurtosis, gaussian_energy_test};
use crate::store::{Heads, Spread};
use crate::trial::Findings;
use bochner_graph::{EdgeWeights, GraphInspection};
use bochner_numerics::Seed;
use ndarray::{Array2, Array3, ArrayView1, Axis};

/// Cells of the histogram of deviations, from 0 to the largest there can be.
const CELLS: usize = 20;

/// The largest standard deviation of numbers between 0 and 1.
const LARGEST: f64 = 0.5;

/// The measure of how much heads differ: the standard deviation of an edge's weight over the heads, mean over the edges.
pub const DEVIATION: &str = "deviation";
/// The mean absolute correlation of different heads, in the mean over the latent dimensions.
pub const CORRELATION: &str = "correlation";
/// The correlation in units of that before training.
pub const GROWTH: &str = "correlation over its start";
/// One where the energy test rejects a Gaussian at 1 %, and zero elsewhere.
pub const REJECTED: &str = "rejected at 1 %";
/// The excess kurtosis of the spectral points, mean over the dimensions.
pub const KURTOSIS: &str = "excess kurtosis";

/// The share of permutations below which a Gaussian is rejected.
const LEVEL: f64 = 0.01;

/// What is measured in a layer, where it has it; `first` is the correlation before training.
pub(super) fn measures(seen: &GraphInspection<f32>, first: Option<f64>) -> Findings {
    let mut found = vec![(DEVIATION, spread(&seen.weights).deviation)];
    if let Some(points) = &seen.points {
        let dimensions = points.len_of(Axis(2)).max(1);
        let shape = (points.len() / dimensions, dimensions);
        let mut values = points.iter().map(|&value| f64::from(value));
        let points = Array2::from_shape_simple_fn(shape, || values.next().unwrap_or_default());
        found.push((KURTOSIS, excess_kurtosis(points.view())));
        if let Ok(test) = gaussian_energy_test(points.view(), Seed::new(5)) {
            found.push((REJECTED, f64::from(u8::from(test.p_value <= LEVEL))));
        }
    }
    if let Some(now) = dependence(seen) {
        found.push((CORRELATION, now));
        found.extend(
            first
                .filter(|first| *first > 0.0)
                .map(|first| (GROWTH, now / first)),
        );
    }
    Findings::of(found)
}

/// The mean absolute correlation of different heads, in the mean over the latent dimensions.
pub(super) fn dependence(seen: &GraphInspection<f32>) -> Option<f64> {
    let mean = seen.correlation.as_ref()?.mean_axis(Axis(0))?;
    let apart = mean.indexed_iter().filter(|((i, j), _)| i != j);
    let sizes: Vec<f64> = apart.map(|(_, &c)| f64::from(c).abs()).collect();
    crate::statistics::mean(&sizes).ok()
}

/// Whether the points themselves are kept, for a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The points and the correlation that they were drawn with are kept.
    Points,
    /// The correlation alone is kept.
    CorrelationAlone,
}

/// The spectral points of each head, and the correlation of the heads; none without points.
pub(super) fn learnt(seen: &GraphInspection<f32>, keep: Keep) -> Option<Heads> {
    let points = seen.points.as_ref()?;
    Some(Heads {
        weights: Vec::new(),
        dimensions: points.len_of(Axis(2)),
        points: (keep == Keep::Points).then(|| by_head(points)),
        correlation: seen
            .correlation
            .as_ref()
            .and_then(|c| c.mean_axis(Axis(0)))
            .map(|mean| mean.iter().copied().collect()),
    })
}

fn by_head(points: &Array3<f32>) -> Vec<Vec<f32>> {
    let heads = points.outer_iter();
    heads.map(|head| head.iter().copied().collect()).collect()
}

/// How the weights of edges spread over the heads, and within each head over a node's neighbours.
pub(super) fn spread(seen: &EdgeWeights<f32>) -> Spread {
    let deviations: Vec<f64> = seen.weights.outer_iter().map(deviation).collect();
    let mut histogram = vec![0; CELLS];
    for deviation in &deviations {
        let cell = (deviation / LARGEST * CELLS as f64) as usize;
        histogram[cell.min(CELLS - 1)] += 1;
    }
    let nodes = 1 + seen.edges.iter().map(|&(_, to)| to).max().unwrap_or(0);
    let mut degrees = vec![0_u32; nodes];
    seen.edges.iter().for_each(|&(_, to)| degrees[to] += 1);
    let attending = degrees.iter().filter(|&&degree| degree > 0);
    let each = 1.0 / attending.clone().count().max(1) as f64;
    Spread {
        deviation: deviations.iter().sum::<f64>() / deviations.len().max(1) as f64,
        histogram,
        entropies: seen
            .weights
            .axis_iter(Axis(1))
            .map(|head| each * head.iter().map(|&w| surprise(w)).sum::<f64>())
            .collect(),
        uniform: each * attending.map(|&degree| f64::from(degree).ln()).sum::<f64>(),
    }
}

/// The standard deviation of these numbers.
fn deviation(weights: ArrayView1<f32>) -> f64 {
    let n = weights.len().max(1) as f64;
    let mean = weights.iter().map(|&w| f64::from(w)).sum::<f64>() / n;
    let squares = weights.iter().map(|&w| (f64::from(w) - mean).powi(2));
    (squares.sum::<f64>() / n).sqrt()
}

/// What a weight adds to the entropy of those it belongs to.
fn surprise(weight: f32) -> f64 {
    let weight = f64::from(weight);
    if weight > 0.0 {
        -weight * weight.ln()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_spread_worked_out_by_hand() {
        // Node 0 attends to two nodes: one head alike, the other to one of them; node 1 to itself.
        let seen = EdgeWeights {
            edges: vec![(0, 0), (1, 0), (1, 1)],
            weights: array![[0.5, 1.0], [0.5, 0.0], [1.0, 1.0]],
        };
        let spread = spread(&seen);
        assert!((spread.deviation - (0.25 + 0.25 + 0.0) / 3.0).abs() < 1e-12);
        assert_eq!((spread.histogram[0], spread.histogram[10]), (1, 2));
        assert!((spread.entropies[0] - 2f64.ln() / 2.0).abs() < 1e-12);
        assert_eq!(spread.entropies[1], 0.0);
        assert!((spread.uniform - 2f64.ln() / 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_largest_deviation_has_a_cell() {
        let seen = EdgeWeights {
            edges: vec![(0, 0)],
            weights: array![[0.0, 1.0]],
        };
        assert_eq!(spread(&seen).histogram[CELLS - 1], 1);
    }
}
