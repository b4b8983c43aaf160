//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

mod draw;

use super::squared::{self, shown, takes_bias};
use super::{is_default, pass::Attended};
use crate::error::Error;
use crate::mechanism::{Cotangents, Forward, Gradients, Inspection, Mechanism, Pass, Streams};
use crate::{
    Card, Form, Settings, Support,
    card::{Cost, Draws, Penalty},
};
use bochner_engine::over_readers;
use bochner_numerics::{Real, argument};
use bochner_spectral::{
    Copula, Drawn, DrawnCotangents, ParameterSpec, Posterior, Preset, Size, Source, Stationarity,
};
use draw::with_features;
use ndarray::Array4;
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// Kernel attention whose spectral points are drawn from an implicit density, jointly over the
/// heads through a Gaussian copula.
///
/// For each head an inference network gives $\mu$ and $\log\sigma$ of the latent
/// $z_{mlr} = \mu_{ml} + \sigma_{ml} x_{mlr}$, where
/// $x_{\cdot lr} = \hat L_l \varepsilon_{\cdot lr}$ is correlated over the heads; two odd networks turn z into the
/// points w1, w2 of a squared non-stationary kernel, or one into those of a stationary kernel. Where heads share keys,
/// the points of each follow from its own queries and the keys that it reads.
///
/// It is the most general of the implicit kernels. The others are presets of it, and whatever they
/// do not fix stays free: [`Mikan::ikan`] has no copula, [`Mikan::ika_ns`] has p = 2 besides, and
/// [`Mikan::ika_s`] a stationary kernel besides.
///
/// ```
/// use bochner_attention::{Mikan, Stationarity};
///
/// let stationary = Mikan { p: 1.5, stationarity: Stationarity::Stationary, ..Mikan::default() };
/// let few_points = Mikan { points: 16, ..Mikan::ika_ns() };
/// ```
///
/// In training each example has noise of its own. In evaluation all examples of a call share each draw, so that the
/// output of one does not depend on what else is in the batch, nor on its place there.
///
/// The penalty is $\beta \mathrm{KL}(q \Vert p)$ of one draw. With $\beta < 1$, and a latent of each
/// example divided by the number of examples, the objective is not strictly a lower bound.
///
/// # Numerics
/// The points and their limits are those of [`Implicit`](bochner_spectral::Implicit). A causal mask is refused unless
/// the [`Posterior`] is unconditional, since the network's mean over time would leak the future; an unconditional one
/// has no features for an amortised copula, so it goes with a free one or none.
///
/// # Reference
/// Song et al. 2021, equations 7, 14-19.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Mikan {
    /// The exponent of the magnitude's norm, above 0.
    pub p: f64,
    /// The number of distinct frequencies R.
    pub points: usize,
    /// The floor e under the squared kernel, from 0 to 1.
    pub floor: f64,
    /// Standard deviation $s_0$ of the prior.
    pub prior_std: f64,
    /// Weight $\beta$ of the divergence from the prior.
    pub beta: f64,
    /// Slope of the networks' LeakyReLU below zero.
    pub slope: f64,
    /// The dependence of the heads on each other.
    pub copula: Copula,
    /// The source whose equations are followed. [`Preset::Released`] requires an even number of points, the amortised
    /// copula, an inferred posterior and a non-stationary kernel.
    pub preset: Preset,
    /// The kernel that the points belong to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stationarity: Stationarity,
    /// The source of the latent's mean and spread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub posterior: Posterior,
    /// Pair by pair or in linear time; a [decoder](Mechanism::decoder) keeps its state in this one
    /// unless it is asked for another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
}

impl Default for Mikan {
    fn default() -> Self {
        Self {
            p: 2.0,
            points: 64,
            floor: 1e-5,
            prior_std: 0.1,
            beta: 0.1,
            slope: 0.2,
            copula: Copula::Amortised,
            preset: Preset::Paper,
            stationarity: Stationarity::Nonstationary,
            posterior: Posterior::Inferred,
            form: Form::Automatic,
        }
    }
}

