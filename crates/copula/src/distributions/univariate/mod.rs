//! Univariate distributions as data: a family and its parameters.

mod column;
mod density;
mod empirical;
mod fit;
mod kernel_density;
mod likelihood;
mod of_statrs;
mod quantile;
mod tails;

pub use empirical::Empirical;
pub use fit::Family;
pub(crate) use fit::maximum;
pub use kernel_density::KernelDensity;

use crate::distributions::marginal::{LogTails, Marginal};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// A univariate distribution: a family and its parameters.
///
/// Each family has its density and both of its tails as logarithms, accurate as far out as numbers go: a normal
/// distribution at 50 standard deviations, a Gamma distribution at 1e-300, a Cauchy distribution at 1e300. It is
/// plain data and is checked when it is read. [`fit`](Self::fit) estimates the parameters, [`select`](Self::select)
/// chooses the family too.
///
/// # Numerics
/// Logarithms are accurate to about 1e-14 of their size, at least 1e-14, for parameters from 1e-3 to 1e6. Columns
/// of draws are interpolated where that is accurate to 1e-11 of a normal score.
///
/// # Example
///
/// ```
/// use bochner_copula::{Marginal, Univariate};
///
/// let income = Univariate::Gamma { shape: 2.0, rate: 1e-3 };
/// assert!((income.at_score(0.0) - 1678.35).abs() < 0.01);
/// assert!((income.log_tails(1e5).upper + 95.385).abs() < 1e-3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "family",
    rename_all = "kebab-case",
    deny_unknown_fields,
    remote = "Self"
)]
#[non_exhaustive]
pub enum Univariate {
    /// The normal distribution.
    #[doc(alias = "gaussian")]
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation, above 0.
        std_dev: f64,
    },
    /// The distribution of a number whose logarithm is normal.
    LogNormal {
        /// The mean of the logarithm.
        location: f64,
        /// The standard deviation of the logarithm, above 0.
        scale: f64,
    },
    /// The Gamma distribution; those of Erlang and chi-squared are among them.
    Gamma {
        /// The shape, above 0.
        shape: f64,
        /// The rate, one over the scale, above 0.
        rate: f64,
    },
    /// The exponential distribution.
    Exponential {
        /// The rate, one over the mean, above 0.
        rate: f64,
    },
    /// The Beta distribution on the unit interval.
    Beta {
        /// The shape at 0, above 0.
        shape_a: f64,
        /// The shape at 1, above 0.
        shape_b: f64,
    },
    /// Student's t distribution; with one degree of freedom, Cauchy's.
    #[doc(alias = "t")]
    #[doc(alias = "cauchy")]
    StudentsT {
        /// The centre.
        location: f64,
        /// The scale, above 0.
        scale: f64,
        /// The degrees of freedom, above 0.
        freedom: f64,
    },
    /// The uniform distribution on an interval.
    Uniform {
        /// The lower end.
        min: f64,
        /// The upper end.
        max: f64,
    },
    /// The Weibull distribution.
    Weibull {
        /// The shape, above 0.
        shape: f64,
        /// The scale, above 0.
        scale: f64,
    },
    /// Gumbel's distribution of maxima.
    Gumbel {
        /// The mode.
        location: f64,
        /// The scale, above 0.
        scale: f64,
    },
    /// The Laplace distribution.
    Laplace {
        /// The centre.
        location: f64,
        /// The mean distance from the centre, above 0.
        scale: f64,
    },
    /// The Pareto distribution.
    Pareto {
        /// The least value, above 0.
        scale: f64,
        /// The exponent of the survival function, above 0.
        shape: f64,
    },
    /// The distribution of one over a number with a Gamma distribution.
    InverseGamma {
        /// The shape, above 0.
        shape: f64,
        /// The rate of the Gamma distribution, above 0.
        rate: f64,
    },
    /// The distribution of the norm of a standard normal vector.
    Chi {
        /// The length of the vector, above 0.
        freedom: f64,
    },
    /// The F distribution.
    #[doc(alias = "f")]
    FisherSnedecor {
        /// The degrees of freedom of the numerator, above 0.
        freedom_1: f64,
        /// The degrees of freedom of the denominator, above 0.
        freedom_2: f64,
    },
    /// The triangular distribution.
    Triangular {
        /// The lower end.
        min: f64,
        /// The upper end.
        max: f64,
        /// The mode, from the lower end to the upper.
        mode: f64,
    },
    /// The distribution of a sample.
    Empirical(Empirical),
    /// The distribution of a sample, smoothed by normal kernels.
    KernelDensity(KernelDensity),
}

