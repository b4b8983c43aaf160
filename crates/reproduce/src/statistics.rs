//! Paired comparisons over splits, and verdicts.

mod energy;

pub use energy::{GaussianTest, excess_kurtosis, holm};

use crate::Error;
use bochner_numerics::{ArgumentError, argument};
use serde::Serialize;
use std::fmt;

/// The mean.
///
/// # Errors
/// [`Error::Argument`] without values.
pub fn mean(values: &[f64]) -> Result<f64, Error> {
    at_least("values", 1, values.len())?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of these values, with divisor $n$: what Table 4 prints after ±.
///
/// # Errors
/// [`Error::Argument`] without values.
pub fn population_deviation(values: &[f64]) -> Result<f64, Error> {
    Ok((squares(values)? / values.len() as f64).sqrt())
}

/// The estimated standard deviation of what the values were drawn from, with divisor $n - 1$.
///
/// # Errors
/// [`Error::Argument`] with fewer than two values.
pub fn sample_deviation(values: &[f64]) -> Result<f64, Error> {
    at_least("values", 2, values.len())?;
    Ok((squares(values)? / (values.len() - 1) as f64).sqrt())
}

fn squares(values: &[f64]) -> Result<f64, Error> {
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
    /// How much it rises for each unit.
    pub slope: f64,
    /// The standard error of the slope, from what the line leaves over.
    pub error: f64,
}

/// The line through points with the least squared distances along the second coordinate.
///
/// # Errors
/// [`Error::Argument`] with fewer than three points, or where all have the same first coordinate.
pub fn line(points: &[(f64, f64)]) -> Result<Line, Error> {
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
/// [`Error::Argument`] without values.
pub fn median(values: &[f64]) -> Result<f64, Error> {
    at_least("values", 1, values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    Ok((low + high) / 2.0)
}

/// A variant against a baseline on the same splits.
///
/// $$ d_s = \mathrm{error}(\text{variant}, s) - \mathrm{error}(\text{baseline}, s), \qquad
/// \mathrm{SE} = \frac{\mathrm{sd}(d)}{\sqrt n}, \qquad
/// \mathrm{SE}' = \mathrm{sd}(d) \sqrt{\frac1n + \frac{n_\text{test}}{n_\text{train}}} $$
///
/// Folds share training rows, so SE is too small; SE' is the correction of Nadeau and Bengio
/// (2003). Seeds on one split share them as well, but there SE is what it says: the spread over what
/// is random in the training, for that split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Splits.
    pub n: usize,
    /// The mean of the differences; negative if the variant's error is smaller.
    pub mean: f64,
    /// SE; absent for a single split.
    pub error: Option<f64>,
    /// SE'; absent for a single split, and for seeds on one split.
    pub corrected_error: Option<f64>,
    /// Splits on which the variant's error is smaller.
    pub wins: usize,
    /// Splits on which the two errors are equal.
    pub ties: usize,
}

impl Paired {
    /// Compares errors split by split; `test_share` is $n_\text{test} / n_\text{train}$ of folds, and
    /// absent where runs differ in their seeds alone.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are no splits or not the same number.
    pub fn new(variant: &[f64], baseline: &[f64], test_share: Option<f64>) -> Result<Self, Error> {
        let n = baseline.len();
        argument::shape("variant", &[n], &[variant.len()])?;
        let differences: Vec<f64> = variant.iter().zip(baseline).map(|(v, b)| v - b).collect();
        let deviation = sample_deviation(&differences).ok();
        let inverse = 1.0 / n as f64;
        Ok(Self {
            n,
            mean: mean(&differences)?,
            error: deviation.map(|sd| sd * inverse.sqrt()),
            corrected_error: deviation
                .zip(test_share)
                .map(|(sd, share)| sd * (inverse + share).sqrt()),
            wins: differences.iter().filter(|&&d| d < 0.0).count(),
            ties: differences.iter().filter(|&&d| d == 0.0).count(),
        })
    }

    /// Whether the mean is at least two standard errors from zero.
    pub fn is_clear(&self) -> bool {
        self.mean != 0.0
            && self
                .error
                .is_some_and(|error| self.mean.abs() >= 2.0 * error)
    }

    /// What may be said about the variant.
    pub fn finding(&self) -> Finding {
        match (self.error, self.is_clear()) {
            (None, _) => Finding::OneSplit,
            (_, false) => Finding::NoDifferenceSeen,
            (_, true) if self.mean < 0.0 => Finding::Better,
            (_, true) => Finding::Worse,
        }
    }
}

/// What a paired comparison of errors allows to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Finding {
    /// The mean difference is negative and at least two standard errors from zero.
    Better,
    /// The mean difference is positive and at least two standard errors from zero.
    Worse,
    /// Within two standard errors.
    NoDifferenceSeen,
    /// One split has no standard error.
    OneSplit,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceSeen => "no difference seen",
            Self::OneSplit => "one split only",
        })
    }
}

