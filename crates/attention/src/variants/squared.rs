//! What the squared-kernel mechanisms share: attention over given spectral points, in the paper's
//! form or as the released code has it.

use crate::attend::{Attended, AttentionGradients, State, attend, weights};
use crate::call::units::multiplied;
use crate::error::{self, Error, positive};
use crate::mechanism::{Inputs, Pass};
use crate::variants::released;
use crate::{Form, Magnitude, Mask, OwnedSettings, Points, Settings, Similarity};
use bochner_numerics::Real;
use ndarray::{Array4, ArrayView4};
use serde::{Deserialize, Serialize};

/// Whether a kernel sees the difference of its arguments only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stationarity {
    /// $f_S(x, y) = \frac1R \sum_r \cos(w_r \cdot (x - y))$, with one set of spectral points.
    Stationary,
    /// $f_{NS}$, with two.
    #[default]
    Nonstationary,
}

impl Stationarity {
    /// How many sets of spectral points the kernel has.
    pub(super) const fn sets(self) -> usize {
        match self {
            Self::Stationary => 1,
            Self::Nonstationary => 2,
        }
    }

    /// Settings are written down without what is usual, so that what was written down before there
    /// was a choice still says the same.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Spectral points of all heads, `[1 or B, M, R, d]`: one set of a stationary kernel, w1 and w2 of a
/// non-stationary one.
pub(crate) type Sets<T> = Vec<Array4<T>>;

/// Whose equations are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// The paper's, as corrected in this project's notes on deviations.
    #[default]
    Paper,
    /// The authors' released code, deviation by deviation.
    Released,
}

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
    pub(super) fn frequencies<T: Real>(&self, points: ArrayView4<T>) -> Array4<T> {
        match self.preset {
            Preset::Paper => points.to_owned(),
            Preset::Released => {
                points.mapv(|w| multiplied(w.as_f64() * released::FREQUENCY_SCALE, 0))
            }
        }
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
        let sets = [points.w1].into_iter().chain(points.w2);
        let sets = sets.map(|w| self.frequencies(w.view())).collect();
        Ok((gradients, sets))
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
                    dropout: pass.dropout(|_| released::MAGNITUDE_DROPOUT, "magnitude dropout")?,
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
