//! Measures of what the heads of a layer have learnt, and of their differences.

use crate::trial::Findings;
use bochner_graph::{EdgeWeights, GraphInspection};
use bochner_interpret::{GaussianTest, entropy, excess_kurtosis};
use bochner_numerics::{ArgumentError, Seed};
use bochner_report::row::{Heads, Spread};
use bochner_report::statistics::{holm, mean, population_deviation};
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, Axis};
use std::cell::OnceCell;

/// Cells of the histogram of deviations, from 0 to the largest there can be.
const CELLS: usize = 20;

/// The largest standard deviation of numbers between 0 and 1.
const LARGEST: f64 = 0.5;

/// The measure of how much heads differ: the standard deviation of an edge's weight over the heads, mean over the
/// edges.
pub const DEVIATION: &str = "deviation";
/// The mean absolute correlation of different heads, of the mean over the latent dimensions.
pub const CORRELATION: &str = "correlation";
/// The mean absolute correlation of different heads before training.
pub const START: &str = "correlation before training";
/// The correlation in units of that before training, which counts as [`LEAST_START`] at least.
pub const GROWTH: &str = "correlation over its start";
/// The mean over the latent dimensions of the mean absolute correlation of different heads in each.
pub const WITHIN: &str = "correlation within a dimension";
/// The Frobenius norm of the difference between the mean correlation matrix and the identity.
pub const DISTANCE: &str = "distance to the identity";
/// One where the energy test rejects a Gaussian for at least one head, and zero elsewhere.
pub const REJECTED: &str = "rejected at 1 %";
/// The number of heads for which it rejects a Gaussian.
pub const HEADS_REJECTED: &str = "heads rejected";
/// For how many heads it rejects a Gaussian before training.
pub const REJECTED_AT_START: &str = "heads rejected before training";
/// The root mean square of the spectral points' coordinates.
pub const SIZE: &str = "size of the points";
/// That size in units of the one before training.
pub const KEPT_SIZE: &str = "size over its start";
/// The excess kurtosis of the spectral points, mean over the dimensions and heads.
pub const KURTOSIS: &str = "excess kurtosis";
/// The excess kurtosis, largest in size, of a dimension of a head.
pub const LARGEST_KURTOSIS: &str = "largest excess kurtosis";

/// The chance that a Gaussian is rejected for any head, if all are Gaussian.
const LEVEL: f64 = 0.01;

/// Points that are drawn of each head's density for the test.
pub(super) const TESTED: usize = 512;

/// The least value that a correlation before training counts as. A correlation that starts at zero is soon twice its
/// start, which would be no test.
pub const LEAST_START: f64 = 0.025;

/// A layer before training.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// The mean absolute correlation of its heads, where they have one.
    correlation: Option<f64>,
    /// Points that were drawn of its density.
    points: Array3<f32>,
    /// Draws the samples of a Gaussian that points are compared with.
    seed: Seed,
    /// The test, whose samples are drawn once, when the layer is looked at: they take a second.
    test: OnceCell<GaussianTest>,
}

impl Start {
    /// The start of a layer, and points that were drawn of its density; `seed` draws what points are compared with.
    pub(super) fn new(seen: &GraphInspection<f32>, points: Array3<f32>, seed: Seed) -> Self {
        Self {
            correlation: dependence(seen),
            points,
            seed,
            test: OnceCell::new(),
        }
    }

    fn test(&self) -> Result<&GaussianTest, ArgumentError> {
        if let Some(test) = self.test.get() {
            return Ok(test);
        }
        let (_, points, dimensions) = self.points.dim();
        let drawn = GaussianTest::new(points, dimensions, self.seed)?;
        Ok(self.test.get_or_init(|| drawn))
    }
}

/// The measures of a layer: in the points `tested`, which were drawn of its density, and against the layer before
/// training.
pub(super) fn measures(
    seen: &GraphInspection<f32>,
    tested: &Array3<f32>,
    start: &Start,
) -> Result<Findings, ArgumentError> {
    let mut found = vec![(DEVIATION, spread(&seen.weights).deviation)];
    found.extend(shape_of_densities(tested, start)?);
    if let (Some(correlation), Some(start)) = (&seen.correlation, start.correlation) {
        found.extend(dependences(correlation, start));
    }
    Ok(Findings::of(found))
}

