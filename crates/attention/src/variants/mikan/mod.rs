//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

mod average;
mod bounds;
mod coupling;
mod draw;
mod networks;
mod points;
mod posterior;
mod units;

use super::squared::{Preset, Sets, SquaredKernel, Stationarity, shown};
use super::{ika_ns::IKA_NS, ika_s::IKA_S, ikan::IKAN};
use crate::attend::State;
use crate::error::{Error, non_negative, positive, same_shape};
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Named, ParameterSpec, Pass, Size,
};
use crate::registry::Described;
use crate::{Form, OwnedSettings};
use bochner_copula as copula;
use bochner_numerics::{Real, standard_normal};
use bochner_spectral::linear_init;
pub use draw::Draw;
use ndarray::{Array4, Axis};
use networks::DENSITIES;
pub use posterior::Posterior;
use posterior::UNCONDITIONAL;
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// Kernel attention whose spectral points are drawn from an implicit density, jointly over the
/// heads through a Gaussian copula.
///
/// For each head an inference network gives $\mu$ and $\log\sigma$ of the latent
/// $z_{mlr} = \mu_{ml} + \sigma_{ml} x_{mlr}$, where
/// $x_{\cdot lr} = \hat L_l\, \varepsilon_{\cdot lr}$ is correlated over the heads; two odd networks turn z into the points w1, w2 of a squared
/// non-stationary kernel, or one into those of a stationary kernel.
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
/// The penalty is $\beta\,\mathrm{KL}(q \| p)$ of one draw. With $\beta < 1$, and a latent of each
/// example divided by the number of examples, the objective is not strictly a lower bound.
///
/// # Numerics
/// R counts distinct frequencies: the mirrored half of equation 7 repeats the same kernel values
/// and is never computed. A causal mask is refused unless the [`Posterior`] is unconditional, since
/// the network's mean over time would leak the future; an unconditional one has no features for an
/// amortised copula, so it goes with a free one or none. So that inputs of any size give finite draws,
/// $|\mu|$ is held below $10^3 s_0$ and $\log(\sigma / s_0)$ between -60 and 7; at the upper bounds
/// the divergence is half a million nats for each coordinate.
///
/// # Reference
/// Song et al. 2021, equations 7, 14-19.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// How the heads depend on each other.
    pub copula: Copula,
    /// Whose equations are followed. The released code's need an even number of points and what is
    /// usual of everything else.
    pub preset: Preset,
    /// Which kernel the points belong to.
    #[serde(default, skip_serializing_if = "Stationarity::is_usual")]
    pub stationarity: Stationarity,
    /// Where the latent's mean and spread come from.
    #[serde(default, skip_serializing_if = "Posterior::is_usual")]
    pub posterior: Posterior,
    /// The number S of draws over which evaluation averages; training always uses one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub draws: usize,
    /// Pair by pair or in linear time; [`Mechanism::decoder`] is told so itself.
    #[serde(default, skip_serializing_if = "Form::is_usual")]
    pub form: Form,
}

/// Where the correlation of the heads comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Copula {
    /// The heads are independent: IKAN.
    Independent,
    /// One factor for each latent dimension, as parameters.
    Free,
    /// Factors from the features, by a linear map that the heads share.
    Amortised,
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

fn one() -> usize {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(draws: &usize) -> bool {
    *draws == 1
}

impl Described for Mikan {
    const NAME: &'static str = "mikan";
    const SUMMARY: &'static str = "an implicit spectral density, joint over the heads by a copula";
    const REFERENCE: &'static str = "Song et al. 2021";

    /// What the settings make of it: without a copula it is one of its own presets.
    fn name(&self) -> &'static str {
        match (self.copula, self.stationarity, self.p) {
            (Copula::Independent, Stationarity::Stationary, 2.0) => IKA_S.name,
            (Copula::Independent, Stationarity::Nonstationary, 2.0) => IKA_NS.name,
            (Copula::Independent, ..) => IKAN.name,
            _ => Self::NAME,
        }
    }
}

/// Gradients of [`Mikan`]'s forward pass with given noise.
#[derive(Clone, Debug, PartialEq)]
pub struct MikanGradients<T> {
    /// With respect to inputs and parameters.
    pub gradients: Gradients<T>,
    /// With respect to the noise.
    pub eps: Array4<T>,
}

struct Saved<T> {
    settings: Mikan,
    draw: Draw<T>,
    frequencies: Sets<T>,
    state: State<T>,
}

