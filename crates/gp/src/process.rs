//! The process: a kernel, a constant mean and the variance of the noise.

use crate::saved::Version;
use crate::{Error, Jitter};
use bochner_kernels::{AnyKernel, Domain, Kernel, Parameter};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// A Gaussian process observed through noise.
///
/// $$f \sim \mathcal{GP}(m, k), \qquad y_i = f(x_i) + \varepsilon_i, \qquad
/// \varepsilon_i \sim \mathcal N(0, \sigma^2 + v_i)$$
///
/// *where* $m$ is the constant `mean`, $k$ the `kernel`, $\sigma^2 > 0$ the variance `noise` and $v_i \ge 0$ the
/// known variances `observation_noise`, zero by default.
///
/// serde writes it with the version of the format, `{"version": 1, "process": {..}}`. A file of another version, a
/// kernel that is not known, and settings that [`GaussianProcessConfig::build`] refuses are errors. A kernel from
/// outside `bochner-kernels` cannot be written.
///
/// # Numerics
/// Double precision only: the smallest eigenvalues of a smooth kernel's Gram matrix are far below
/// the rounding of single precision, and the jitter that would lift them is noise of its own.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, chapters 2 and 5.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct GaussianProcess {
    pub(crate) kernel: AnyKernel<f64>,
    pub(crate) mean: f64,
    pub(crate) noise: f64,
    pub(crate) observation_noise: Option<Vec<f64>>,
    pub(crate) jitter: Jitter,
}

/// The settings of a [`GaussianProcess`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GaussianProcessConfig {
    /// The covariance of the function's values.
    pub kernel: AnyKernel<f64>,
    /// The mean of the function's values, a constant.
    pub mean: f64,
    /// The variance of the noise of an observation; positive. For a function known exactly, give
    /// a small part of its variance.
    pub noise: f64,
    /// Known variances of the noise of each observation, `[n]`, which are added to `noise`; at least 0. The
    /// process can then be conditioned on $n$ observations only. `None` for none.
    #[doc(alias = "alpha")]
    #[serde(default)]
    pub observation_noise: Option<Vec<f64>>,
    /// The jitter, which is added to the diagonal of a covariance matrix beside the noise.
    pub jitter: Jitter,
}

/// A process as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: Version,
    process: GaussianProcessConfig,
}

impl TryFrom<Saved> for GaussianProcess {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self, Error> {
        saved.process.build()
    }
}

impl From<GaussianProcess> for Saved {
    fn from(process: GaussianProcess) -> Self {
        let version = Version;
        Self {
            version,
            process: GaussianProcessConfig {
                kernel: process.kernel,
                mean: process.mean,
                noise: process.noise,
                observation_noise: process.observation_noise,
                jitter: process.jitter,
            },
        }
    }
}

impl GaussianProcessConfig {
    /// The process of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the mean is finite, the noise finite and positive, and the noise of the
    /// observations and the jitter finite and not negative.
    pub fn build(self) -> Result<GaussianProcess, Error> {
        check_mean_and_noise(self.mean, self.noise)?;
        self.jitter.check()?;
        for &variance in self.observation_noise.iter().flatten() {
            argument::non_negative("observation_noise", variance)?;
        }
        Ok(GaussianProcess {
            kernel: self.kernel,
            mean: self.mean,
            noise: self.noise,
            observation_noise: self.observation_noise,
            jitter: self.jitter,
        })
    }
}

fn check_mean_and_noise(mean: f64, noise: f64) -> Result<(), ArgumentError> {
    argument::in_range(mean.is_finite(), "mean", mean, "finite")?;
    argument::positive("noise", noise)
}

impl GaussianProcess {
    /// The covariance function.
    pub fn kernel(&self) -> &AnyKernel<f64> {
        &self.kernel
    }

    /// The constant mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The variance of the noise.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The known variances of the noise of each observation, which are added to that of
    /// [`noise`](Self::noise).
    pub fn observation_noise(&self) -> Option<&[f64]> {
        self.observation_noise.as_deref()
    }

    /// The jitter, which is added to the diagonal of a covariance matrix beside the noise.
    pub fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The hyper-parameters: `mean`, `noise`, and the kernel's as `kernel.name`.
    pub fn parameters(&self) -> Vec<Parameter<f64>> {
        let own = |name: &str, value, domain| Parameter {
            name: name.to_owned(),
            value,
            domain,
        };
        let mut parameters = vec![
            own("mean", self.mean, Domain::Finite),
            own("noise", self.noise, Domain::Positive),
        ];
        let kernel = self.kernel.parameters().into_iter();
        parameters.extend(kernel.map(|p| Parameter {
            name: format!("kernel.{}", p.name),
            ..p
        }));
        parameters
    }

    /// Replaces all hyper-parameters, in the order of [`parameters`](Self::parameters); if one is
    /// refused, none is replaced.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are too few or too many, or if one of the process lies outside its domain;
    /// [`Error::Kernel`] if one of the kernel does.
    pub fn set_parameters(&mut self, values: &[f64]) -> Result<(), Error> {
        argument::shape("values", &[self.parameters().len()], &[values.len()])?;
        check_mean_and_noise(values[0], values[1])?;
        self.kernel.set_parameters(&values[2..])?;
        (self.mean, self.noise) = (values[0], values[1]);
        Ok(())
    }

    /// The hyper-parameters as coordinates without bounds: $\ln \theta$ of those that must be
    /// positive, $\theta$ of the others.
    pub fn coordinates(&self) -> Vec<f64> {
        let parameters = self.parameters().into_iter();
        parameters.map(|p| coordinate(p.domain, p.value)).collect()
    }

    /// The inverse of [`coordinates`](Self::coordinates).
    ///
    /// # Errors
    /// [`Error::Argument`] if there are too few or too many; [`Error::Coordinate`] if one is not
    /// finite, or is a logarithm whose exponential overflows or is zero.
    pub fn set_coordinates(&mut self, coordinates: &[f64]) -> Result<(), Error> {
        let parameters = self.parameters();
        argument::shape("coordinates", &[parameters.len()], &[coordinates.len()])?;
        let pairs = parameters.into_iter().zip(coordinates);
        let values = pairs.map(|(p, &got)| {
            let value = match p.domain {
                Domain::Positive => got.exp(),
                Domain::Finite | Domain::Frequency { .. } => got,
            };
            let holds = value.is_finite() && (value > 0.0 || p.domain != Domain::Positive);
            let parameter = p.name;
            holds
                .then_some(value)
                .ok_or(Error::Coordinate { parameter, got })
        });
        self.set_parameters(&values.collect::<Result<Vec<_>, _>>()?)
    }
}

fn coordinate(domain: Domain, value: f64) -> f64 {
    match domain {
        Domain::Positive => value.ln(),
        Domain::Finite | Domain::Frequency { .. } => value,
    }
}
