//! One draw of spectral points, and the way back through it.

use super::bounds::Bounds;
use super::coupling::Coupling;
use super::networks::{self, DENSITIES, INFERENCE, NamedArrays};
use super::{Copula, Mikan, MikanGradients};
use crate::error::{Error, same_shape};
use crate::mechanism::{Cotangents, Gradients, Inputs, Mechanism, Named, flatten};
use bochner_copula as copula;
use bochner_numerics::Real;
use bochner_spectral::{Inferred, InferredCotangents, kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array1, Array2, Array3, Array4, Axis, Ix1, Ix2, Ix3};

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
    pub(super) coupling: Coupling<T>,
    eps: Array4<T>,
}

impl<T: Real> Draw<T> {
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
    pub(super) fn pull_back<T: Real>(
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
