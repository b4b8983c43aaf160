//! Priors of hyper-parameters.

use bochner_kernels::Domain;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// The prior density of a hyper-parameter.
///
/// The density is that of the parameter itself, not of its logarithm, so that a fit finds the mode in the
/// parameter's own units, as GPyTorch does. Constants are left out.
///
/// # Example
/// ```
/// use bochner_gp::{FitConfig, Prior};
///
/// let prior = Prior::LogNormal { mean: 0.0, std: 1.0 };
/// let config = FitConfig {
///     priors: [("kernel.base.lengthscale".to_owned(), prior)].into(),
///     ..FitConfig::default()
/// };
/// let text = serde_json::to_string(&config)?;
/// assert_eq!(serde_json::from_str::<FitConfig>(&text)?, config);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum Prior {
    /// Normal: $-(\theta - \mu)^2 / 2 s^2$.
    Normal {
        /// The mean $\mu$.
        mean: f64,
        /// The standard deviation $s$; positive.
        std: f64,
    },
    /// Log-normal: $-(\ln \theta - \mu)^2 / 2 s^2 - \ln \theta$. For positive parameters only.
    LogNormal {
        /// The mean $\mu$ of the logarithm.
        mean: f64,
        /// The standard deviation $s$ of the logarithm; positive.
        std: f64,
    },
    /// Gamma: $(a - 1) \ln \theta - b \theta$. For positive parameters only.
    Gamma {
        /// The shape $a$; positive.
        shape: f64,
        /// The rate $b$; positive.
        rate: f64,
    },
}

bochner_numerics::checked_when_read!(Prior, check);

impl Prior {
    pub(super) fn check(&self) -> Result<(), ArgumentError> {
        match *self {
            Self::Normal { mean, std } | Self::LogNormal { mean, std } => {
                argument::in_range(mean.is_finite(), "the mean of a prior", mean, "finite")?;
                argument::positive("the standard deviation of a prior", std)
            }
            Self::Gamma { shape, rate } => {
                argument::positive("the shape of a prior", shape)?;
                argument::positive("the rate of a prior", rate)
            }
        }
    }

    /// Refuses a prior of positive numbers for a parameter that can be negative.
    pub(super) fn check_domain(
        &self,
        name: &str,
        domain: Domain,
        value: f64,
    ) -> Result<(), ArgumentError> {
        let fits = domain == Domain::Positive || matches!(self, Self::Normal { .. });
        let allowed = "a parameter that is always positive, or have a normal prior";
        argument::in_range(fits, name.to_owned(), value, allowed)
    }

    /// The logarithm of the density up to a constant, and its derivative along $\theta$.
    pub(super) fn log_density(&self, theta: f64) -> (f64, f64) {
        match *self {
            Self::Normal { mean, std } => {
                let z = (theta - mean) / std;
                (-0.5 * z * z, -z / std)
            }
            Self::LogNormal { mean, std } => {
                let z = (theta.ln() - mean) / std;
                (-0.5 * z * z - theta.ln(), -(z / std + 1.0) / theta)
            }
            Self::Gamma { shape, rate } => {
                let log = (shape - 1.0) * theta.ln() - rate * theta;
                (log, (shape - 1.0) / theta - rate)
            }
        }
    }
}
