//! Means, deviations, medians and straight lines.

use bochner_numerics::{ArgumentError, argument};
use serde::Serialize;
use statrs::statistics::{Data, Median};

/// The mean.
///
/// # Errors
/// [`ArgumentError`] without values.
pub fn mean(values: &[f64]) -> Result<f64, ArgumentError> {
    at_least("values", 1, values.len())?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of the values themselves, with divisor $n$: what Table 4 prints after ±.
///
/// # Errors
/// [`ArgumentError`] without values.
pub fn population_deviation(values: &[f64]) -> Result<f64, ArgumentError> {
    Ok((squares(values)? / values.len() as f64).sqrt())
}

/// The estimated standard deviation of the distribution behind the values, with divisor $n - 1$.
///
/// # Errors
/// [`ArgumentError`] with fewer than two values.
pub fn sample_deviation(values: &[f64]) -> Result<f64, ArgumentError> {
    at_least("values", 2, values.len())?;
    Ok((squares(values)? / (values.len() - 1) as f64).sqrt())
}

fn squares(values: &[f64]) -> Result<f64, ArgumentError> {
    let mean = mean(values)?;
    Ok(values.iter().map(|value| (value - mean).powi(2)).sum())
}

fn at_least(name: &'static str, least: usize, got: usize) -> Result<(), ArgumentError> {
    let name = format!("the number of {name}");
    argument::in_range(got >= least, name, got as f64, format!("at least {least}"))
}

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The rise for each unit of the first coordinate.
    pub slope: f64,
    /// The standard error of the slope, from the residuals.
    pub error: f64,
}

/// The line through points with the least squared distances along the second coordinate.
///
/// # Errors
/// [`ArgumentError`] with fewer than three points, or where all have the same first coordinate.
pub fn line(points: &[(f64, f64)]) -> Result<Line, ArgumentError> {
    at_least("points", 3, points.len())?;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (mean_x, mean_y) = (mean(&x)?, mean(&y)?);
    let spread = squares(&x)?;
    if spread == 0.0 {
        at_least("different places of the points", 2, 1)?;
    }
    let product = |(x, y): &(f64, f64)| (x - mean_x) * (y - mean_y);
    let slope = points.iter().map(product).sum::<f64>() / spread;
    let left_over = |(x, y): &(f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
    let variance = points.iter().map(left_over).sum::<f64>() / (points.len() - 2) as f64;
    Ok(Line {
        slope,
        error: (variance / spread).sqrt(),
    })
}

/// The value in the middle, or the mean of the two.
///
/// # Errors
/// [`ArgumentError`] without values.
pub fn median(values: &[f64]) -> Result<f64, ArgumentError> {
    at_least("values", 1, values.len())?;
    Ok(Data::new(values.to_vec()).median())
}
