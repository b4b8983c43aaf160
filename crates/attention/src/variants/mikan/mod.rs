//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

mod bounds;
mod coupling;
mod networks;

use super::squared::{Preset, SquaredKernel};
use crate::attend::Attended;
use crate::error::{Error, positive, same_shape};
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Named, ParameterSpec, Pass,
    Size, flatten,
};
use crate::registry::Described;
use bochner_copula as copula;
use bochner_numerics::{Real, standard_normal};
use bochner_spectral::{
    Inferred, InferredCotangents, kl_mean_field, kl_mean_field_vjp, linear_init,
};
use bounds::Bounds;
use coupling::Coupling;
use ndarray::{Array1, Array2, Array3, Array4, Axis, Ix1, Ix2, Ix3};
use networks::{DENSITIES, INFERENCE, NamedArrays};
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

/// One draw of the spectral points, with what led to it.
#[derive(Debug)]
pub struct Draw<T> {
    /// What the inference network says.
    pub inferred: Inferred<T>,
    /// The latent draws, `[B, M, R, d]`.
    pub z: Array4<T>,
    /// The points w1 and w2, `[B, M, R, d]`.
    pub points: [Array4<T>; 2],
    /// $\mathrm{KL}(q \| p)$ of each example.
    pub kl: Array1<T>,
    coupling: Coupling<T>,
    eps: Array4<T>,
}

impl<T: Real> Draw<T> {
    /// The normalised factors of the heads' correlation, `[1 or B, d, M, M]`; none without a
    /// copula.
    pub fn factor(&self) -> Option<&Array4<T>> {
        self.coupling.factor()
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
    draw: Draw<T>,
    frequencies: [Array4<T>; 2],
    attended: Attended<T>,
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
        let output = attended.output.clone();
        Ok(Forward::new(
            output,
            penalty,
            Saved {
                draw,
                frequencies,
                attended,
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
            attended,
        } = forward.saved::<Saved<T>>(Self::NAME)?;
        same_shape(
            "penalty cotangent",
            draw.kl.shape(),
            cotangent.penalty.shape(),
        )?;
        let (attention, points) =
            self.kernel()
                .attend_vjp(inputs, frequencies, pass, attended, cotangent.output)?;
        let named = self.named(inputs.size(), parameters)?;
        let mut pulled = self.pull_back(inputs, &named, draw, points, cotangent)?;
        pulled.gradients.q += &attention.q;
        pulled.gradients.k += &attention.k;
        pulled.gradients.v = attention.v;
        Ok(pulled)
    }

    /// Draws spectral points with given noise `eps: [B, M, R, d]`.
    ///
    /// # Errors
    /// As [`Mechanism::forward`]; [`Error::CausalLeak`] under a causal mask.
    pub fn draw<T: Real>(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        eps: Array4<T>,
    ) -> Result<Draw<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let (batch, heads, queries, width) = inputs.q.dim();
        inputs.mask.validate(batch, queries, inputs.k.dim().2)?;
        if inputs.mask.is_causal() {
            return Err(Error::CausalLeak);
        }
        same_shape("noise", &[batch, heads, self.points, width], eps.shape())?;
        let named = self.named(inputs.size(), parameters)?;
        let kept = Kept::of(inputs);
        let mut inferred = networks::inference(&named, self.slope, self.prior_std).infer(
            inputs.q,
            inputs.k,
            kept.queries.as_ref().map(|kept| kept.view()),
            kept.keys.as_ref().map(|kept| kept.view()),
        )?;
        Bounds::around(self.prior_std).hold(&mut inferred);
        let raw_factor = self.raw_factor(&named, &inferred)?;
        let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
        let (coupling, z) = Coupling::draw(self.preset, raw_factor, mu, log_sigma, eps.view())?;
        let mut kl = kl_mean_field(mu, log_sigma, T::of(self.prior_std))?;
        coupling.add_dependence(&mut kl)?;
        let points = |prefix| -> Result<Array4<T>, Error> {
            let w = networks::density(&named, prefix, self.slope).points(rows(&z).view())?;
            Ok(w.into_shape_with_order(z.raw_dim())
                .expect("one point a draw"))
        };
        let points = [points(DENSITIES[0])?, points(DENSITIES[1])?];
        Ok(Draw {
            inferred,
            z,
            points,
            kl,
            coupling,
            eps,
        })
    }

    /// From gradients of the points back to the parameters, and to q and k through the inference
    /// network.
    fn pull_back<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
        draw: &Draw<T>,
        points: [Array4<T>; 2],
        cotangent: Cotangents<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let mut parameters = NamedArrays::new();
        let mut dz = Array4::zeros(draw.z.raw_dim());
        for (prefix, dw) in DENSITIES.into_iter().zip(points) {
            let density = networks::density(named, prefix, self.slope);
            let g = density.points_vjp(rows(&draw.z).view(), rows(&dw).view())?;
            dz +=
                &g.z.into_shape_with_order(dz.raw_dim())
                    .expect("one gradient a draw");
            parameters.push_layers(prefix, [g.w1, g.w2, g.w3], [g.b1, g.b2, g.b3]);
        }

        let Inferred { mu, log_sigma, .. } = &draw.inferred;
        let d_kl = cotangent.penalty.mapv(|c| c * T::of(self.beta));
        let mut posterior = draw.coupling.draw_vjp(
            (mu.view(), log_sigma.view()),
            draw.eps.view(),
            dz.view(),
            (d_kl.view(), cotangent.penalty),
        )?;
        let divergence = kl_mean_field_vjp(
            mu.view(),
            log_sigma.view(),
            T::of(self.prior_std),
            d_kl.view(),
        )?;
        posterior.mu += &divergence.mu;
        posterior.log_sigma += &divergence.log_sigma;
        let bounds = Bounds::around(self.prior_std);
        bounds.release(&draw.inferred, &mut posterior.mu, &mut posterior.log_sigma);
        let hidden =
            self.factor_vjp(named, &draw.inferred, posterior.raw_factor, &mut parameters)?;

        let kept = Kept::of(inputs);
        let g = networks::inference(named, self.slope, self.prior_std).infer_vjp(
            inputs.q,
            inputs.k,
            kept.queries.as_ref().map(|kept| kept.view()),
            kept.keys.as_ref().map(|kept| kept.view()),
            &draw.inferred,
            &InferredCotangents {
                hidden: hidden.as_ref().map(|hidden| hidden.view()),
                mu: posterior.mu.view(),
                log_sigma: posterior.log_sigma.view(),
            },
        )?;
        parameters.push_layers(INFERENCE, [g.w1, g.w2, g.w3], [g.b1, g.b2, g.b3]);
        let specs = Mechanism::<T>::parameters(self, inputs.size());
        let gradients = Gradients {
            q: g.q,
            k: g.k,
            v: Array4::zeros(inputs.v.raw_dim()),
            parameters: flatten(&specs, parameters.into()),
        };
        Ok(MikanGradients {
            gradients,
            eps: posterior.eps,
        })
    }