/// The card for heads that a copula mixes. Table 1 adds the factor's cost.
const CARD: Card = Card {
    name: "mikan",
    title: "an implicit spectral density, joint over the heads by a copula",
    equation: Some("equations 7, 14-19"),
    cost: Some(Cost(&[
        [2, 0, 1, 0],
        [1, 2, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 0, 3],
    ])),
    ..squared::CARD
};

/// Gradients of [`Mikan`]'s forward pass with given noise.
#[derive(Clone, Debug, PartialEq)]
pub struct MikanGradients<T> {
    /// With respect to inputs and parameters.
    pub gradients: Gradients<T>,
    /// With respect to the noise.
    pub eps: Array4<T>,
}

/// The spectral points of a forward pass, and attention by them.
struct Saved<T: Real> {
    mikan: Mikan,
    drawn: Drawn<T>,
    attention: Attended<T>,
}

impl Mikan {
    /// IKA-S: $(f_S(q, k)^2 + e) e^{m}$ with p = 2, and no copula.
    ///
    /// # Reference
    /// Song et al. 2021, equations 12 and 13.
    pub fn ika_s() -> Self {
        Self {
            stationarity: Stationarity::Stationary,
            ..Self::ika_ns()
        }
    }

    /// IKA-NS: $(f_{NS}(q, k)^2 + e) e^{m}$ with p = 2, and no copula.
    ///
    /// # Reference
    /// Song et al. 2021, equations 14-16.
    pub fn ika_ns() -> Self {
        Self {
            copula: Copula::Independent,
            ..Self::default()
        }
    }

    /// IKAN: $(f_{NS}(q, k)^2 + e) e^{m}$ with any p, and no copula; at p = 2 it is
    /// [`Mikan::ika_ns`]. The paper gives no p: 1.5 here, so that the two differ.
    ///
    /// # Reference
    /// Song et al. 2021, section "Implicit kernel attention".
    pub fn ikan() -> Self {
        Self {
            p: 1.5,
            ..Self::ika_ns()
        }
    }

    /// The forward pass with given standard normal noise `eps: [B, M, R, d]`.
    ///
    /// # Errors
    /// The errors of [`Mechanism::forward`].
    pub fn forward_with<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
        eps: Array4<T>,
    ) -> Result<Forward<T>, Error> {
        let drawn = self.draw(inputs, parameters, eps)?;
        let settings = self.settings_of(&drawn, inputs, pass)?;
        let (output, attention) = inputs.attend(CARD.name, settings)?;
        let mut penalty = drawn.kl.mapv(|kl| kl * T::of(self.beta));
        if let Some(entropy) = drawn.latent.as_ref().and_then(|latent| latent.entropy()) {
            penalty += entropy;
        }
        let saved = Saved {
            mikan: self.clone(),
            drawn,
            attention,
        };
        Ok(Forward::new(output, penalty, saved))
    }

    /// The draw behind a forward pass.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it is another mechanism's.
    pub fn draw_of<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f Drawn<T>, Error> {
        Ok(&self.saved(forward)?.drawn)
    }

    fn saved<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f Saved<T>, Error> {
        let (mechanism, saved) = (CARD.name, forward.saved::<Saved<T>>(CARD.name)?);
        match saved.mikan == *self {
            true => Ok(saved),
            false => Err(Error::ForeignForward { mechanism }),
        }
    }

    /// The vector-Jacobian product of [`Mikan::forward_with`], noise included.
    ///
    /// # Errors
    /// The errors of [`Mechanism::backward`].
    pub fn backward_with<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let Saved {
            drawn, attention, ..
        } = self.saved(forward)?;
        let penalty = cotangent.penalty;
        argument::shape("penalty cotangent", drawn.kl.shape(), penalty.shape())?;
        let attention = (self.squared()).attend_vjp(inputs, pass, attention, cotangent.output)?;
        let sizes = [self.points, inputs.size().width];
        let cotangent = DrawnCotangents {
            points: self.squared().along_points(attention.kernel, sizes),
            kl: penalty.mapv(|c| c * T::of(self.beta)),
            entropy: (self.preset == Preset::Released).then(|| penalty.to_owned()),
        };
        let mut pulled = with_features(inputs, |features| {
            (self.source()).draw_vjp(features, parameters, drawn, cotangent)
        })?;
        pulled.q += &attention.q;
        let of_readers = pulled.k.into_flat().into_raw_vec_and_offset().0;
        pulled.k = over_readers(of_readers, inputs.k().dim().into());
        pulled.k += &attention.k;
        Ok(MikanGradients {
            gradients: Gradients {
                streams: vec![pulled.q, pulled.k, attention.v],
                parameters: pulled.parameters,
                bias: attention.bias,
            },
            eps: pulled.noise,
        })
    }
}

