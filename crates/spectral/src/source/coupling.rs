//! The coupling that turns independent noise into latent draws that depend on each other over the heads.

use super::{Preset, released};
use crate::{Error, MeanField, reparameterise, reparameterise_vjp};
use bochner_copula as copula;
use bochner_numerics::Real;
use ndarray::{Array1, Array3, Array4, ArrayView1, ArrayView4};
use serde::{Deserialize, Serialize};

/// The source of the heads' correlation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copula {
    /// The heads are independent.
    Independent,
    /// One factor for each latent dimension, as parameters.
    Free,
    /// Factors from the features, by an affine map that the heads share.
    #[default]
    Amortised,
}

/// The coupling of the heads, kept between the passes.
#[derive(Clone, Debug)]
pub(super) enum Coupling<T> {
    Independent,
    /// A Gaussian copula, with its factors before and after normalisation, `[1 or B, d, M, M]`.
    Joint {
        raw: Array4<T>,
        factor: Array4<T>,
    },
    /// The released code's coupling, in which the factor scales each head's own noise.
    Released {
        raw: Array4<T>,
        entropy: Array1<T>,
    },
}

/// Gradients of a draw.
pub(super) struct DrawGradients<T> {
    pub(super) posterior: MeanField<T>,
    pub(super) raw_factor: Option<Array4<T>>,
    pub(super) noise: Array4<T>,
}

impl<T: Real> Coupling<T> {
    /// Latent draws, `[B, M, R, d]`, and what they were coupled by.
    pub(super) fn draw(
        preset: Preset,
        raw_factor: Option<Array4<T>>,
        posterior: &MeanField<T>,
        noise: ArrayView4<T>,
    ) -> Result<(Self, Array4<T>), Error> {
        let (mu, log_sigma) = (posterior.mu.view(), posterior.log_sigma.view());
        Ok(match (preset, raw_factor) {
            (_, None) => (Self::Independent, reparameterise(mu, log_sigma, noise)?),
            (Preset::Released, Some(raw)) => {
                let drawn = released::draw(mu, log_sigma, raw.view(), noise);
                let entropy = drawn.entropy.into_iter().map(T::of).collect();
                (Self::Released { raw, entropy }, drawn.z)
            }
            (Preset::Paper, Some(raw)) => {
                let factor = unstack(copula::normalise(stack(&raw).view())?, &raw);
                let z = copula::heads::joint_posterior(mu, log_sigma, factor.view(), noise)?.z;
                (Self::Joint { raw, factor }, z)
            }
        })
    }

    /// The normalised factors, if there is a copula.
    pub(super) fn factor(&self) -> Option<&Array4<T>> {
        match self {
            Self::Joint { factor, .. } => Some(factor),
            _ => None,
        }
    }

    /// The number that the released code calls the copula's entropy.
    pub(super) fn entropy(&self) -> Option<&Array1<T>> {
        match self {
            Self::Released { entropy, .. } => Some(entropy),
            _ => None,
        }
    }

    /// Adds the copula's part of the divergence to the mean field's.
    pub(super) fn add_dependence(&self, kl: &mut Array1<T>) -> Result<(), Error> {
        if let Self::Joint { factor, .. } = self {
            *kl += &copula::heads::dependence_kl(factor.view())?;
        }
        Ok(())
    }

    /// The vector-Jacobian product of the draw, of the copula's part of the divergence and of the
    /// released code's entropy.
    pub(super) fn draw_vjp(
        &self,
        posterior: &MeanField<T>,
        noise: ArrayView4<T>,
        dz: ArrayView4<T>,
        d_kl: ArrayView1<T>,
        d_entropy: Option<ArrayView1<T>>,
    ) -> Result<DrawGradients<T>, Error> {
        let (mu, log_sigma) = (posterior.mu.view(), posterior.log_sigma.view());
        let gradients = |mu, log_sigma, raw_factor, noise| DrawGradients {
            posterior: MeanField { mu, log_sigma },
            raw_factor,
            noise,
        };
        Ok(match self {
            Self::Independent => {
                let g = reparameterise_vjp(mu, log_sigma, noise, dz)?;
                gradients(g.mu, g.log_sigma, None, g.x)
            }
            Self::Joint { raw, factor } => {
                let g = copula::heads::joint_posterior_vjp(log_sigma, factor.view(), noise, dz)?;
                let shared = factor.dim().0 == 1;
                let d_kl = if shared {
                    Array1::from_elem(1, d_kl.sum())
                } else {
                    d_kl.to_owned()
                };
                let d_factor = g.lh + copula::heads::dependence_kl_vjp(factor.view(), d_kl.view())?;
                let d_raw = copula::normalise_vjp(stack(raw).view(), stack(&d_factor).view())?;
                gradients(g.mu, g.log_sigma, Some(unstack(d_raw, raw)), g.eps)
            }
            Self::Released { raw, .. } => {
                let d_entropy = d_entropy.map_or_else(
                    || vec![0.0; dz.dim().0],
                    |c| c.iter().map(|c| c.as_f64()).collect(),
                );
                let g = released::draw_vjp(log_sigma, raw.view(), noise, dz, &d_entropy);
                gradients(g.mu, g.log_sigma, Some(g.factor), g.eps)
            }
        })
    }
}

/// `[1 or B, d, M, M]` as one stack of factors.
fn stack<T: Real>(factor: &Array4<T>) -> Array3<T> {
    let (n, d, m, _) = factor.dim();
    factor
        .to_shape((n * d, m, m))
        .expect("the same number of elements")
        .into_owned()
}

fn unstack<T: Real>(stack: Array3<T>, like: &Array4<T>) -> Array4<T> {
    stack
        .into_shape_with_order(like.raw_dim())
        .expect("the same factors")
}
