//! What the squared-kernel mechanisms share: attention over given spectral points, in the paper's
//! form or as the released code has it.

use crate::attend::{Attended, AttentionGradients, State, attend, weights};
use crate::error::{self, Error, positive};
use crate::mechanism::{Inputs, Pass};
use crate::{Form, Magnitude, Mask, OwnedSettings, Points, Settings, Similarity};
use bochner_numerics::Real;
use bochner_numerics::scaling::multiplied;
use bochner_spectral::Preset;
use ndarray::{Array4, ArrayView4};
use std::f64::consts::TAU;

/// Spectral points of all heads, `[1 or B, M, R, d]`: one set of a stationary kernel, w1 and w2 of a
/// non-stationary one.
pub(crate) type Sets<T> = Vec<Array4<T>>;

/// The released code multiplies frequencies by this.
const FREQUENCY_SCALE: f64 = TAU;
/// Rate of the dropout that falls on the magnitudes in training of the released code.
const MAGNITUDE_DROPOUT: f64 = 0.1;

/// $(f^2 + e)\, e^{m_j}$ over spectral points that somebody else provides.
pub(super) struct SquaredKernel {
    pub(super) p: f64,
    pub(super) floor: f64,
    pub(super) preset: Preset,
    pub(super) form: Form,
}

impl SquaredKernel {
    pub(super) fn validate(&self) -> Result<(), Error> {
        positive("p", self.p)?;
        if let Form::Blocked(blocks) = self.form {
            blocks.checked()?;
        }
        error::floor(self.floor)
    }

    /// The frequencies that enter the kernel: the released code multiplies them by 2 pi.
    pub(super) fn frequencies<T: Real>(&self, mut points: Sets<T>) -> Sets<T> {
        if self.preset == Preset::Released {
            for w in points.iter_mut().flatten() {
                *w = multiplied(w.as_f64() * FREQUENCY_SCALE, 0);
            }
        }
        points
    }

    pub(super) fn attend<T: Real>(
        &self,
        inputs: &Inputs<T>,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Attended<T>, Error> {
        let settings = self.settings(inputs.mask, points, pass)?;
        attend(inputs.q, inputs.k, inputs.v, &settings)
    }

    /// Gradients; those of the points with respect to them as they were before
    /// [`SquaredKernel::frequencies`].
    pub(super) fn attend_vjp<T: Real>(
        &self,
        inputs: &Inputs<T>,
        points: &Sets<T>,
        pass: &Pass,
        (state, output): (&State<T>, ArrayView4<T>),
        cotangent: ArrayView4<T>,
    ) -> Result<(AttentionGradients<T>, Sets<T>), Error> {
        let settings = self.settings(inputs.mask, points, pass)?;
        let Inputs { q, k, v, .. } = *inputs;
        let mut gradients = state.pull_back(q, k, v, &settings, output, cotangent)?;
        let points = gradients
            .points
            .take()
            .expect("a squared kernel has points");
        let sets = [points.w1].into_iter().chain(points.w2).collect();
        Ok((gradients, self.frequencies(sets)))
    }

    pub(super) fn weights<T: Real>(
        &self,
        inputs: &Inputs<T>,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Array4<T>, Error> {
        weights(
            inputs.q,
            inputs.k,
            &self.settings(inputs.mask, points, pass)?,
        )
    }

    /// The settings, with a copy of the points.
    pub(super) fn owned<T: Real>(
        &self,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<OwnedSettings<T>, Error> {
        Ok(OwnedSettings::new(&self.settings(
            Mask::CAUSAL,
            points,
            pass,
        )?))
    }

    fn settings<'a, T: Real>(
        &self,
        mask: &'a Mask,
        points: &'a Sets<T>,
        pass: &Pass,
    ) -> Result<Settings<'a, T>, Error> {
        Ok(Settings {
            similarity: Similarity::Squared {
                points: Points::of_sets(points),
                floor: self.floor,
            },
            magnitude: match self.preset {
                Preset::Paper => Magnitude::Norm { p: self.p },
                Preset::Released => Magnitude::Released {
                    p: self.p,
                    dropout: pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout")?,
                },
            },
            mask,
            dropout: pass.weight_dropout()?,
            form: self.form,
        })
    }
}

/// What an inspection shows: w1 and w2, which are the same for a stationary kernel.
pub(super) fn shown<T: Real>(points: Sets<T>) -> (Array4<T>, Array4<T>) {
    let mut sets = points.into_iter();
    let first = sets.next().expect("a kernel has spectral points");
    let second = sets.next().unwrap_or_else(|| first.clone());
    (first, second)
}