impl<T: Real> Mechanism<T> for Mikan {
    /// Without a copula the settings go by the name of a preset.
    fn card(&self) -> Card {
        let (name, title, equation) = match (self.copula, self.stationarity, self.p) {
            (Copula::Independent, Stationarity::Stationary, 2.0) => (
                "ika-s",
                "a squared stationary kernel with an implicit spectral density",
                Some("equations 12-13"),
            ),
            (Copula::Independent, Stationarity::Nonstationary, 2.0) => (
                "ika-ns",
                "a squared non-stationary kernel with an implicit spectral density",
                Some("equations 14-16"),
            ),
            (Copula::Independent, ..) => (
                "ikan",
                "a squared kernel with an implicit spectral density and any p-norm",
                None,
            ),
            _ => (CARD.name, CARD.title, CARD.equation),
        };
        let released = self.preset == Preset::Released;
        let card = Card {
            causal: match self.posterior {
                Posterior::Unconditional => Support::Yes,
                // The mean over the sequence would show every row the future.
                Posterior::Inferred => Support::No {
                    instead: "points that do not depend on the sequence (an unconditional \
                              posterior, or IKAN-direct)",
                },
            },
            constant_state: match self.posterior {
                Posterior::Unconditional => Support::Yes,
                Posterior::Inferred => Support::No {
                    instead: "an unconditional posterior, or IKAN-direct",
                },
            },
            shared_keys: Support::Yes,
            bias: takes_bias(self.preset),
            draws: match self.preset {
                Preset::Paper => Draws::InEveryPass,
                Preset::Released => Draws::InEveryPassAnew,
            },
            // The released code adds an entropy that beta does not weigh.
            penalty: match self.beta > 0.0 || released {
                true => Penalty::PerExample,
                false => Penalty::None,
            },
            points: Some(self.points),
            cost: match self.copula {
                Copula::Independent => squared::CARD.cost,
                _ => CARD.cost,
            },
            name,
            title,
            equation,
            ..CARD
        };
        card.in_form(self.form)
    }

    fn validate(&self) -> Result<(), Error> {
        self.squared().validate()?;
        argument::non_negative("beta", self.beta)?;
        Ok(Source::<T>::validate(&self.source())?)
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        Source::<T>::parameters(&self.source(), size)
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        Ok(self.source().initial(size, rng)?)
    }

    fn forward(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        self.forward_with(inputs, flat, pass, self.noise(inputs, pass)?)
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let pulled = self.backward_with(inputs, flat, pass, forward, cotangent)?;
        Ok(pulled.gradients)
    }

    fn kernel(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Settings<T>, Error> {
        let drawn = self.draw(inputs, flat, self.noise(inputs, pass)?)?;
        (self.squared()).settings(inputs, &self.frequencies(&drawn), pass)
    }

    fn inspect(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let drawn = self.draw(inputs, flat, self.noise(inputs, pass)?)?;
        let latent = drawn.latent.as_ref();
        let weights = inputs.weights(&self.settings_of(&drawn, inputs, pass)?)?;
        Ok(Inspection {
            points: Some(shown(&self.frequencies(&drawn))),
            correlation: latent.map_or(Ok(None), |latent| latent.correlation())?,
            ..Inspection::of(weights)
        })
    }
}
