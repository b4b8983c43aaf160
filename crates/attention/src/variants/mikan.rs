//! MIKAN: spectral points from an implicit density, drawn jointly over the heads.

use super::released;
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
    ImplicitDensity, InferenceNetwork, Inferred, InferredCotangents, kl_mean_field,
    kl_mean_field_vjp, linear_init, reparameterise, reparameterise_vjp,
};
use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Axis, Ix1, Ix2, Ix3};
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
/// the future.
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

/// One draw of the spectral points, with all that led to it.
#[derive(Debug)]
pub struct Draw<T> {
    /// What the inference network says.
    pub inferred: Inferred<T>,
    /// The normalised factors of the correlation, `[1 or B, d, M, M]`.
    pub factor: Option<Array4<T>>,
    /// The latent draws, `[B, M, R, d]`.
    pub z: Array4<T>,
    /// The first frequencies, `[B, M, R, d]`.
    pub w1: Array4<T>,
    /// The second frequencies, `[B, M, R, d]`.
    pub w2: Array4<T>,
    /// $\mathrm{KL}(q \| p)$ of each example.
    pub kl: Array1<T>,
    /// The factors before normalisation.
    raw_factor: Option<Array4<T>>,
    eps: Array4<T>,
    /// What the released code calls the copula's entropy, weighted 1.
    entropy: Option<Vec<f64>>,
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
        for (penalty, &entropy) in penalty.iter_mut().zip(draw.entropy.iter().flatten()) {
            *penalty += T::of(entropy);
        }
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
        let (attention, [dw1, dw2]) =
            self.kernel()
                .attend_vjp(inputs, frequencies, pass, attended, cotangent.output)?;
        let named = self.named(inputs.size(), parameters)?;
        let mut pulled = self.pull_back(inputs, &named, draw, [&dw1, &dw2], cotangent)?;
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
        let keys = inputs.k.dim().2;
        inputs.mask.validate(batch, queries, keys)?;
        if inputs.mask.is_causal() {
            return Err(Error::CausalLeak);
        }
        same_shape("noise", &[batch, heads, self.points, width], eps.shape())?;
        let named = self.named(inputs.size(), parameters)?;
        let inferred = self.network(&named).infer(
            inputs.q,
            inputs.k,
            inputs
                .mask
                .kept_queries(batch, queries)
                .as_ref()
                .map(|kept| kept.view()),
            inputs
                .mask
                .kept_keys(batch, keys)
                .as_ref()
                .map(|kept| kept.view()),
        )?;
        let raw_factor = self.raw_factor(&named, &inferred)?;
        let mut kl = kl_mean_field(
            inferred.mu.view(),
            inferred.log_sigma.view(),
            T::of(self.prior_std),
        )?;
        let mut draw = match (self.preset, &raw_factor) {
            (Preset::Released, Some(raw)) => {
                let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
                let drawn = released::draw(mu, log_sigma, raw.view(), eps.view());
                (None, drawn.z, Some(drawn.entropy))
            }
            (_, Some(raw)) => {
                let factor = normalise(raw)?;
                kl += &copula::dependence_kl(factor.view())?;
                let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
                let drawn = copula::joint_posterior(mu, log_sigma, factor.view(), eps.view())?;
                (Some(factor), drawn.z, None)
            }
            (_, None) => {
                let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
                (None, reparameterise(mu, log_sigma, eps.view())?, None)
            }
        };
        let z = std::mem::take(&mut draw.1);
        let points = |prefix| -> Result<Array4<T>, Error> {
            let w = self.density(&named, prefix).points(rows(&z).view())?;
            Ok(w.into_shape_with_order(z.raw_dim())
                .expect("one point a draw"))
        };
        let (w1, w2) = (points(DENSITIES[0])?, points(DENSITIES[1])?);
        Ok(Draw {
            inferred,
            factor: draw.0,
            z,
            w1,
            w2,
            kl,
            raw_factor,
            eps,
            entropy: draw.2,
        })
    }

    fn pull_back<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
        draw: &Draw<T>,
        points: [&Array4<T>; 2],
        cotangent: Cotangents<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let mut parameters: Vec<(&str, ArrayD<T>)> = Vec::new();
        let mut dz = Array4::zeros(draw.z.raw_dim());
        for (names, dw) in DENSITIES.into_iter().zip(points) {
            let g = self
                .density(named, names)
                .points_vjp(rows(&draw.z).view(), rows(dw).view())?;
            dz +=
                &g.z.into_shape_with_order(dz.raw_dim())
                    .expect("one gradient a draw");
            parameters.extend([
                (names[0], g.w1.into_dyn()),
                (names[1], g.b1.into_dyn()),
                (names[2], g.w2.into_dyn()),
                (names[3], g.b2.into_dyn()),
                (names[4], g.w3.into_dyn()),
                (names[5], g.b3.into_dyn()),
            ]);
        }

        let d_kl = cotangent.penalty.mapv(|c| c * T::of(self.beta));
        let Posterior {
            mut mu,
            mut log_sigma,
            raw_factor,
            eps,
        } = self.posterior_vjp(draw, &dz, &d_kl, cotangent)?;
        let divergence = kl_mean_field_vjp(
            draw.inferred.mu.view(),
            draw.inferred.log_sigma.view(),
            T::of(self.prior_std),
            d_kl.view(),
        )?;
        mu += &divergence.mu;
        log_sigma += &divergence.log_sigma;
        let hidden = self.factor_vjp(named, &draw.inferred, raw_factor, &mut parameters)?;

        let (batch, _, queries, _) = inputs.q.dim();
        let keys = inputs.k.dim().2;
        let g = self.network(named).infer_vjp(
            inputs.q,
            inputs.k,
            inputs
                .mask
                .kept_queries(batch, queries)
                .as_ref()
                .map(|kept| kept.view()),
            inputs
                .mask
                .kept_keys(batch, keys)
                .as_ref()
                .map(|kept| kept.view()),
            &draw.inferred,
            &InferredCotangents {
                hidden: hidden.as_ref().map(|hidden| hidden.view()),
                mu: mu.view(),
                log_sigma: log_sigma.view(),
            },
        )?;
        parameters.extend([
            (INFERENCE[0], g.w1.into_dyn()),
            (INFERENCE[1], g.b1.into_dyn()),
            (INFERENCE[2], g.w2.into_dyn()),
            (INFERENCE[3], g.b2.into_dyn()),
            (INFERENCE[4], g.w3.into_dyn()),
            (INFERENCE[5], g.b3.into_dyn()),
        ]);
        let specs = Mechanism::<T>::parameters(self, inputs.size());
        let gradients = Gradients {
            q: g.q,
            k: g.k,
            v: Array4::zeros(inputs.v.raw_dim()),
            parameters: flatten(&specs, parameters),
        };
        Ok(MikanGradients { gradients, eps })
    }

    /// From the latent draws back to the posterior's parameters; the mean-field part of the
    /// divergence is not included.
    fn posterior_vjp<T: Real>(
        &self,
        draw: &Draw<T>,
        dz: &Array4<T>,
        d_kl: &Array1<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Posterior<T>, Error> {
        let log_sigma = draw.inferred.log_sigma.view();
        match (&draw.factor, &draw.raw_factor) {
            (Some(factor), Some(raw)) => {
                let g = copula::joint_posterior_vjp(
                    log_sigma,
                    factor.view(),
                    draw.eps.view(),
                    dz.view(),
                )?;
                let shared = factor.dim().0 == 1;
                let d_dependence = if shared {
                    Array1::from_elem(1, d_kl.sum())
                } else {
                    d_kl.clone()
                };
                let d_factor =
                    g.lh + copula::dependence_kl_vjp(factor.view(), d_dependence.view())?;
                Ok(Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor: Some(normalise_vjp(raw, &d_factor)?),
                    eps: g.eps,
                })
            }
            (None, Some(raw)) => {
                let d_entropy: Vec<f64> = cotangent.penalty.iter().map(|c| c.as_f64()).collect();
                let g = released::draw_vjp(
                    log_sigma,
                    raw.view(),
                    draw.eps.view(),
                    dz.view(),
                    &d_entropy,
                );
                Ok(Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor: Some(g.factor),
                    eps: g.eps,
                })
            }
            _ => {
                let g = reparameterise_vjp(
                    draw.inferred.mu.view(),
                    log_sigma,
                    draw.eps.view(),
                    dz.view(),
                )?;
                Ok(Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor: None,
                    eps: g.x,
                })
            }
        }
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
        parameters: &mut Vec<(&str, ArrayD<T>)>,
    ) -> Result<Option<Array3<T>>, Error> {
        match (self.copula, raw_factor) {
            (Copula::Free, Some(d)) => {
                let raw = copula::free_vjp(d.index_axis(Axis(0), 0))?;
                parameters.push(("copula.raw", raw.into_dyn()));
            }
            (Copula::Amortised, Some(d)) => {
                let (w, b) = (named.get::<Ix2>("copula.w"), named.get::<Ix1>("copula.b"));
                let g = copula::amortised_vjp(inferred.hidden.view(), w, b, d.view())?;
                parameters.push(("copula.w", g.wc.into_dyn()));
                parameters.push(("copula.b", g.bc.into_dyn()));
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
        [&draw.w1, &draw.w2].map(|w| self.kernel().frequencies(w.view()))
    }

    fn named<'a, T: Real>(&self, size: Size, flat: &'a [T]) -> Result<Named<'a, T>, Error> {
        Named::new(Self::NAME, Mechanism::<T>::parameters(self, size), flat)
    }

    fn network<'a, T: Real>(&self, named: &Named<'a, T>) -> InferenceNetwork<'a, T> {
        InferenceNetwork {
            w1: named.get(INFERENCE[0]),
            b1: named.get(INFERENCE[1]),
            w2: named.get(INFERENCE[2]),
            b2: named.get(INFERENCE[3]),
            w3: named.get(INFERENCE[4]),
            b3: named.get(INFERENCE[5]),
            slope: T::of(self.slope),
            prior_std: T::of(self.prior_std),
        }
    }

    fn density<'a, T: Real>(
        &self,
        named: &Named<'a, T>,
        names: [&'static str; 6],
    ) -> ImplicitDensity<'a, T> {
        ImplicitDensity {
            w1: named.get(names[0]),
            b1: named.get(names[1]),
            w2: named.get(names[2]),
            b2: named.get(names[3]),
            w3: named.get(names[4]),
            b3: named.get(names[5]),
            slope: T::of(self.slope),
        }
    }

    fn noise<T: Real>(&self, inputs: &Inputs<T>, pass: &Pass) -> Array4<T> {
        let (batch, heads, _, width) = inputs.q.dim();
        let mut stream = pass.seed().stream("spectral noise");
        Array4::from_shape_simple_fn((batch, heads, self.points, width), || {
            standard_normal(&mut stream)
        })
    }
}