/// For how many heads the energy test rejects a Gaussian, each by itself.
fn rejected_heads(points: &Array3<f32>, test: &GaussianTest) -> Result<f64, ArgumentError> {
    let points = points.mapv(f64::from);
    let p_values = points.outer_iter().map(|head| test.p_value(head));
    let adjusted = holm(&p_values.collect::<Result<Vec<_>, _>>()?);
    Ok(adjusted.iter().filter(|&&p| p <= LEVEL).count() as f64)
}

/// The root mean square of the points' coordinates.
fn size(points: &Array3<f32>) -> f64 {
    mean_of(
        &points
            .iter()
            .map(|&x| f64::from(x).powi(2))
            .collect::<Vec<_>>(),
    )
    .sqrt()
}

/// The distance of the heads' points from a Gaussian's, and their size.
fn shape_of_densities(
    points: &Array3<f32>,
    start: &Start,
) -> Result<[(&'static str, f64); 7], ArgumentError> {
    let rejected = rejected_heads(points, start.test()?)?;
    let all = points.mapv(f64::from);
    let kurtosis: Vec<f64> = all.outer_iter().flat_map(excess_kurtosis).collect();
    let largest = kurtosis
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (size, before) = (size(points), size(&start.points));
    Ok([
        (REJECTED, f64::from(u8::from(rejected > 0.0))),
        (HEADS_REJECTED, rejected),
        (
            REJECTED_AT_START,
            rejected_heads(&start.points, start.test()?)?,
        ),
        (SIZE, size),
        // The smallest positive number keeps a start without points of size finite.
        (KEPT_SIZE, size / before.max(f64::MIN_POSITIVE)),
        (KURTOSIS, mean_of(&kurtosis)),
        (LARGEST_KURTOSIS, largest.unwrap_or_default()),
    ])
}

/// The dependence of heads on each other, by their correlation in each latent dimension, `[D, H, H]`.
fn dependences(correlation: &Array3<f32>, start: f64) -> Vec<(&'static str, f64)> {
    let all = correlation.mapv(f64::from);
    let (Some(mean), Some(sizes)) = (
        all.mean_axis(Axis(0)),
        all.mapv(f64::abs).mean_axis(Axis(0)),
    ) else {
        return Vec::new();
    };
    let now = apart(mean.view());
    let distance = &mean - &Array2::<f64>::eye(mean.nrows());
    vec![
        (CORRELATION, now),
        (START, start),
        (GROWTH, now / start.max(LEAST_START)),
        (WITHIN, apart(sizes.view())),
        (DISTANCE, distance.mapv(|x| x * x).sum().sqrt()),
    ]
}

/// The mean absolute correlation of different heads, of the mean over the latent dimensions.
fn dependence(seen: &GraphInspection<f32>) -> Option<f64> {
    let mean = seen.correlation.as_ref()?.mean_axis(Axis(0))?;
    Some(apart(mean.mapv(f64::from).view()))
}

/// The mean absolute value beside the diagonal; zero of a single head.
pub(crate) fn apart(matrix: ArrayView2<'_, f64>) -> f64 {
    let apart = matrix.indexed_iter().filter(|((i, j), _)| i != j);
    mean_of(&apart.map(|(_, c)| c.abs()).collect::<Vec<_>>())
}

fn mean_of(values: &[f64]) -> f64 {
    mean(values).unwrap_or_default()
}

/// The spectral points of each head, and the correlation of the heads; none without points.
pub(super) fn learnt(seen: &GraphInspection<f32>) -> Option<Heads> {
    let points = seen.points.as_ref()?.view();
    let correlation = seen.correlation.as_ref();
    Some(crate::trial::learnt_heads(Some(points), correlation))
}

/// The spread of the weights of edges over the heads, and within each head over a node's neighbours.
pub(super) fn spread(seen: &EdgeWeights<f32>) -> Spread {
    let deviation = |edge: ArrayView1<'_, f32>| {
        let weights: Vec<f64> = edge.iter().map(|&w| w.into()).collect();
        population_deviation(&weights).unwrap_or_default()
    };
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
            .map(|head| each * entropy(head.iter().map(|&w| w.into())))
            .collect(),
        uniform: each * attending.map(|&degree| f64::from(degree).ln()).sum::<f64>(),
    }
}