bochner_numerics::checked_when_read!(Univariate, |univariate| Marginal::check(univariate));

impl Marginal for Univariate {
    fn log_density(&self, z: f64) -> f64 {
        density::log_density(self, z)
    }

    fn log_tails(&self, z: f64) -> LogTails {
        tails::log_tails(self, z)
    }

    fn support(&self) -> (f64, f64) {
        let (whole, positive) = ((f64::NEG_INFINITY, f64::INFINITY), (0.0, f64::INFINITY));
        match self {
            Self::Normal { .. }
            | Self::StudentsT { .. }
            | Self::Gumbel { .. }
            | Self::Laplace { .. }
            | Self::KernelDensity(_) => whole,
            Self::LogNormal { .. }
            | Self::Gamma { .. }
            | Self::Exponential { .. }
            | Self::Weibull { .. }
            | Self::InverseGamma { .. }
            | Self::Chi { .. }
            | Self::FisherSnedecor { .. } => positive,
            Self::Beta { .. } => (0.0, 1.0),
            &Self::Uniform { min, max } | &Self::Triangular { min, max, .. } => (min, max),
            &Self::Pareto { scale, .. } => (scale, f64::INFINITY),
            Self::Empirical(sample) => sample.support(),
        }
    }

    fn at_score(&self, x: f64) -> f64 {
        quantile::at_score(self, x)
    }

    fn at_scores(&self, scores: &mut [f64]) {
        column::at_scores(self, scores);
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let finite = |name, x: f64| argument::in_range(x.is_finite(), name, x, "finite");
        let positive = |name, x: f64| {
            argument::in_range(x > 0.0 && x.is_finite(), name, x, "above 0 and finite")
        };
        let interval = |min: f64, max: f64| {
            finite("min", min)?;
            argument::in_range(max > min && max.is_finite(), "max", max, "above min")
        };
        match *self {
            Self::Normal { mean, std_dev } => {
                finite("mean", mean)?;
                positive("std_dev", std_dev)
            }
            Self::LogNormal { location, scale }
            | Self::Gumbel { location, scale }
            | Self::Laplace { location, scale } => {
                finite("location", location)?;
                positive("scale", scale)
            }
            Self::Gamma { shape, rate } | Self::InverseGamma { shape, rate } => {
                positive("shape", shape)?;
                positive("rate", rate)
            }
            Self::Exponential { rate } => positive("rate", rate),
            Self::Beta { shape_a, shape_b } => {
                positive("shape_a", shape_a)?;
                positive("shape_b", shape_b)
            }
            Self::StudentsT {
                location,
                scale,
                freedom,
            } => {
                finite("location", location)?;
                positive("scale", scale)?;
                positive("freedom", freedom)
            }
            Self::Uniform { min, max } => interval(min, max),
            Self::Weibull { shape, scale } | Self::Pareto { scale, shape } => {
                positive("shape", shape)?;
                positive("scale", scale)
            }
            Self::Chi { freedom } => positive("freedom", freedom),
            Self::FisherSnedecor {
                freedom_1,
                freedom_2,
            } => {
                positive("freedom_1", freedom_1)?;
                positive("freedom_2", freedom_2)
            }
            Self::Triangular { min, max, mode } => {
                interval(min, max)?;
                let inside = (min..=max).contains(&mode);
                argument::in_range(inside, "mode", mode, "from min to max")
            }
            Self::Empirical(ref sample) => sample.check(),
            // Checked when it is made or read.
            Self::KernelDensity(_) => Ok(()),
        }
    }
}