/// Names of the inference network's parameters, layer by layer.
const INFERENCE: [&str; 6] = [
    "inference.w1",
    "inference.b1",
    "inference.w2",
    "inference.b2",
    "inference.w3",
    "inference.b3",
];
/// Names of the two odd networks' parameters, layer by layer.
const DENSITIES: [[&str; 6]; 2] = [
    [
        "density1.w1",
        "density1.b1",
        "density1.w2",
        "density1.b2",
        "density1.w3",
        "density1.b3",
    ],
    [
        "density2.w1",
        "density2.b1",
        "density2.w2",
        "density2.b2",
        "density2.w3",
        "density2.b3",
    ],
];

/// Gradients of the posterior's parameters.
struct Posterior<T> {
    mu: Array3<T>,
    log_sigma: Array3<T>,
    raw_factor: Option<Array4<T>>,
    eps: Array4<T>,
}

/// `[B, M, R, d]` as `[B M R, d]`.
fn rows<T: Real>(x: &Array4<T>) -> Array2<T> {
    let (b, m, r, d) = x.dim();
    x.as_standard_layout()
        .into_owned()
        .into_shape_with_order((b * m * r, d))
        .expect("contiguous")
}

fn stack<T: Real>(factor: &Array4<T>) -> Array3<T> {
    let (n, d, m, _) = factor.dim();
    factor
        .as_standard_layout()
        .into_owned()
        .into_shape_with_order((n * d, m, m))
        .expect("contiguous")
}

