//! Spectral points from an implicit density, drawn jointly over the heads.

use super::coupling::Coupling;
use super::parameters::{Named, NamedGradients};
use super::posterior::{Found, UNCONDITIONAL};
use super::{
    Copula, Drawn, DrawnCotangents, MOST_POINTS, ParameterSpec, Posterior, Preset, Size, Source,
    SourceGradients, Stationarity,
};
use crate::features::same_values;
use crate::{
    AffineGradients, AffineLayer, Error, Features, ImplicitDensity, MeanField, affine_init,
    kl_mean_field, kl_mean_field_vjp,
};
use bochner_copula as copula;
use bochner_numerics::{Real, argument, standard_normal};
use ndarray::{Array1, Array2, Array3, Array4, Axis, Ix1, Ix2, Ix3};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use std::iter::repeat_n;

/// A source that draws its points from an implicit density, jointly over the heads through a Gaussian
/// copula.
///
/// For each head a posterior gives $\mu$ and $\log\sigma$ of the latent
/// $z_{mlr} = \mu_{ml} + \sigma_{ml} x_{mlr}$, where $x_{\cdot lr} = \hat L_l \varepsilon_{\cdot lr}$ is
/// correlated over the heads; two odd networks turn z into the points w1 and w2 of a non-stationary
/// kernel, or one into those of a stationary kernel.
///
/// # Numerics
/// R counts distinct frequencies: the mirrored half of equation 7 repeats the same kernel values and is
/// never computed. So that features of any size give finite draws, $|\mu|$ is held below $10^3 s_0$ and
/// $\log(\sigma / s_0)$ between -60 and 7; at the upper bounds the divergence is half a million nats for
/// each coordinate.
///
/// # Reference
/// Song et al. 2021, equations 7, 14-19.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    default,
    deny_unknown_fields,
    remote = "Self"
)]
pub struct Implicit {
    /// The number of distinct frequencies R of each head.
    pub points: usize,
    /// Standard deviation $s_0$ of the prior, from 1e-30 to 1e30.
    pub prior_std: f64,
    /// Slope of the networks' LeakyReLU below zero.
    pub slope: f64,
    /// The dependence of the heads on each other.
    pub copula: Copula,
    /// The equations that are followed. Those of the released code need an even number of points, the
    /// amortised copula, an inferred posterior and a non-stationary kernel.
    pub preset: Preset,
    /// The kernel that the points belong to.
    pub stationarity: Stationarity,
    /// The source of the latent's mean and spread. An unconditional posterior has no features for an amortised copula.
    pub posterior: Posterior,
}

impl Default for Implicit {
    fn default() -> Self {
        Self {
            points: 64,
            prior_std: 0.1,
            slope: 0.2,
            copula: Copula::Amortised,
            preset: Preset::Paper,
            stationarity: Stationarity::Nonstationary,
            posterior: Posterior::Inferred,
        }
    }
}

bochner_numerics::checked_when_read!(Implicit);

/// The latent of one draw, and what led to it.
#[derive(Clone, Debug)]
pub struct Latent<T> {
    /// The latent draws, `[B, M, R, d]`.
    pub z: Array4<T>,
    found: Found<T>,
    coupling: Coupling<T>,
    noise: Array4<T>,
    settings: Implicit,
    /// A copy of the parameters, which binds the latent to them.
    parameters: Vec<T>,
}

impl<T: Real> Latent<T> {
    /// The posterior that z was drawn from: $\mu$ and $\log\sigma$.
    pub fn posterior(&self) -> &MeanField<T> {
        &self.found.posterior
    }

    /// The normalised factors of the heads' correlation, `[1 or B, d, M, M]`; none without a copula.
    pub fn factor(&self) -> Option<&Array4<T>> {
        self.coupling.factor()
    }