    /// The factors before normalisation, `[1 or B, d, M, M]`.
    fn raw_factor<T: Real>(
        &self,
        named: &Named<T>,
        inferred: &Inferred<T>,
    ) -> Result<Option<Array4<T>>, Error> {
        Ok(match self.copula {
            Copula::Independent => None,
            Copula::Free => {
                Some(copula::free(named.get::<Ix3>("copula.raw"))?.insert_axis(Axis(0)))
            }
            Copula::Amortised => Some(copula::amortised(
                inferred.hidden.view(),
                named.get::<Ix2>("copula.w"),
                named.get::<Ix1>("copula.b"),
            )?),
        })
    }

    /// Gradients of the copula's parameters; returns that of the hidden features.
    fn factor_vjp<T: Real>(
        &self,
        named: &Named<T>,
        inferred: &Inferred<T>,
        raw_factor: Option<Array4<T>>,
        parameters: &mut NamedArrays<T>,
    ) -> Result<Option<Array3<T>>, Error> {
        match (self.copula, raw_factor) {
            (Copula::Free, Some(d)) => {
                let raw = copula::free_vjp(d.index_axis(Axis(0), 0))?;
                parameters.push("copula.raw", raw);
            }
            (Copula::Amortised, Some(d)) => {
                let (w, b) = (named.get::<Ix2>("copula.w"), named.get::<Ix1>("copula.b"));
                let g = copula::amortised_vjp(inferred.hidden.view(), w, b, d.view())?;
                parameters.push("copula.w", g.wc);
                parameters.push("copula.b", g.bc);
                return Ok(Some(g.hidden));
            }
            _ => {}
        }
        Ok(None)
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

/// The positions that count in the inference network's means.
struct Kept {
    queries: Option<Array2<bool>>,
    keys: Option<Array2<bool>>,
}

impl Kept {
    fn of<T>(inputs: &Inputs<T>) -> Self {
        let (batch, _, queries, _) = inputs.q.dim();
        Self {
            queries: inputs.mask.kept_queries(batch, queries),
            keys: inputs.mask.kept_keys(batch, inputs.k.dim().2),
        }
    }
}

/// `[B, M, R, d]` as `[B M R, d]`.
fn rows<T: Real>(x: &Array4<T>) -> Array2<T> {
    let (b, m, r, d) = x.dim();
    x.as_standard_layout()
        .into_owned()
        .into_shape_with_order((b * m * r, d))
        .expect("contiguous")
}

impl<T: Real> Mechanism<T> for Mikan {
    fn validate(&self) -> Result<(), Error> {
        self.kernel().validate()?;
        positive("prior_std", self.prior_std)?;
        for (name, value) in [("beta", self.beta), ("slope", self.slope)] {
            if !(value >= 0.0 && value.is_finite()) {
                let range = "finite and at least 0";
                return Err(Error::OutOfRange {
                    name,
                    range,
                    got: value,
                });
            }
        }
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
