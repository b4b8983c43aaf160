//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

mod bounds;
mod coupling;
mod draw;
mod networks;

use super::squared::{Preset, SquaredKernel};
use crate::attend::State;
use crate::error::{Error, non_negative, positive, same_shape};
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Named, ParameterSpec, Pass, Size,
};
use crate::registry::Described;
use bochner_copula as copula;
use bochner_numerics::{Real, standard_normal};
use bochner_spectral::linear_init;
pub use draw::Draw;
use ndarray::{Array4, Axis};
use networks::{DENSITIES, INFERENCE};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// Kernel attention whose spectral points are drawn from an implicit density, jointly over the
/// heads through a Gaussian copula.
///
/// For each head an inference network gives $\mu$ and $\log\sigma$ of the latent
/// $z_{mlr} = \mu_{ml} + \sigma_{ml} x_{mlr}$, where $x_{\cdot lr} = \hat L_l\, \varepsilon_{\cdot lr}$
/// is correlated over the heads; two odd networks turn z into the points w1, w2 of a squared
/// non-stationary kernel. Without a copula it is IKAN.
///
/// The penalty is $\beta\,\mathrm{KL}(q \| p)$ of one draw. With $\beta < 1$, and a latent of each
/// example divided by the number of examples, the objective is not strictly a lower bound.
///
/// # Numerics
/// R counts distinct frequencies: the mirrored half of equation 7 repeats the same kernel values
/// and is never computed. A causal mask is refused, since the network's mean over time would leak
/// the future. So that inputs of any size give finite draws, $|\mu|$ is held below $10^3 s_0$ and
/// $\log(\sigma / s_0)$ between -60 and 7; at the upper bounds the divergence is half a million nats
/// for each coordinate.
///
/// # Reference
/// Song et al. 2021, equations 7, 14-19.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mikan {
    /// The exponent of the magnitude's norm, above 0.
    pub p: f64,
    /// The number of distinct frequencies R.
    pub points: usize,
    /// The floor e under the squared kernel.
    pub floor: f64,
    /// Standard deviation $s_0$ of the prior.
    pub prior_std: f64,
    /// Weight $\beta$ of the divergence from the prior.
    pub beta: f64,
    /// Slope of the networks' LeakyReLU below zero.
    pub slope: f64,
    /// How the heads depend on each other.
    pub copula: Copula,
    /// Whose equations are followed. The released code's need an even number of points and the
    /// amortised copula.
    pub preset: Preset,
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
        }
    }
}

impl Described for Mikan {
    const NAME: &'static str = "mikan";
    const SUMMARY: &'static str = "an implicit spectral density, joint over the heads by a copula";
    const REFERENCE: &'static str = "Song et al. 2021";
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
    draw: Draw<T>,
    frequencies: [Array4<T>; 2],
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
        Ok(&forward.saved::<Saved<T>>(Self::NAME)?.draw)
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
        } = forward.saved::<Saved<T>>(Self::NAME)?;
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
        let mut pulled = self.pull_back(inputs, &named, draw, points, cotangent)?;
        pulled.gradients.q += &attention.q;
        pulled.gradients.k += &attention.k;
        pulled.gradients.v = attention.v;
        Ok(pulled)
    }

    fn kernel(&self) -> SquaredKernel {
        SquaredKernel {
            p: self.p,
            floor: self.floor,
            preset: self.preset,
        }
    }

    fn frequencies<T: Real>(&self, draw: &Draw<T>) -> [Array4<T>; 2] {
        draw.points
            .each_ref()
            .map(|w| self.kernel().frequencies(w.view()))
    }

    fn named<'a, T: Real>(&self, size: Size, flat: &'a [T]) -> Result<Named<'a, T>, Error> {
        Named::new(Self::NAME, Mechanism::<T>::parameters(self, size), flat)
    }

    fn noise<T: Real>(&self, inputs: &Inputs<T>, pass: &Pass) -> Array4<T> {
        let (batch, heads, _, width) = inputs.q.dim();
        let mut stream = pass.seed().stream("spectral noise");
        Array4::from_shape_simple_fn((batch, heads, self.points, width), || {
            standard_normal(&mut stream)
        })
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
        let released = self.preset == Preset::Released;
        if released && (self.points % 2 == 1 || self.copula != Copula::Amortised) {
            return Err(Error::OutOfRange {
                name: "points",
                range: "even, with the amortised copula, in the released preset",
                got: self.points as f64,
            });
        }
        Ok(())
    }

    fn parameters(&self, Size { heads, width }: Size) -> Vec<ParameterSpec> {
        let mut specs = networks::specs(INFERENCE, 2 * width, width);
        DENSITIES
            .into_iter()
            .for_each(|prefix| specs.extend(networks::specs(prefix, width, width)));
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
                [outputs, inputs] => flat.extend(linear_init::<T>(outputs, inputs, rng).0),
                // Biases start at zero, and a free copula at independence.
                _ => flat.extend(std::iter::repeat_n(T::zero(), spec.count())),
            }
        }
        Ok(flat)
    }

    fn forward(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        self.forward_with(inputs, flat, pass, self.noise(inputs, pass))
    }

    fn backward(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        Ok(self
            .backward_with(inputs, flat, pass, forward, cotangent)?
            .gradients)
    }

    fn inspect(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        let draw = self.draw(inputs, flat, self.noise(inputs, pass))?;
        let frequencies = self.frequencies(&draw);
        let weights = self.kernel().weights(inputs, &frequencies, pass)?;
        let correlation = draw
            .coupling
            .factor()
            .map(|lh| copula::correlation(lh.index_axis(Axis(0), 0)));
        let [w1, w2] = frequencies;
        Ok(Inspection {
            weights,
            points: Some((w1, w2)),
            correlation: correlation.transpose()?,
        })
    }
}