    /// The correlation of the heads for each latent dimension of the first example, `[d, M, M]`; none
    /// without a copula.
    ///
    /// # Errors
    /// [`Error::Copula`] for factors that are no correlation factors.
    pub fn correlation(&self) -> Result<Option<Array3<T>>, Error> {
        let first = self.factor().map(|factor| factor.index_axis(Axis(0), 0));
        Ok(first.map(copula::correlation).transpose()?)
    }

    /// The number that the released code adds to the objective as a copula's entropy, `[B]`; none for the paper's
    /// equations.
    pub fn entropy(&self) -> Option<&Array1<T>> {
        self.coupling.entropy()
    }
}

/// Prefix of the inference network's parameters.
pub(super) const INFERENCE: &str = "inference";
/// Prefixes of the two odd networks' parameters.
const DENSITIES: [&str; 2] = ["density1", "density2"];
/// The free copula's parameter.
const FREE: &str = "copula.raw";
/// Weights and biases of the amortised copula's map.
const AMORTISED: [&str; 2] = ["copula.w", "copula.b"];

/// Names of weights and biases of a network's layer.
fn layer_names(prefix: &str, layer: usize) -> [String; 2] {
    ["weight", "bias"].map(|part| format!("{prefix}.{part}{}", layer + 1))
}

/// Three affine layers from `inputs` to `width`.
pub(super) fn network_specs(prefix: &str, inputs: usize, width: usize) -> Vec<ParameterSpec> {
    let layer = |(layer, inputs)| {
        let [weight, bias] = layer_names(prefix, layer);
        [
            ParameterSpec::new(weight, &[width, inputs]),
            ParameterSpec::new(bias, &[width]),
        ]
    };
    let layers = [inputs, width, width].into_iter().enumerate();
    layers.flat_map(layer).collect()
}

/// A layer's parameters.
pub(super) fn affine<'a, T: Real>(
    named: &Named<'a, T>,
    prefix: &str,
    layer: usize,
) -> AffineLayer<'a, T> {
    let [weight, bias] = layer_names(prefix, layer);
    AffineLayer {
        weight: named.get(&weight),
        bias: named.get(&bias),
    }
}

pub(super) fn push_affine<T: Real>(
    gradients: &mut NamedGradients<T>,
    prefix: &str,
    layer: usize,
    along: AffineGradients<T>,
) {
    let [weight, bias] = layer_names(prefix, layer);
    gradients.push(weight, along.weight);
    gradients.push(bias, along.bias);
}