/// Whether a claim of the paper was found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The criterion holds for V-numbers and R-numbers.
    Reproduced,
    /// It holds only for R-numbers, or only for some sets.
    Partly(String),
    /// It does not hold.
    NotReproduced(String),
    /// The runs cannot tell.
    NotTested(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reproduced => f.write_str("reproduced"),
            Self::Partly(why) => write!(f, "partly: {why}"),
            Self::NotReproduced(why) => write!(f, "not reproduced: {why}"),
            Self::NotTested(why) => write!(f, "not tested: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::relative_error;

    fn close(got: f64, want: f64) {
        assert!(relative_error(&[got], &[want]) < 1e-12, "{got} != {want}");
    }

    #[test]
    fn deviations_of_2_4_9() {
        // Mean 5, squares 9 + 1 + 16 = 26.
        let values = [2.0, 4.0, 9.0];
        close(mean(&values).unwrap(), 5.0);
        close(
            population_deviation(&values).unwrap(),
            (26.0_f64 / 3.0).sqrt(),
        );
        close(sample_deviation(&values).unwrap(), 13.0_f64.sqrt());
        assert!(mean(&[]).is_err() && sample_deviation(&[1.0]).is_err());
    }

    #[test]
    fn a_line_worked_out_by_hand() {
        // Means 1 and 2; sums of squares 2 and products 3; left over .5, -1, .5.
        let fitted = line(&[(0.0, 1.0), (1.0, 1.0), (2.0, 4.0)]).unwrap();
        close(fitted.slope, 1.5);
        close(fitted.error, (1.5_f64 / 1.0 / 2.0).sqrt());
        assert!(line(&[(0.0, 1.0), (1.0, 1.0)]).is_err());
        assert!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_err());
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        close(median(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
        close(median(&[4.0, 1.0, 2.0, 3.0]).unwrap(), 2.5);
        assert!(median(&[]).is_err());
    }

    #[test]
    fn a_comparison_worked_out_by_hand() {
        // d = -3, -1, 1, -1: mean -1, squares 4 + 0 + 4 + 0 = 8, sd = sqrt(8 / 3).
        let paired = Paired::new(
            &[1.0, 2.0, 4.0, 5.0],
            &[4.0, 3.0, 3.0, 6.0],
            Some(1.0 / 8.0),
        )
        .unwrap();
        let sd = (8.0_f64 / 3.0).sqrt();
        assert_eq!((paired.n, paired.wins, paired.ties), (4, 3, 0));
        close(paired.mean, -1.0);
        close(paired.error.unwrap(), sd / 2.0);
        close(
            paired.corrected_error.unwrap(),
            sd * (0.25_f64 + 0.125).sqrt(),
        );
        // SE = .816, so -1 is 1.2 SE away.
        assert_eq!(paired.finding(), Finding::NoDifferenceSeen);
    }

    #[test]
    fn two_standard_errors_make_a_finding() {
        // d = -2, -1, -3: mean -2, sd 1, SE = 1 / sqrt(3) = .577.
        let better = Paired::new(&[0.0, 0.0, 0.0], &[2.0, 1.0, 3.0], Some(0.1)).unwrap();
        assert_eq!(better.finding(), Finding::Better);
        let worse = Paired::new(&[2.0, 1.0, 3.0], &[0.0, 0.0, 0.0], Some(0.1)).unwrap();
        assert_eq!(worse.finding(), Finding::Worse);
        assert_eq!(worse.wins, 0);
        let same = Paired::new(&[1.0, 1.0], &[1.0, 1.0], Some(0.1)).unwrap();
        assert_eq!((same.finding(), same.ties), (Finding::NoDifferenceSeen, 2));
        let seeds = Paired::new(&[0.0, 0.0, 0.0], &[2.0, 1.0, 3.0], None).unwrap();
        assert_eq!((seeds.error, seeds.corrected_error), (better.error, None));
        let single = Paired::new(&[1.0], &[2.0], Some(0.1)).unwrap();
        assert_eq!(single.finding(), Finding::OneSplit);
        assert!(single.error.is_none());
        assert!(Paired::new(&[1.0], &[1.0, 2.0], Some(0.1)).is_err());
        assert!(Paired::new(&[], &[], Some(0.1)).is_err());
    }
}
