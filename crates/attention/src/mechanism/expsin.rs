//! Expsin: a similarity that repeats itself with the distance.

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::error::{Error, period};
use crate::{Card, Magnitude, Settings, kernels};
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
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Expsin {
    /// The period P of the distance, from 1e-6 to 1e6.
    pub period: f64,
}

impl Default for Expsin {
    fn default() -> Self {
        Self { period: 1.0 }
    }
}

impl<T: Real> Mechanism<T> for Expsin {
    fn card(&self) -> Card {
        Card {
            name: "expsin",
            title: "a periodic similarity times the magnitude of the key",
            paper: "Song et al. 2021",
            cost: COST_OF_PAIRS,
            ..Card::SCORE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        Ok(period(self.period)?)
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let similarity = kernels::expsin(self.period, inputs.mask);
        Ok(similarity.with_key_weight(Magnitude::Norm { p: 2.0 }))
    }
}

#[cfg(feature = "conformance")]
mod conformance {
    use super::*;
    use crate::conformance::*;

    impl Conformance for Expsin {
        fn examples() -> Vec<Self> {
            [1.0, 2.5].map(|period| Self { period }).into()
        }

        fn refused() -> Vec<(&'static str, Self)> {
            [0.0, 1e7].map(|period| ("period", Self { period })).into()
        }

        fn extreme(&self, rng: &mut dyn RngCore) -> Self {
            let period = power_of_ten(-6.0..6.0, rng);
            Self { period }
        }

        fn reference(
            &self,
            inputs: &Streams<f64>,
            _: &[f64],
            pass: &Pass,
        ) -> Result<Reference, Error> {
            Reference::by_weight(inputs, pass, |pair| {
                let angle = std::f64::consts::PI * pair.square_distance().sqrt() / self.period;
                (-2.0 * angle.sin().powi(2) / pair.root() + pair.magnitude(2.0)).exp()
            })
        }
    }
}
