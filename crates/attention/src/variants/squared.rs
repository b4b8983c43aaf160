//! What the squared-kernel mechanisms share: attention over given spectral points, in the paper's
//! form or as the released code has it.

use crate::attend::{Attended, AttentionGradients, State, attend, weights};
use crate::error::{Error, non_negative, positive};
use crate::mechanism::{Inputs, Pass};
use crate::variants::released;
use crate::{Form, Magnitude, Mask, Points, Settings, Similarity};
use bochner_numerics::Real;
use ndarray::{Array4, ArrayView4};
use serde::{Deserialize, Serialize};

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

/// $(f_{NS}^2 + e)\, e^{m_j}$ over spectral points that somebody else provides.
pub(super) struct SquaredKernel {
    pub(super) p: f64,
    pub(super) floor: f64,
    pub(super) preset: Preset,
}

impl SquaredKernel {
    pub(super) fn validate(&self) -> Result<(), Error> {
        positive("p", self.p)?;
        non_negative("floor", self.floor)
    }

    /// The frequencies that enter the kernel: the released code multiplies them by 2 pi.
    pub(super) fn frequencies<T: Real>(&self, points: ArrayView4<T>) -> Array4<T> {
        match self.preset {
            Preset::Paper => points.to_owned(),
            Preset::Released => points.mapv(|w| w * T::of(released::FREQUENCY_SCALE)),
        }
    }

    pub(super) fn attend<T: Real>(
        &self,
        inputs: &Inputs<T>,
        points: &[Array4<T>; 2],
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
        points: &[Array4<T>; 2],
        pass: &Pass,
        (state, output): (&State<T>, ArrayView4<T>),
        cotangent: ArrayView4<T>,
    ) -> Result<(AttentionGradients<T>, [Array4<T>; 2]), Error> {
        let settings = self.settings(inputs.mask, points, pass)?;
        let Inputs { q, k, v, .. } = *inputs;
        let mut gradients = state.pull_back(q, k, v, &settings, output, cotangent)?;
        let points = gradients
            .points
            .take()
            .expect("a squared kernel has points");
        let points = [
            points.w1,
            points.w2.expect("a non-stationary kernel has two sets"),
        ];
        Ok((gradients, points.map(|w| self.frequencies(w.view()))))
    }

    pub(super) fn weights<T: Real>(
        &self,
        inputs: &Inputs<T>,
        points: &[Array4<T>; 2],
        pass: &Pass,
    ) -> Result<Array4<T>, Error> {
        weights(
            inputs.q,
            inputs.k,
            &self.settings(inputs.mask, points, pass)?,
        )
    }

    fn settings<'a, T: Real>(
        &self,
        mask: &'a Mask,
        [w1, w2]: &'a [Array4<T>; 2],
        pass: &Pass,
    ) -> Result<Settings<'a, T>, Error> {
        Ok(Settings {
            similarity: Similarity::Squared {
                points: Points::Nonstationary {
                    w1: w1.view(),
                    w2: w2.view(),
                },
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
            // The bits of models trained before there was another form stay what they were.
            form: Form::Quadratic,
        })
    }
}
