//! What the squared-kernel mechanisms share: attention over given spectral points, in the paper's
//! form or as the released code has it.

use crate::attend::{AttentionGradients, Saved, attend_saving, weights};
use crate::engine::Arguments;
use crate::error::{self, Error};
use crate::mechanism::{Pass, Streams};
use crate::released::Released;
use crate::score::Squared;
use crate::{Card, Cost, Form, Magnitude, Mask, Points, Settings, Support, Workspace};
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Real, argument};
use bochner_spectral::Preset;
use ndarray::{Array4, ArrayView4};
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

/// $(f^2 + e)\, e^{m_j}$ over spectral points that somebody else provides.
pub(super) struct SquaredKernel {
    pub(super) p: f64,
    pub(super) floor: f64,
    pub(super) preset: Preset,
    pub(super) form: Form,
}

impl SquaredKernel {
    pub(super) fn validate(&self) -> Result<(), Error> {
        argument::positive("p", self.p)?;
        if let Form::Blocked(blocks) = self.form {
            blocks.checked()?;
        }
        Ok(error::floor(self.floor)?)
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

    pub(super) fn attend<T: Real>(
        &self,
        inputs: &Streams<T>,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<(Array4<T>, SavedKernel<T>), Error> {
        let [q, k, v] = inputs.get()?;
        let settings = self.settings(inputs.mask, points, pass)?;
        match self.released(inputs.mask, points, pass)? {
            None => {
                let (output, saved) = attend_saving(q, k, v, &settings)?;
                Ok((output, SavedKernel::Engine(Box::new(saved))))
            }
            Some(released) => {
                check(q, k, v, &settings)?;
                let output = released.attend([q, k, v])?;
                let saved = SavedKernel::Released(inputs.mask.clone(), *pass);
                Ok((output, saved))
            }
        }
    }

    /// Gradients; those of the points with respect to them as they were before
    /// [`SquaredKernel::frequencies`].
    pub(super) fn attend_vjp<T: Real>(
        &self,
        inputs: &Streams<T>,
        points: &Sets<T>,
        pass: &Pass,
        (saved, output): (&SavedKernel<T>, ArrayView4<T>),
        cotangent: ArrayView4<T>,
    ) -> Result<(AttentionGradients<T>, Vec<Array4<T>>), Error> {
        let [q, k, v] = inputs.get()?;
        let released = self.released(inputs.mask, points, pass)?;
        let mut gradients = match (saved, released) {
            (SavedKernel::Engine(saved), None) => {
                saved.check(inputs.mask, pass.weight_dropout()?)?;
                saved.vjp([q, k, v], output, cotangent)?
            }
            (SavedKernel::Released(mask, own), Some(released))
                if (mask, own) == (inputs.mask, pass) =>
            {
                let settings = self.settings(inputs.mask, points, pass)?;
                check(q, k, v, &settings)?;
                released.vjp([q, k, v], cotangent)?
            }
            _ => {
                let mechanism = "the squared kernel";
                return Err(Error::ForeignForward { mechanism });
            }
        };
        let points = gradients
            .points
            .take()
            .expect("a squared kernel has points");
        let sets = [points.w1].into_iter().chain(points.w2).collect();
        Ok((gradients, self.frequencies(sets)))
    }

    pub(super) fn weights<T: Real>(
        &self,
        inputs: &Streams<T>,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Array4<T>, Error> {
        let [q, k, v] = inputs.get()?;
        let settings = self.settings(inputs.mask, points, pass)?;
        match self.released(inputs.mask, points, pass)? {
            None => weights(q, k, &settings),
            Some(released) => {
                check(q, k, v, &settings)?;
                Ok(released.weights(q, k))
            }
        }
    }

    /// What training by the released code does, if this is a pass of it.
    fn released<'a, T: Real>(
        &self,
        mask: &'a Mask,
        points: &'a Sets<T>,
        pass: &Pass,
    ) -> Result<Option<Released<'a, T>>, Error> {
        if self.preset == Preset::Paper {
            return Ok(None);
        }
        let on_magnitudes = pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout")?;
        let on_weights = pass.weight_dropout()?;
        Ok(on_magnitudes.map(|on_magnitudes| Released {
            points: Points::of_sets(points),
            floor: self.floor,
            p: self.p,
            mask,
            on_magnitudes,
            on_weights,
        }))
    }

    /// The settings of attention by these points, without dropout on magnitudes.
    pub(super) fn settings<T: Real>(
        &self,
        mask: &Mask,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let kernel = Squared {
            sets: Arc::clone(points),
            floor: self.floor,
        };
        Ok(Settings {
            magnitude: match self.preset {
                Preset::Paper => Magnitude::Norm { p: self.p },
                Preset::Released => Magnitude::Released { p: self.p },
            },
            dropout: pass.weight_dropout()?,
            form: self.form,
            ..Settings::of(kernel, mask)
        })
    }
}

/// What a forward pass keeps.
pub(crate) enum SavedKernel<T> {
    /// The engine's own state.
    Engine(Box<Saved<T>>),
    /// The mask and the pass alone: training by the released code computes its pairs again.
    Released(Mask, Pass),
}

/// Checks arrays against settings, as the engine does.
fn check<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<(), Error> {
    let workspace = Workspace::new();
    let call = Arguments::new(q, k, v, settings, &workspace)?;
    match call.form()? {
        Form::LinearTime if settings.form == Form::LinearTime => Err(Error::Unsupported {
            what: "the linear-time form with dropout on pairs",
            instead: "no dropout, or Form::Quadratic",
        }),
        _ => Ok(()),
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
            let p = power_of_ten(rng, -2.0..1.3);
            let floor = [0.0, 1e-30, 1e-5, 1.0][rng.gen_range(0..4)];
            [
                (p, floor),
                (p, self.floor),
                (self.p, floor),
                (self.p, self.floor),
            ][rng.gen_range(0..4)]
        }

        /// $(f^2 + e)\, e^{m_j}$, written plainly; the released code adds the query's magnitude, divides by
        /// another root, and drops some of the sums.
        pub(in crate::mechanism) fn reference(
            &self,
            inputs: &Streams<f64>,
            points: &[Array4<f64>],
            pass: &Pass,
        ) -> Result<Reference, Error> {
            let dropout = pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout")?;
            Reference::by_weight(inputs, pass, |pair| {
                let exponent = match self.preset {
                    Preset::Paper => pair.magnitude(self.p),
                    Preset::Released => {
                        let kept: f64 = dropout.map_or(1.0, |dropout| dropout.factor(pair.index));
                        let sum = norm_square(pair.q, self.p) + norm_square(pair.k, self.p);
                        kept * sum / (2.0 * pair.root().sqrt())
                    }
                };
                (pair.kernel(points).powi(2) + self.floor) * exponent.exp()
            })
        }
    }
}
