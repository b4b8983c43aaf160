//! IKAN-direct: the spectral points are parameters.

use super::squared::{CARD, Sets, SquaredKernel, shown, takes_bias};
use super::{
    Cotangents, Forward, Gradients, Inspection, Mechanism, Pass, Streams, is_default, of_pass,
};
use crate::error::Error;
use crate::{Card, Form, Settings, Support, card::Draws};
use bochner_numerics::Real;
use bochner_spectral::{
    Direct, DirectInit, Features, ParameterSpec, Preset, Size, Source, Stationarity,
};
use ndarray::Array4;
use rand::RngCore;
use serde::{Deserialize, Serialize};

const NAME: &str = "ikan-direct";

/// Kernel attention whose spectral points `[M, R, d]` are parameters.
///
/// $$\alpha_{ij} \propto (f(q_i, k_j)^2 + e) \exp(|k_j|_p^2 / (2\sqrt d))$$
///
/// where f is $f_{NS}$ over the points w1 and w2, or $f_S$ over w1 alone.
///
/// # Reference
/// Song et al. 2021, section "Implicit kernel attention", variant IKAN-direct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct IkanDirect {
    /// The exponent of the magnitude's norm, above 0.
    pub p: f64,
    /// The number of distinct frequencies R of each head.
    pub points: usize,
    /// The floor e under the squared kernel, from 0 to 1.
    pub floor: f64,
    /// The initial points. The released code starts with [`DirectInit::KaimingUniform`].
    pub start: DirectInit,
    /// The source whose equations are followed.
    pub preset: Preset,
    /// The kernel that the points belong to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stationarity: Stationarity,
    /// Pair by pair or in linear time; a [decoder](crate::Mechanism::decoder) keeps its state in this one
    /// unless it is asked for another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
}

impl Default for IkanDirect {
    fn default() -> Self {
        Self {
            p: 2.0,
            points: 64,
            floor: 1e-5,
            start: DirectInit::NearSoftmax,
            preset: Preset::Paper,
            stationarity: Stationarity::Nonstationary,
            form: Form::Automatic,
        }
    }
}

impl IkanDirect {
    fn squared(&self) -> SquaredKernel {
        SquaredKernel {
            p: self.p,
            floor: self.floor,
            preset: self.preset,
            form: self.form,
        }
    }

    fn source(&self) -> Direct {
        Direct {
            points: self.points,
            start: self.start,
            stationarity: self.stationarity,
        }
    }

    fn frequencies<T: Real>(&self, inputs: &Streams<T>, flat: &[T]) -> Result<Sets<T>, Error> {
        let [q, _, _] = inputs.get()?;
        let (batch, heads, _, width) = q.dim();
        // Points that are parameters take no noise, and no more of the sequences than their sizes; keys may have
        // fewer heads.
        let none = Array4::zeros((batch, heads, 0, width));
        let drawn = self.source().draw(&Features::new(q, q), flat, none)?;
        Ok(self.squared().frequencies(drawn.points).into())
    }
}

impl<T: Real> Mechanism<T> for IkanDirect {
    fn card(&self) -> Card {
        let card = Card {
            name: NAME,
            title: "a squared kernel whose spectral points are parameters",
            draws: match self.preset {
                Preset::Paper => Draws::Nothing,
                // Dropout on the magnitudes.
                Preset::Released => Draws::InTraining,
            },
            shared_keys: Support::Yes,
            bias: takes_bias(self.preset),
            points: Some(self.points),
            ..CARD
        };
        card.in_form(self.form)
    }

    fn validate(&self) -> Result<(), Error> {
        Source::<T>::validate(&self.source())?;
        self.squared().validate()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        Source::<T>::parameters(&self.source(), size)
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        Ok(self.source().initial(size, rng)?)
    }

    fn kernel(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Settings<T>, Error> {
        let points = self.frequencies(inputs, flat)?;
        self.squared().settings(inputs, &points, pass)
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        _: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let saved = forward.attended(NAME)?;
        let g = (self.squared()).attend_vjp(inputs, pass, saved, cotangent.output)?;
        let sizes = [self.points, inputs.size().width];
        let sets = self.squared().along_points(g.kernel, sizes);
        Ok(Gradients {
            streams: vec![g.q, g.k, g.v],
            parameters: sets.into_iter().flatten().collect(),
            bias: g.bias,
        })
    }

    fn inspect(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let weights = inputs.weights(&of_pass(self, inputs, flat, pass)?)?;
        Ok(Inspection {
            points: Some(shown(&self.frequencies(inputs, flat)?)),
            ..Inspection::of(weights)
        })
    }
}