impl Implicit {
    fn densities(&self) -> &'static [&'static str] {
        &DENSITIES[..self.stationarity.sets()]
    }

    fn density<'a, T: Real>(&self, named: &Named<'a, T>, prefix: &str) -> ImplicitDensity<'a, T> {
        ImplicitDensity {
            layers: [0, 1, 2].map(|n| affine(named, prefix, n)),
            slope: T::of(self.slope),
        }
    }

    fn named<'a, T: Real>(&self, size: Size, flat: &'a [T]) -> Result<Named<'a, T>, Error> {
        Named::new(Source::<T>::parameters(self, size), flat)
    }

    fn validate(&self) -> Result<(), Error> {
        let (range, allowed) = (1e-30..=1e30, "from 1e-30 to 1e30");
        argument::in_range(
            range.contains(&self.prior_std),
            "prior_std",
            self.prior_std,
            allowed,
        )?;
        argument::non_negative("slope", self.slope)?;
        argument::at_most("points", self.points, MOST_POINTS)?;
        self.expect_supported()
    }

    fn expect_supported(&self) -> Result<(), Error> {
        let unusual = self.copula != Copula::Amortised
            || self.stationarity != Stationarity::Nonstationary
            || self.posterior != Posterior::Inferred;
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        match (self.preset, self.posterior, self.copula) {
            (Preset::Released, ..) if unusual => unsupported(
                "the released preset with settings that the released code does not have",
                "the amortised copula, an inferred posterior and a non-stationary kernel",
            ),
            (_, Posterior::Unconditional, Copula::Amortised) => unsupported(
                "an amortised copula with an unconditional posterior, which has no features",
                "Copula::Free or Copula::Independent",
            ),
            (Preset::Released, ..) => {
                let (even, points) = (self.points.is_multiple_of(2), self.points as f64);
                let allowed = "even in the released preset";
                Ok(argument::in_range(even, "points", points, allowed)?)
            }
            _ => Ok(()),
        }
    }

    /// The factors before normalisation, `[1 or B, d, M, M]`.
    fn raw_factor<T: Real>(
        &self,
        features: &Features<T>,
        named: &Named<T>,
        found: &Found<T>,
    ) -> Result<Option<Array4<T>>, Error> {
        let raw = match self.copula {
            Copula::Independent => return Ok(None),
            Copula::Free => copula::heads::free(named.get::<Ix3>(FREE))?.insert_axis(Axis(0)),
            Copula::Amortised => {
                let [w, b] = AMORTISED;
                copula::heads::amortised(found.hidden(), named.get::<Ix2>(w), named.get::<Ix1>(b))?
            }
        };
        if !raw.iter().all(|x| x.is_finite()) {
            // The copula would speak of a factor that the caller has never seen.
            features.expect_finite()?;
            named.expect_finite()?;
        }
        Ok(Some(raw))
    }

    /// Gradients of the copula's parameters; returns that of the hidden features.
    fn factor_vjp<T: Real>(
        &self,
        named: &Named<T>,
        found: &Found<T>,
        raw_factor: Option<Array4<T>>,
        parameters: &mut NamedGradients<T>,
    ) -> Result<Option<Array3<T>>, Error> {
        match (self.copula, raw_factor) {
            (Copula::Free, Some(d)) => {
                parameters.push(FREE, copula::heads::free_vjp(d.index_axis(Axis(0), 0))?);
            }
            (Copula::Amortised, Some(d)) => {
                let (w, b) = (
                    named.get::<Ix2>(AMORTISED[0]),
                    named.get::<Ix1>(AMORTISED[1]),
                );
                let g = copula::heads::amortised_vjp(found.hidden(), w, b, d.view())?;
                parameters.push(AMORTISED[0], g.wc);
                parameters.push(AMORTISED[1], g.bc);
                return Ok(Some(g.hidden));
            }
            _ => {}
        }
        Ok(None)
    }

    /// The way back in whatever units the cotangents are given.
    fn pull_back<T: Real>(
        &self,
        features: &Features<T>,
        named: &Named<T>,
        latent: &Latent<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<SourceGradients<T>, Error> {
        let mut parameters = NamedGradients::new();
        let mut dz = Array4::zeros(latent.z.raw_dim());
        for (prefix, dw) in self.densities().iter().zip(&cotangent.points) {
            let density = self.density(named, prefix);
            let g = density.points_vjp(rows(&latent.z).view(), rows(dw).view())?;
            let along_z = g.z.into_shape_with_order(dz.raw_dim());
            dz += &along_z.expect("one gradient a draw");
            for (n, layer) in g.layers.into_iter().enumerate() {
                push_affine(&mut parameters, prefix, n, layer);
            }
        }
        let (posterior, d_kl) = (latent.posterior(), cotangent.kl.view());
        let entropy = cotangent.entropy.as_ref().map(|entropy| entropy.view());
        let noise = latent.noise.view();
        let g = (latent.coupling).draw_vjp(posterior, noise, dz.view(), d_kl, entropy)?;
        let (mu, log_sigma) = (posterior.mu.view(), posterior.log_sigma.view());
        let divergence = kl_mean_field_vjp(mu, log_sigma, T::of(self.prior_std), d_kl)?;
        let moments = MeanField {
            mu: g.posterior.mu + &divergence.mu,
            log_sigma: g.posterior.log_sigma + &divergence.log_sigma,
        };
        let found = &latent.found;
        let hidden = self.factor_vjp(named, found, g.raw_factor, &mut parameters)?;
        let [q, k] = self.find_vjp(features, named, found, moments, hidden, &mut parameters)?;
        Ok(SourceGradients {
            q,
            k,
            parameters: parameters.flatten(named.specs()),
            noise: g.noise,
        })
    }
}