impl Mikan {
    /// The forward pass with given standard normal noise `eps: [B, M, R, d]`.
    ///
    /// # Errors
    /// As [`Mechanism::forward`].
    pub fn forward_with<T: Real>(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
        eps: Array4<T>,
    ) -> Result<Forward<T>, Error> {
        let draw = self.draw(inputs, parameters, eps)?;
        let frequencies = self.frequencies(&draw);
        let attended = self.kernel().attend(inputs, &frequencies, pass)?;
        let mut penalty = draw.kl.mapv(|kl| kl * T::of(self.beta));
        draw.coupling.add_entropy(&mut penalty);
        Ok(Forward::new(
            attended.output,
            penalty,
            Saved {
                settings: self.clone(),
                draw,
                frequencies,
                state: attended.state,
            },
        ))
    }

    /// The draw behind a forward pass.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it is another mechanism's.
    pub fn draw_of<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f Draw<T>, Error> {
        Ok(&self.saved(forward)?.draw)
    }

    /// The vector-Jacobian product of [`Mikan::forward_with`], noise included.
    ///
    /// # Errors
    /// As [`Mechanism::backward`].
    pub fn backward_with<T: Real>(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let Saved {
            draw,
            frequencies,
            state,
            ..
        } = self.saved(forward)?;
        same_shape(
            "penalty cotangent",
            draw.kl.shape(),
            cotangent.penalty.shape(),
        )?;
        let (attention, points) = self.kernel().attend_vjp(
            inputs,
            frequencies,
            pass,
            (state, forward.output.view()),
            cotangent.output,
        )?;
        let named = self.named(inputs.size(), parameters)?;
        let mut pulled = self.pull_back(inputs, &named, draw, points, cotangent.penalty)?;
        pulled.gradients.q += &attention.q;
        pulled.gradients.k += &attention.k;
        pulled.gradients.v = attention.v;
        Ok(pulled)
    }

    /// What was saved under the same settings.
    fn saved<'f, T: Real>(&self, forward: &'f Forward<T>) -> Result<&'f Saved<T>, Error> {
        let mechanism = Self::NAME;
        let saved: &Saved<T> = forward.saved(mechanism)?;
        let own = saved.settings == *self;
        own.then_some(saved)
            .ok_or(Error::ForeignForward { mechanism })
    }

    fn kernel(&self) -> SquaredKernel {
        SquaredKernel {
            p: self.p,
            floor: self.floor,
            preset: self.preset,
            form: self.form,
        }
    }

    /// Prefixes of the odd networks' parameters.
    fn densities(&self) -> &'static [&'static str] {
        &DENSITIES[..self.stationarity.sets()]
    }

    fn frequencies<T: Real>(&self, draw: &Draw<T>) -> Sets<T> {
        let frequencies = |w: &Array4<T>| self.kernel().frequencies(w.view());
        draw.points.iter().map(frequencies).collect()
    }

    fn named<'a, T: Real>(&self, size: Size, flat: &'a [T]) -> Result<Named<'a, T>, Error> {
        let name = self.name();
        Named::new(name, Mechanism::<T>::parameters(self, size), flat)
    }

    fn inspect_draw<T: Real>(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
        eps: Array4<T>,
    ) -> Result<Inspection<T>, Error> {
        let draw = self.draw(inputs, flat, eps)?;
        let frequencies = self.frequencies(&draw);
        let weights = self.kernel().weights(inputs, &frequencies, pass)?;
        let correlation = draw
            .coupling
            .factor()
            .map(|lh| copula::correlation(lh.index_axis(Axis(0), 0)));
        Ok(Inspection {
            weights,
            points: Some(shown(frequencies)),
            correlation: correlation.transpose()?,
        })
    }

    /// The noise of each draw of a pass.
    fn noise<T: Real>(&self, inputs: &Inputs<T>, pass: &Pass) -> Vec<Array4<T>> {
        let (batch, heads, _, width) = inputs.q.dim();
        let draws = match pass {
            Pass::Training { .. } => 1,
            Pass::Evaluation { .. } => self.draws,
        };
        // One stream, so that the first draw is the only one of a single draw.
        let mut stream = pass.seed().stream("spectral noise");
        let mut draw = |_| {
            Array4::from_shape_simple_fn((batch, heads, self.points, width), || {
                standard_normal(&mut stream)
            })
        };
        (0..draws).map(&mut draw).collect()
    }

    /// The noise of the one draw of a pass.
    fn single_noise<T: Real>(&self, inputs: &Inputs<T>, pass: &Pass) -> Result<Array4<T>, Error> {
        let mut noise = self.noise(inputs, pass);
        if noise.len() > 1 {
            return Err(Error::Unsupported {
                what: "decoding, or drawing points, with an average over several draws",
                instead: "one draw, or a decoder for each",
            });
        }
        Ok(noise.remove(0))
    }

    fn refused(&self) -> Option<Error> {
        let usual = Self::default();
        let unusual = self.copula != usual.copula
            || self.stationarity != usual.stationarity
            || self.posterior != usual.posterior;
        let released = self.preset == Preset::Released;
        let unsupported = |what, instead| Some(Error::Unsupported { what, instead });
        match (self.posterior, self.copula) {
            _ if released && unusual => unsupported(
                "the released preset with settings that the released code does not have",
                "the amortised copula, an inferred posterior and a non-stationary kernel",
            ),
            (Posterior::Unconditional, Copula::Amortised) => unsupported(
                "an amortised copula with an unconditional posterior, which has no features",
                "Copula::Free or Copula::Independent",
            ),
            _ if released && self.points % 2 == 1 => Some(Error::OutOfRange {
                name: "points",
                range: "even in the released preset",
                got: self.points as f64,
            }),
            _ => None,
        }
    }
}