fn normalise<T: Real>(raw: &Array4<T>) -> Result<Array4<T>, Error> {
    let lh = copula::normalise(stack(raw).view())?;
    Ok(lh
        .into_shape_with_order(raw.raw_dim())
        .expect("the same factors"))
}

fn normalise_vjp<T: Real>(raw: &Array4<T>, cotangent: &Array4<T>) -> Result<Array4<T>, Error> {
    let g = copula::normalise_vjp(stack(raw).view(), stack(cotangent).view())?;
    Ok(g.into_shape_with_order(raw.raw_dim())
        .expect("the same factors"))
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
        let layers = |names: [&'static str; 6], inputs: usize| {
            let shapes: [&[usize]; 6] = [
                &[width, inputs],
                &[width],
                &[width, width],
                &[width],
                &[width, width],
                &[width],
            ];
            names
                .into_iter()
                .zip(shapes)
                .map(|(name, shape)| ParameterSpec::new(name, shape))
                .collect::<Vec<_>>()
        };
        let mut specs = layers(INFERENCE, 2 * width);
        DENSITIES
            .into_iter()
            .for_each(|names| specs.extend(layers(names, width)));
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
        let first = |x: &Array4<T>| x.index_axis(Axis(0), 0).to_owned();
        let correlation = draw
            .factor
            .as_ref()
            .map(|lh| copula::correlation(first(lh).view()))
            .transpose()?;
        let [w1, w2] = frequencies;
        Ok(Inspection {
            weights,
            points: Some((w1, w2)),
            correlation,
        })
    }
}
