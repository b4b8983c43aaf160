//! What the heads of a layer have learnt, and how they differ.

use crate::store::{Heads, Spread};
use bochner_graph::{EdgeWeights, GraphInspection};
use ndarray::{Array3, ArrayView1, Axis};

/// Cells of the histogram of deviations, from 0 to the largest there can be.
const CELLS: usize = 20;

/// The largest standard deviation of numbers between 0 and 1.
const LARGEST: f64 = 0.5;

/// Whether the points themselves are kept, for a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// With what they were drawn by.
    Points,
    /// Only that.
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
