//! What the squared-kernel mechanisms share: attention over given spectral points, in the paper's
//! form or as the released code has it.

use crate::error::{self, Error};
use crate::form;
use crate::mechanism::Pass;
use crate::released::Released;
use crate::score::{PointsGradients, Squared};
use crate::{Card, Cost, Form, Magnitude, Mask, Settings, Support};
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Real, argument};
use bochner_spectral::Preset;
use ndarray::Array4;
use std::f64::consts::TAU;
use std::sync::Arc;

/// Spectral points of all heads, `[1 or B, M, R, d]`: one set of a stationary kernel, w1 and w2 of a
/// non-stationary one. Settings and the backward pass share them.
pub(super) type Sets<T> = Arc<[Array4<T>]>;

/// The released code multiplies frequencies by this.
const FREQUENCY_SCALE: f64 = TAU;
/// Rate of the dropout that falls on the magnitudes in training of the released code.
const MAGNITUDE_DROPOUT: f64 = 0.1;

/// What the cards of the squared kernels have in common; Table 1 states the cost.
pub(super) const CARD: Card = Card {
    paper: "Song et al. 2021",
    linear_form: Support::Yes,
    constant_state: Support::Yes,
    cost: Some(Cost(&[[2, 0, 1, 0], [1, 2, 0, 0], [1, 1, 1, 0]])),
    ..Card::PAIRWISE
};

/// Whether a squared kernel takes a bias. Magnitudes that are dropped in training leave no logits to add it to.
pub(super) fn takes_bias(preset: Preset) -> Support {
    match preset {
        Preset::Paper => Support::Yes,
        Preset::Released => Support::No {
            instead: "the paper's preset",
        },
    }
}

/// $(f^2 + e) e^{m_j}$ over spectral points that somebody else provides.
pub(super) struct SquaredKernel {
    pub(super) p: f64,
    pub(super) floor: f64,
    pub(super) preset: Preset,
    pub(super) form: Form,
}

impl SquaredKernel {
    pub(super) fn validate(&self) -> Result<(), Error> {
        argument::positive("p", self.p)?;
        error::floor(self.floor)?;
        match self.form {
            Form::Blocked(blocks) => blocks.checked().map(drop),
            Form::LinearTime => form::check_floor(self.floor),
            _ => Ok(()),
        }
    }

    /// The frequencies that enter the kernel: the released code multiplies them by 2 pi.
    pub(super) fn frequencies<T: Real>(&self, mut points: Vec<Array4<T>>) -> Vec<Array4<T>> {
        if self.preset == Preset::Released {
            for w in points.iter_mut().flatten() {
                *w = multiplied(w.as_f64() * FREQUENCY_SCALE, 0);
            }
        }
        points
    }

    /// The gradients of the points as they were before [`SquaredKernel::frequencies`].
    pub(super) fn along_points<T: Real>(&self, g: Option<PointsGradients<T>>) -> Vec<Array4<T>> {
        let g = g.expect("a squared kernel has points");
        self.frequencies([g.w1].into_iter().chain(g.w2).collect())
    }

    /// The settings of attention by these points in a pass, without its dropout on the weights.
    pub(super) fn settings<T: Real>(
        &self,
        mask: &Mask,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let (sets, floor, p) = (Arc::clone(points), self.floor, self.p);
        let kernel = Squared { sets, floor };
        let dropped = || pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout");
        let (on_magnitudes, magnitude) = match self.preset {
            Preset::Paper => (None, Magnitude::Norm { p }),
            Preset::Released => (dropped()?, Magnitude::Released { p }),
        };
        let settings = match on_magnitudes {
            Some(on_magnitudes) => {
                let kernel = Released {
                    kernel,
                    p,
                    on_magnitudes,
                };
                Settings::by(kernel, mask)
            }
            None => Settings {
                magnitude,
                ..Settings::of(kernel, mask)
            },
        };
        let form = self.form;
        Ok(Settings { form, ..settings })
    }
}

/// What an inspection shows: w1 and w2, which are the same for a stationary kernel.
pub(super) fn shown<T: Real>(points: &[Array4<T>]) -> (Array4<T>, Array4<T>) {
    let [first, last] = [points.first(), points.last()].map(|w| w.expect("spectral points"));
    (first.clone(), last.clone())
}

#[cfg(feature = "conformance")]
mod conformance {
    use super::*;
    use crate::conformance::*;
    use rand::Rng;

    impl SquaredKernel {
        /// p and the floor, each drawn anew or not.
        pub(in crate::mechanism) fn extreme(&self, rng: &mut dyn RngCore) -> (f64, f64) {
            let p = power_of_ten(-2.0..1.3, rng);
            let floor = [0.0, 1e-30, 1e-5, 1.0][rng.gen_range(0..4)];
            [
                (p, floor),
                (p, self.floor),
                (self.p, floor),
                (self.p, self.floor),
            ][rng.gen_range(0..4)]
        }

        /// $(f^2 + e) e^{m_j}$, written plainly; the released code adds the query's magnitude, divides by
        /// another root, and drops some of the sums.
        pub(in crate::mechanism) fn reference(
            &self,
            inputs: &Streams<f64>,
            points: &[Array4<f64>],
            pass: &Pass,
        ) -> Result<Reference, Error> {
            let dropout = pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout")?;
            let points: Vec<_> = points.iter().map(|w| w.view()).collect();
            Reference::by_weight(inputs, pass, |pair| {
                let exponent = match self.preset {
                    Preset::Paper => pair.magnitude(self.p),
                    Preset::Released => {
                        let kept: f64 = dropout.map_or(1.0, |dropout| dropout.factor(pair.index));
                        let sum = norm_square(pair.q, self.p) + norm_square(pair.k, self.p);
                        kept * sum / (2.0 * pair.root().sqrt())
                    }
                };
                (pair.kernel(&points).powi(2) + self.floor) * exponent.exp()
            })
        }
    }
}
