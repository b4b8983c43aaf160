//! One draw of spectral points, and the way back through it.

use super::coupling::Coupling;
use super::networks::{self, NamedArrays};
use super::posterior::{Found, Posterior};
use super::{Copula, Mikan, MikanGradients};
use crate::error::{Error, same_shape};
use crate::mechanism::{Gradients, Inputs, Mechanism, Named, flatten};
use crate::variants::squared::Sets;
use bochner_copula as copula;
use bochner_numerics::Real;
use bochner_spectral::{MeanField, kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView1, Axis, Ix1, Ix2, Ix3};

/// One draw of the spectral points, with what led to it.
#[derive(Debug)]
pub struct Draw<T> {
    /// The latent draws, `[B, M, R, d]`.
    pub z: Array4<T>,
    /// The points w1, and w2 of a non-stationary kernel, `[B, M, R, d]`.
    pub points: Sets<T>,
    /// $\mathrm{KL}(q \| p)$ of each example.
    pub kl: Array1<T>,
    found: Found<T>,
    pub(super) coupling: Coupling<T>,
    eps: Array4<T>,
}

impl<T: Real> Draw<T> {
    /// What z was drawn from: $\mu$ and $\log\sigma$.
    pub fn posterior(&self) -> &MeanField<T> {
        &self.found.posterior
    }

    /// The normalised factors of the heads' correlation, `[1 or B, d, M, M]`; none without a
    /// copula.
    pub fn factor(&self) -> Option<&Array4<T>> {
        self.coupling.factor()
    }
}

impl Mikan {
    /// Draws spectral points with given noise `eps: [B, M, R, d]`.
    ///
    /// # Errors
    /// As [`Mechanism::forward`]; [`Error::CausalLeak`] under a causal mask, unless the posterior
    /// is unconditional.
    pub fn draw<T: Real>(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        eps: Array4<T>,
    ) -> Result<Draw<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let (batch, heads, queries, width) = inputs.q.dim();
        inputs.mask.validate(batch, queries, inputs.k.dim().2)?;
        if inputs.mask.is_causal() && self.posterior == Posterior::Inferred {
            return Err(Error::CausalLeak);
        }
        same_shape("noise", &[batch, heads, self.points, width], eps.shape())?;
        let named = self.named(inputs.size(), parameters)?;
        let found = self.posterior(inputs, &named)?;
        let raw_factor = self.raw_factor(&named, &found)?;
        let MeanField { mu, log_sigma } = &found.posterior;
        let (mu, log_sigma) = (mu.view(), log_sigma.view());
        let (coupling, z) = Coupling::draw(self.preset, raw_factor, mu, log_sigma, eps.view())?;
        let mut kl = kl_mean_field(mu, log_sigma, T::of(self.prior_std))?;
        coupling.add_dependence(&mut kl)?;
        let points = |prefix: &&str| -> Result<Array4<T>, Error> {
            let w = networks::density(&named, prefix, self.slope).points(rows(&z).view())?;
            Ok(w.into_shape_with_order(z.raw_dim())
                .expect("one point a draw"))
        };
        let points = self.densities().iter().map(points);
        Ok(Draw {
            points: points.collect::<Result<_, _>>()?,
            found,
            z,
            kl,
            coupling,
            eps,
        })
    }

    /// From gradients of the points back to the parameters, and to q and k through the inference
    /// network.
    pub(super) fn pull_back_draw<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
        draw: &Draw<T>,
        points: Sets<T>,
        penalty: ArrayView1<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let mut parameters = NamedArrays::new();
        let mut dz = Array4::zeros(draw.z.raw_dim());
        for (prefix, dw) in self.densities().iter().zip(points) {
            let density = networks::density(named, prefix, self.slope);
            let g = density.points_vjp(rows(&draw.z).view(), rows(&dw).view())?;
            dz +=
                &g.z.into_shape_with_order(dz.raw_dim())
                    .expect("one gradient a draw");
            parameters.push_layers(prefix, [g.w1, g.w2, g.w3], [g.b1, g.b2, g.b3]);
        }

        let MeanField { mu, log_sigma } = draw.posterior();
        let (mu, log_sigma) = (mu.view(), log_sigma.view());
        let d_kl = penalty.mapv(|c| c * T::of(self.beta));
        let mut posterior = draw.coupling.draw_vjp(
            (mu, log_sigma),
            draw.eps.view(),
            dz.view(),
            (d_kl.view(), penalty),
        )?;
        let divergence = kl_mean_field_vjp(mu, log_sigma, T::of(self.prior_std), d_kl.view())?;
        let moments = MeanField {
            mu: posterior.mu + &divergence.mu,
            log_sigma: posterior.log_sigma + &divergence.log_sigma,
        };
        let raw_factor = posterior.raw_factor.take();
        let hidden = self.factor_vjp(named, &draw.found, raw_factor, &mut parameters)?;
        let g = self.posterior_vjp(inputs, named, &draw.found, moments, hidden, &mut parameters)?;
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
        found: &Found<T>,
    ) -> Result<Option<Array4<T>>, Error> {
        Ok(match self.copula {
            Copula::Independent => None,
            Copula::Free => {
                Some(copula::heads::free(named.get::<Ix3>("copula.raw"))?.insert_axis(Axis(0)))
            }
            Copula::Amortised => Some(copula::heads::amortised(
                found.hidden(),
                named.get::<Ix2>("copula.w"),
                named.get::<Ix1>("copula.b"),
            )?),
        })
    }

    /// Gradients of the copula's parameters; returns that of the hidden features.
    fn factor_vjp<T: Real>(
        &self,
        named: &Named<T>,
        found: &Found<T>,
        raw_factor: Option<Array4<T>>,
        parameters: &mut NamedArrays<T>,
    ) -> Result<Option<Array3<T>>, Error> {
        match (self.copula, raw_factor) {
            (Copula::Free, Some(d)) => {
                let raw = copula::heads::free_vjp(d.index_axis(Axis(0), 0))?;
                parameters.push("copula.raw", raw);
            }
            (Copula::Amortised, Some(d)) => {
                let (w, b) = (named.get::<Ix2>("copula.w"), named.get::<Ix1>("copula.b"));
                let g = copula::heads::amortised_vjp(found.hidden(), w, b, d.view())?;
                parameters.push("copula.w", g.wc);
                parameters.push("copula.b", g.bc);
                return Ok(Some(g.hidden));
            }
            _ => {}
        }
        Ok(None)
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
