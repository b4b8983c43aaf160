//! Whether points are a sample of a Gaussian: moments, and a test that looks at all of the distribution.

use bochner_dense::Cholesky;
use bochner_numerics::{ArgumentError, Seed, argument, standard_normal};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;

/// Permutations of the test: the smallest p-value is a two hundredth.
const PERMUTATIONS: usize = 199;

/// What the test has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyTest {
    /// The energy distance between the points and as many of the Gaussian.
    pub distance: f64,
    /// The share of permutations whose distance is as large.
    pub p_value: f64,
}

/// The energy distance between points and a sample of the Gaussian of the same mean and covariance, with a permutation
/// test.
///
/// $$ E = \frac2{n^2} \sum_{ij} |x_i - y_j| - \frac1{n^2} \sum_{ij} |x_i - x_j| - \frac1{n^2} \sum_{ij} |y_i - y_j| $$
///
/// # Errors
/// [`ArgumentError`] for fewer than two points, or a covariance that is singular.
///
/// # Reference
/// G. J. Székely and M. L. Rizzo, *Energy statistics: A class of statistics based on distances*, 2013.
pub fn gaussian_energy_test(
    points: ArrayView2<'_, f64>,
    seed: Seed,
) -> Result<EnergyTest, ArgumentError> {
    let n = points.nrows();
    argument::in_range(n > 1, "points", n as f64, "at least 2")?;
    let mean = points.mean_axis(Axis(0)).expect("there are points");
    let centred = &points - &mean;
    let covariance = centred.t().dot(&centred) / (n - 1) as f64;
    let factor = Cholesky::new(covariance.view());
    argument::in_range(
        factor.is_ok(),
        "the covariance of the points",
        0.0,
        "positive definite",
    )?;
    let factor = factor.expect("it was checked");
    let mut stream = seed.stream("a Gaussian");
    let normal =
        Array2::from_shape_simple_fn(points.raw_dim(), || standard_normal::<f64>(&mut stream));
    let drawn = normal.dot(&factor.lower().t()) + &mean;
    let all = ndarray::concatenate![Axis(0), points, drawn];
    let distances = Array2::from_shape_fn((2 * n, 2 * n), |(i, j)| {
        let (a, b) = (all.row(i), all.row(j));
        let apart = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b));
        apart.sum::<f64>().sqrt()
    });
    // With signs for the two samples, the distance is a quadratic form.
    let energy = |signs: &Array1<f64>| -signs.dot(&distances.dot(signs)) / (n * n) as f64;
    let mut signs = Array1::from_shape_fn(2 * n, |i| if i < n { 1.0 } else { -1.0 });
    let distance = energy(&signs);
    let mut stream = seed.stream("permutations");
    let as_large = (0..PERMUTATIONS).filter(|_| {
        signs.as_slice_mut().expect("one row").shuffle(&mut stream);
        energy(&signs) >= distance
    });
    let p_value = (1 + as_large.count()) as f64 / (1 + PERMUTATIONS) as f64;
    Ok(EnergyTest { distance, p_value })
}

/// The excess kurtosis of each column, mean over the columns: zero for a Gaussian.
pub fn excess_kurtosis(points: ArrayView2<'_, f64>) -> f64 {
    let of_column = |column: ndarray::ArrayView1<'_, f64>| {
        let n = column.len().max(1) as f64;
        let mean = column.sum() / n;
        let moment = |power| column.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
        moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE) - 3.0
    };
    let columns = points.axis_iter(Axis(1)).map(of_column);
    columns.sum::<f64>() / points.ncols().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points around two centres that are `apart` standard deviations from each other.
    fn points(apart: f64) -> Array2<f64> {
        let mut stream = Seed::new(4).stream("points");
        Array2::from_shape_fn((160, 2), |(i, j)| {
            let centre = if i % 2 == 0 {
                apart / 2.0
            } else {
                -apart / 2.0
            };
            standard_normal::<f64>(&mut stream) + if j == 0 { centre } else { 0.0 }
        })
    }

    #[test]
    fn two_centres_are_rejected_and_one_is_not() {
        let (one, two) = (points(0.0), points(8.0));
        let test =
            |points: &Array2<f64>| gaussian_energy_test(points.view(), Seed::new(1)).unwrap();
        assert!(test(&one).p_value > 0.05, "{:?}", test(&one));
        assert!(test(&two).p_value <= 0.01, "{:?}", test(&two));
        assert!(excess_kurtosis(one.view()).abs() < 0.8);
        assert!(excess_kurtosis(two.slice(ndarray::s![.., ..1])) < -1.5);
        assert!(gaussian_energy_test(one.slice(ndarray::s![..1, ..]), Seed::new(1)).is_err());
    }
}
