//! The kernel between the ends of an edge.

use crate::LayerError;
use bochner_numerics::{Real, argument};
use bochner_spectral::{
    Copula, Direct, DirectInit, Implicit, Posterior, Preset, Source, Stationarity,
};
use serde::{Deserialize, Serialize};

/// The similarities and magnitudes of the kernel form.
///
/// It is written down under the name and the settings that the kernel has in attention over sequences.
///
/// ```
/// use bochner_graph::EdgeKernel;
/// use bochner_spectral::{Copula, Implicit};
///
/// let ika_ns = Implicit { copula: Copula::Independent, ..Implicit::default() };
/// let kernel = EdgeKernel::from(ika_ns).with_p(1.5);
/// let written = serde_json::to_string(&kernel)?;
/// assert!(written.starts_with(r#"{"mechanism":"Mikan","p":1.5,"points":64,"#));
/// assert_eq!(serde_json::from_str::<EdgeKernel>(&written)?, kernel);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[non_exhaustive]
pub enum EdgeKernel {
    /// The exact Gaussian kernel with magnitudes of p = 2, which is GAT again:
    /// [`Score::Gaussian`](crate::Score::Gaussian).
    Softmax,
    /// The exact Gaussian kernel without magnitudes.
    RbfOnly,
    /// A squared kernel whose spectral points are parameters: [`Score::Kernel`](crate::Score::Kernel).
    Direct {
        /// The exponent p of the magnitudes' norm, above 0.
        p: f64,
        /// The floor e under the squared kernel, from 0 to 1.
        floor: f64,
        /// The source of the points.
        source: Direct,
    },
    /// A squared kernel whose spectral points are drawn from an implicit density.
    Implicit {
        /// The exponent p of the magnitudes' norm, above 0.
        p: f64,
        /// The floor e under the squared kernel, from 0 to 1.
        floor: f64,
        /// The weight $\beta$ of the divergence from the prior.
        beta: f64,
        /// The source of the points, by the paper's equations.
        source: Implicit,
    },
}

/// The floor where none is given.
const FLOOR: f64 = 1e-5;

impl From<Direct> for EdgeKernel {
    /// The kernel with p = 2 and a floor of 1e-5.
    fn from(source: Direct) -> Self {
        let (p, floor) = (2.0, FLOOR);
        Self::Direct { p, floor, source }
    }
}

impl From<Implicit> for EdgeKernel {
    /// The kernel with p = 2, a floor of 1e-5 and $\beta = 0.1$.
    fn from(source: Implicit) -> Self {
        Self::Implicit {
            p: 2.0,
            floor: FLOOR,
            beta: 0.1,
            source,
        }
    }
}

impl EdgeKernel {
    /// The kernel with another exponent of its norm, where it has spectral points.
    #[must_use]
    pub fn with_p(mut self, exponent: f64) -> Self {
        if let Self::Direct { p, .. } | Self::Implicit { p, .. } = &mut self {
            *p = exponent;
        }
        self
    }

    /// The source of the kernel's spectral points, where it has some.
    pub fn source<T: Real>(&self) -> Option<&dyn Source<T>> {
        match self {
            Self::Softmax | Self::RbfOnly => None,
            Self::Direct { source, .. } => Some(source),
            Self::Implicit { source, .. } => Some(source),
        }
    }

    /// The weight of the divergence in the penalty.
    pub(super) fn beta(&self) -> f64 {
        match self {
            Self::Implicit { beta, .. } => *beta,
            _ => 0.0,
        }
    }

    pub(super) fn validate(&self) -> Result<(), LayerError> {
        if let Self::Direct { p, floor, .. } | Self::Implicit { p, floor, .. } = *self {
            argument::positive("p", p)?;
            let holds = (0.0..=1.0).contains(&floor);
            argument::in_range(holds, "floor", floor, "from 0 to 1")?;
        }
        argument::non_negative("beta", self.beta())?;
        if let Self::Implicit { source, .. } = self {
            expect_paper(source.preset)?;
        }
        if let Some(source) = self.source::<f64>() {
            source.validate()?;
        }
        Ok(())
    }
}

/// The form in which a kernel is written down.
#[derive(Serialize, Deserialize)]
#[serde(tag = "mechanism", deny_unknown_fields)]
enum Written {
    Softmax {},
    RbfOnly {},
    IkanDirect {
        p: f64,
        points: usize,
        floor: f64,
        start: DirectInit,
        preset: Preset,
        #[serde(default, skip_serializing_if = "is_default")]
        stationarity: Stationarity,
    },
    Mikan {
        p: f64,
        points: usize,
        floor: f64,
        prior_std: f64,
        beta: f64,
        slope: f64,
        copula: Copula,
        preset: Preset,
        #[serde(default, skip_serializing_if = "is_default")]
        stationarity: Stationarity,
        #[serde(default, skip_serializing_if = "is_default")]
        posterior: Posterior,
    },
}

/// Refuses the released code's equations for points: they go with its equations for attention.
fn expect_paper(preset: Preset) -> Result<(), LayerError> {
    match preset {
        Preset::Paper => Ok(()),
        Preset::Released => Err(bochner_spectral::Error::Unsupported {
            what: "the released preset along the edges of a graph",
            instead: "the preset of the paper",
        }
        .into()),
    }
}

fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}

impl From<EdgeKernel> for Written {
    fn from(kernel: EdgeKernel) -> Self {
        match kernel {
            EdgeKernel::Softmax => Self::Softmax {},
            EdgeKernel::RbfOnly => Self::RbfOnly {},
            EdgeKernel::Direct { p, floor, source } => Self::IkanDirect {
                p,
                points: source.points,
                floor,
                start: source.start,
                preset: Preset::Paper,
                stationarity: source.stationarity,
            },
            EdgeKernel::Implicit {
                p,
                floor,
                beta,
                source,
            } => Self::Mikan {
                p,
                points: source.points,
                floor,
                prior_std: source.prior_std,
                beta,
                slope: source.slope,
                copula: source.copula,
                preset: source.preset,
                stationarity: source.stationarity,
                posterior: source.posterior,
            },
        }
    }
}

impl TryFrom<Written> for EdgeKernel {
    type Error = LayerError;

    fn try_from(written: Written) -> Result<Self, LayerError> {
        let (preset, kernel) = match written {
            Written::Softmax {} => return Ok(Self::Softmax),
            Written::RbfOnly {} => return Ok(Self::RbfOnly),
            Written::IkanDirect {
                p,
                points,
                floor,
                start,
                preset,
                stationarity,
            } => {
                let source = Direct {
                    points,
                    start,
                    stationarity,
                };
                (preset, Self::Direct { p, floor, source })
            }
            Written::Mikan {
                p,
                points,
                floor,
                prior_std,
                beta,
                slope,
                copula,
                preset,
                stationarity,
                posterior,
            } => {
                let source = Implicit {
                    points,
                    prior_std,
                    slope,
                    copula,
                    preset,
                    stationarity,
                    posterior,
                };
                let kernel = Self::Implicit {
                    p,
                    floor,
                    beta,
                    source,
                };
                (preset, kernel)
            }
        };
        expect_paper(preset)?;
        Ok(kernel)
    }
}