impl<T: Real> Source<T> for Implicit {
    fn validate(&self) -> Result<(), Error> {
        self.validate()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let Size { heads, width } = size;
        let mut specs = self.posterior.specs(size);
        for prefix in self.densities() {
            specs.extend(network_specs(prefix, width, width));
        }
        match self.copula {
            Copula::Independent => {}
            Copula::Free => specs.push(ParameterSpec::new(FREE, &[width, heads, heads])),
            Copula::Amortised => specs.extend([
                ParameterSpec::new(AMORTISED[0], &[width, width]),
                ParameterSpec::new(AMORTISED[1], &[width]),
            ]),
        }
        specs
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        self.validate()?;
        size.validate()?;
        let mut flat = Vec::new();
        for spec in Source::<T>::parameters(self, size) {
            match spec.shape[..] {
                // At the prior, where the divergence is zero.
                _ if spec.name == UNCONDITIONAL[1] => {
                    flat.extend(repeat_n(T::of(self.prior_std.ln()), spec.count()));
                }
                [outputs, inputs] if spec.name != UNCONDITIONAL[0] => {
                    flat.extend(affine_init::<T>(outputs, inputs, rng).0);
                }
                // Biases start at zero, and a free copula at independence.
                _ => flat.extend(repeat_n(T::zero(), spec.count())),
            }
        }
        Ok(flat)
    }

    fn noise(&self, batch: usize, Size { heads, width }: Size, rng: &mut dyn RngCore) -> Array4<T> {
        let shape = (batch, heads, self.points, width);
        Array4::from_shape_simple_fn(shape, || standard_normal(rng))
    }

    fn draw(
        &self,
        features: &Features<T>,
        flat: &[T],
        noise: Array4<T>,
    ) -> Result<Drawn<T>, Error> {
        self.validate()?;
        let (batch, heads, width) = features.checked()?;
        argument::shape("noise", &[batch, heads, self.points, width], noise.shape())?;
        let named = self.named(Size { heads, width }, flat)?;
        let found = self.find(features, &named)?;
        let raw_factor = self.raw_factor(features, &named, &found)?;
        let (coupling, z) =
            Coupling::draw(self.preset, raw_factor, &found.posterior, noise.view())?;
        let MeanField { mu, log_sigma } = &found.posterior;
        let mut kl = kl_mean_field(mu.view(), log_sigma.view(), T::of(self.prior_std))?;
        coupling.add_dependence(&mut kl)?;
        let points = |prefix: &&str| -> Result<Array4<T>, Error> {
            let w = self.density(&named, prefix).points(rows(&z).view())?;
            Ok(w.into_shape_with_order(z.raw_dim())
                .expect("one point a draw"))
        };
        let points = self.densities().iter().map(points);
        Ok(Drawn {
            points: points.collect::<Result<_, _>>()?,
            kl,
            latent: Some(Latent {
                z,
                found,
                coupling,
                noise,
                settings: *self,
                parameters: flat.to_vec(),
            }),
        })
    }

    fn draw_vjp(
        &self,
        features: &Features<T>,
        flat: &[T],
        drawn: &Drawn<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<SourceGradients<T>, Error> {
        let latent = drawn.latent.as_ref();
        let own =
            |latent: &&Latent<T>| latent.settings == *self && same_values(&latent.parameters, flat);
        let latent = latent.filter(own);
        let latent = latent.ok_or(Error::ForeignDraw)?;
        cotangent.check(drawn)?;
        let (_, heads, width) = features.checked()?;
        let named = self.named(Size { heads, width }, flat)?;
        self.pull_back(features, &named, latent, cotangent)
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
