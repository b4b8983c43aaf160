//! Expsin: a similarity that repeats itself with the distance.

use super::closed::Closed;
use crate::error::{Error, period};
use crate::mechanism::Described;
use crate::{Magnitude, Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// A periodic similarity times the magnitude of softmax attention; it has no parameters.
///
/// $$\alpha_{ij} \propto \exp\left(-\frac{2}{\sqrt d} \sin^2 \frac{\pi |q_i - k_j|}{P}\right)
/// \exp\frac{|k_j|^2}{2\sqrt d}$$
///
/// *where* P is the `period`, 1 by default, and the squared lengthscale is $\sqrt d$, as that of
/// softmax attention's own kernel.
///
/// # Numerics
/// A distance that the type cannot tell from a whole number of periods counts as one.
///
/// # Reference
/// Song et al. 2021 compare with it; no formula is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expsin {
    /// The period P of the distance, from 1e-30 to 1e30.
    pub period: f64,
}

impl Default for Expsin {
    fn default() -> Self {
        Self { period: 1.0 }
    }
}

impl Described for Expsin {
    const NAME: &'static str = "expsin";
    const SUMMARY: &'static str = "a periodic similarity times exp(|k|^2 / (2 sqrt d))";
    const REFERENCE: &'static str = "Song et al. 2021";
}

impl Closed for Expsin {
    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings {
            magnitude: Magnitude::Norm { p: 2.0 },
            ..Settings::expsin(self.period, mask)
        }
    }

    fn check(&self) -> Result<(), Error> {
        period(self.period)
    }
}