impl<T: Real> Mechanism<T> for Mikan {
    fn validate(&self) -> Result<(), Error> {
        self.kernel().validate()?;
        positive("prior_std", self.prior_std)?;
        non_negative("beta", self.beta)?;
        non_negative("slope", self.slope)?;
        if self.points == 0 {
            return Err(Error::Empty {
                what: "spectral points",
                axis: "R",
            });
        }
        if self.draws == 0 {
            return Err(Error::Empty {
                what: "the average over draws",
                axis: "S",
            });
        }
        self.refused().map_or(Ok(()), Err)
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let Size { heads, width } = size;
        let mut specs = self.posterior.specs(size);
        for prefix in self.densities() {
            specs.extend(networks::specs(prefix, width, width));
        }
        match self.copula {
            Copula::Independent => {}
            Copula::Free => specs.push(ParameterSpec::new("copula.raw", &[width, heads, heads])),
            Copula::Amortised => specs.extend([
                ParameterSpec::new("copula.w", &[width, width]),
                ParameterSpec::new("copula.b", &[width]),
            ]),
        }
        specs
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let mut flat = Vec::new();
        for spec in Mechanism::<T>::parameters(self, size) {
            match spec.shape[..] {
                _ if spec.name == UNCONDITIONAL[1] => {
                    // At the prior, where the divergence is zero.
                    flat.extend(std::iter::repeat_n(
                        T::of(self.prior_std.ln()),
                        spec.count(),
                    ));
                }
                [outputs, inputs] if spec.name != UNCONDITIONAL[0] => {
                    flat.extend(linear_init::<T>(outputs, inputs, rng).0)
                }
                // Biases start at zero, and a free copula at independence.
                _ => flat.extend(std::iter::repeat_n(T::zero(), spec.count())),
            }
        }
        Ok(flat)
    }

    fn forward(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        let mut noise = self.noise(inputs, pass);
        match noise.len() {
            1 => self.forward_with(inputs, flat, pass, noise.remove(0)),
            _ => self.average(inputs, flat, pass, noise),
        }
    }

    fn backward(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        if forward.saved::<Saved<T>>(Self::NAME).is_ok() {
            return Ok(self
                .backward_with(inputs, flat, pass, forward, cotangent)?
                .gradients);
        }
        self.average_vjp(inputs, flat, pass, forward, cotangent)
    }

    fn settings(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<OwnedSettings<T>, Error> {
        let draw = self.draw(inputs, flat, self.single_noise(inputs, pass)?)?;
        self.kernel().owned(&self.frequencies(&draw), pass)
    }

    /// Weights are averaged over the draws, like the output; the rest is that of the first draw.
    fn inspect(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        let noise = self.noise(inputs, pass);
        let share = T::of(1.0 / noise.len() as f64);
        let mut inspections = Vec::with_capacity(noise.len());
        for eps in noise {
            inspections.push(self.inspect_draw(inputs, flat, pass, eps)?);
        }
        let mut inspections = inspections.into_iter();
        let mut first = inspections.next().expect("at least one draw");
        first.weights.mapv_inplace(|w| w * share);
        inspections.for_each(|more| first.weights.scaled_add(share, &more.weights));
        Ok(first)
    }
}
