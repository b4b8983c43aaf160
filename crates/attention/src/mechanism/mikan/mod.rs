//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

mod draw;

use super::squared::{self, takes_bias};
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
use ndarray::{Array4, ArrayBase, DataMut, Dimension};
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
    /// The number S of draws over which evaluation averages; training always uses one.
    #[serde(skip_serializing_if = "is_one")]
    pub draws: usize,
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
            draws: 1,
            form: Form::Automatic,
        }
    }
}

/// The most draws of an average: the backward pass keeps them all.
const MOST_DRAWS: usize = 1 << 10;

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(draws: &usize) -> bool {
    *draws == 1
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

const ONE_DRAW: Support = Support::No {
    instead: "one draw, or a decoder for each",
};

/// Gradients of [`Mikan`]'s forward pass with given noise.
#[derive(Clone, Debug, PartialEq)]
pub struct MikanGradients<T> {
    /// With respect to inputs and parameters.
    pub gradients: Gradients<T>,
    /// With respect to the noise.
    pub eps: Array4<T>,
}

/// The spectral points of one draw, and attention by them.
struct OneDraw<T: Real> {
    drawn: Drawn<T>,
    attention: Attended<T>,
}

/// The draws that a forward pass is the mean of.
struct Saved<T: Real> {
    mikan: Mikan,
    draws: Vec<OneDraw<T>>,
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
        self.mean_of(inputs, parameters, pass, vec![eps])
    }

    /// The mean of the forward passes with the noise of some draws.
    fn mean_of<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
        noise: Vec<Array4<T>>,
    ) -> Result<Forward<T>, Error> {
        let mut draws = Vec::with_capacity(noise.len());
        let (mut outputs, mut penalties) = (Vec::new(), Vec::new());
        for eps in noise {
            let drawn = self.draw(inputs, parameters, eps)?;
            let (output, attention) =
                inputs.attend(CARD.name, self.settings_of(&drawn, inputs, pass)?)?;
            let mut penalty = drawn.kl.mapv(|kl| kl * T::of(self.beta));
            if let Some(entropy) = drawn.latent.as_ref().and_then(|latent| latent.entropy()) {
                penalty += entropy;
            }
            outputs.push(output);
            penalties.push(penalty);
            draws.push(OneDraw { drawn, attention });
        }
        let mikan = self.clone();
        Ok(Forward::new(
            mean(outputs),
            mean(penalties),
            Saved { mikan, draws },
        ))
    }

    /// The draw behind a forward pass, the first of several.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it is another mechanism's.
    pub fn draw_of<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f Drawn<T>, Error> {
        let draws = self.draws_of(forward)?;
        Ok(&draws[0].drawn)
    }

    /// The vector-Jacobian product of [`Mikan::forward_with`], noise included; that of the first draw of several.
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
        let draws = self.draws_of(forward)?;
        self.pull_draw(inputs, parameters, pass, &draws[0], cotangent)
    }

    fn draws_of<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f [OneDraw<T>], Error> {
        let mechanism = CARD.name;
        let Saved { mikan, draws } = forward.saved(mechanism)?;
        match mikan == self {
            true => Ok(draws),
            false => Err(Error::ForeignForward { mechanism }),
        }
    }

    fn pull_draw<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
        OneDraw { drawn, attention }: &OneDraw<T>,
        cotangent: Cotangents<T>,
    ) -> Result<MikanGradients<T>, Error> {
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

/// The mean of arrays of one shape, at least one.
fn mean<T: Real, S, D: Dimension>(mut arrays: Vec<ArrayBase<S, D>>) -> ArrayBase<S, D>
where
    S: DataMut<Elem = T> + ndarray::RawDataClone,
{
    let count = T::of(arrays.len() as f64);
    let mut sum = arrays.swap_remove(0);
    if !arrays.is_empty() {
        arrays.iter().for_each(|more| sum += more);
        sum.mapv_inplace(|x| x / count);
    }
    sum
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
            constant_state: match (self.posterior, self.draws) {
                (Posterior::Inferred, _) => Support::No {
                    instead: "an unconditional posterior, or IKAN-direct",
                },
                (_, 1) => Support::Yes,
                _ => ONE_DRAW,
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
        argument::at_most("draws", self.draws, MOST_DRAWS)?;
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
        self.mean_of(inputs, flat, pass, self.noise(inputs, pass)?)
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let draws = self.draws_of(forward)?;
        let share = T::of(1.0 / draws.len() as f64);
        let (output, penalty) = (
            cotangent.output.mapv(|c| c * share),
            cotangent.penalty.mapv(|c| c * share),
        );
        let cotangent = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let mut draws = draws.iter().map(|draw| {
            let pulled = self.pull_draw(inputs, flat, pass, draw, cotangent)?;
            Ok::<_, Error>(pulled.gradients)
        });
        let mut sum = draws.next().expect("at least one draw")?;
        for more in draws {
            let more = more?;
            let pairs = sum.streams.iter_mut().zip(&more.streams);
            pairs.for_each(|(sum, more)| *sum += more);
            let pairs = sum.parameters.iter_mut().zip(more.parameters);
            pairs.for_each(|(sum, more)| *sum += more);
            if let (Some(sum), Some(more)) = (&mut sum.bias, more.bias) {
                *sum += &more;
            }
        }
        Ok(sum)
    }

    fn kernel(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Settings<T>, Error> {
        let drawn = self.draw(inputs, flat, self.single_noise(inputs, pass)?)?;
        (self.squared()).settings(inputs, &self.frequencies(&drawn), pass)
    }

    /// Weights are averaged over the draws, like the output; the rest is that of the first draw.
    fn inspect(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let noise = self.noise(inputs, pass)?.into_iter();
        let draws = noise.map(|eps| self.inspect_draw(inputs, flat, pass, eps));
        let mut draws = draws.collect::<Result<Vec<_>, _>>()?;
        let weights = draws
            .iter_mut()
            .map(|draw| std::mem::take(&mut draw.weights));
        let weights = mean(weights.collect());
        Ok(Inspection {
            weights,
            ..draws.swap_remove(0)
        })
    }
}
