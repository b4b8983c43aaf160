//! Tests of whether points, such as the spectral points of a head, are a sample of a Gaussian: moments, and one that looks
//! at all of the distribution.

use bochner_dense::Cholesky;
use bochner_numerics::{ArgumentError, Seed, argument, standard_normal};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

/// Samples of a Gaussian that points are compared with: the smallest p-value is a thousandth.
const DRAWS: usize = 999;

/// Points at most: one of more could lie so far out that $e^{-x}$ in its expected distance underflows to zero.
const MOST: usize = 1024;

/// The energy test of whether points are a sample of a Gaussian, whatever its mean and covariance.
///
/// With $y_i = L^{-1} (x_i - \bar x)$ the points brought to zero mean and unit covariance $L L^\top$, and $Z, Z'$
/// standard normal, the statistic is their energy distance to the Gaussian of their own mean and covariance,
///
/// $$ E = \frac2n \sum_i \mathbb E |y_i - Z| - \mathbb E |Z - Z'| - \frac1{n^2} \sum_{ij} |y_i - y_j| . $$
///
/// Its distribution under the hypothesis depends on the number of points and dimensions alone, since mean and covariance
/// are estimated in each sample that the points are compared with. So the test rejects a Gaussian exactly as often
/// as its level says. A permutation test against one sample of the fitted Gaussian does not: both samples then have
/// nearly one mean and covariance, and of 300 samples of 64 points in 16 dimensions it rejected 2 at a level of one half.
///
/// Points with a singular covariance, up to rounding, lie in a plane of fewer dimensions. No Gaussian with a density
/// has such a sample, so that they are further from one than any sample drawn.
///
/// # Reference
/// G. J. Székely and M. L. Rizzo, *A new test for multivariate normality*, 2005.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianTest {
    points: usize,
    dimensions: usize,
    /// The statistics of samples of a Gaussian.
    drawn: Vec<f64>,
}

impl GaussianTest {
    /// The test of so many points, with the samples that this seed draws.
    ///
    /// # Errors
    /// [`ArgumentError`] unless there are more points than dimensions, and at most 1,024.
    pub fn new(points: usize, dimensions: usize, seed: Seed) -> Result<Self, ArgumentError> {
        let mut stream = seed.stream("samples of a Gaussian");
        let mut draw = |_| {
            let normal = || standard_normal::<f64>(&mut stream);
            gaussian_energy(Array2::from_shape_simple_fn((points, dimensions), normal).view())
        };
        Ok(Self {
            points,
            dimensions,
            drawn: (0..DRAWS).map(&mut draw).collect::<Result<_, _>>()?,
        })
    }

    /// The share of samples of a Gaussian, the points among them, that lie as far from one as the points.
    ///
    /// # Errors
    /// [`ArgumentError`] for another number of points or dimensions.
    pub fn p_value(&self, points: ArrayView2<'_, f64>) -> Result<f64, ArgumentError> {
        argument::shape("points", &[self.points, self.dimensions], points.shape())?;
        let own = gaussian_energy(points)?;
        let as_far = self.drawn.iter().filter(|&&drawn| drawn >= own);
        Ok((1 + as_far.count()) as f64 / (1 + DRAWS) as f64)
    }
}

/// The energy distance between points and the Gaussian of their mean and covariance, in units of the latter; infinite
/// where the covariance is singular.
fn gaussian_energy(points: ArrayView2<'_, f64>) -> Result<f64, ArgumentError> {
    let (n, d) = points.dim();
    let enough = n > d && n <= MOST;
    argument::in_range(
        enough,
        "the number of points",
        n as f64,
        "above that of the dimensions, at most 1024",
    )?;
    let mean = points.mean_axis(Axis(0)).expect("there are points");
    let mut standard = &points - &mean;
    let covariance = standard.t().dot(&standard) / (n - 1) as f64;
    let whitened = Cholesky::new(covariance.view()).and_then(|l| l.whiten(standard.view_mut()));
    if whitened.is_err() {
        return Ok(f64::INFINITY);
    }
    let products = standard.dot(&standard.t());
    let squares = products.diag().to_vec();
    let to_normal: f64 = squares.iter().map(|&square| to_normal(square, d)).sum();
    let mut between = 0.0;
    for (i, row) in products.outer_iter().enumerate() {
        let own = squares[i];
        let later = squares.iter().zip(row).skip(i + 1);
        between += later
            .map(|(square, product)| (own + square - 2.0 * product).max(0.0).sqrt())
            .sum::<f64>();
    }
    let n = n as f64;
    Ok(2.0 / n * to_normal - 2f64.sqrt() * mean_norm(d) - 2.0 / (n * n) * between)
}

/// The mean distance between a point with this squared norm and a standard normal one.
///
/// $$ \mathbb E |a - Z| = m_d e^{-x} {}_1F_1(\tfrac{d+1}2; \tfrac d2; x), \qquad x = |a|^2 / 2, \quad m_d = \mathbb E |Z| $$
fn to_normal(square: f64, d: usize) -> f64 {
    let (x, half) = (square / 2.0, d as f64 / 2.0);
    let (mut term, mut sum, mut k) = ((-x).exp(), 0.0, 0.0);
    // All terms are positive. They grow up to about the x-th, and fall from there on.
    while k <= x || term > f64::EPSILON * sum {
        sum += term;
        term *= (half + 0.5 + k) / (half + k) * x / (k + 1.0);
        k += 1.0;
    }
    mean_norm(d) * sum
}

/// The mean norm of a standard normal point: that in d dimensions times that in d + 1 is d.
fn mean_norm(d: usize) -> f64 {
    let first = (2.0 / std::f64::consts::PI).sqrt();
    (1..d).fold(first, |norm, d| d as f64 / norm)
}

/// Returns the excess kurtosis of each column: zero for a Gaussian.
pub fn excess_kurtosis(points: ArrayView2<'_, f64>) -> Vec<f64> {
    let of_column = |column: ArrayView1<'_, f64>| {
        let n = column.len().max(1) as f64;
        let mean = column.sum() / n;
        let moment = |power| column.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
        moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE) - 3.0
    };
    points.axis_iter(Axis(1)).map(of_column).collect()
}
