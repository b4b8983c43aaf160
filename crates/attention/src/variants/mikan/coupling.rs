//! How independent noise becomes latent draws that depend on each other over the heads.

use crate::Error;
use crate::variants::released;
use crate::variants::squared::Preset;
use bochner_copula as copula;
use bochner_numerics::Real;
use bochner_spectral::{reparameterise, reparameterise_vjp};
use ndarray::{Array1, Array3, Array4, ArrayView1, ArrayView3, ArrayView4};

/// What couples the heads, kept between the passes.
#[derive(Debug)]
pub(super) enum Coupling<T> {
    /// Nothing.
    Independent,
    /// A Gaussian copula; factors before and after normalisation, `[1 or B, d, M, M]`.
    Joint { raw: Array4<T>, factor: Array4<T> },
    /// What the released code does instead: the factor scales each head's own noise.
    Released { raw: Array4<T>, entropy: Vec<f64> },
}

/// Gradients of a draw.
pub(super) struct Posterior<T> {
    pub(super) mu: Array3<T>,
    pub(super) log_sigma: Array3<T>,
    pub(super) raw_factor: Option<Array4<T>>,
    pub(super) eps: Array4<T>,
}

impl<T: Real> Coupling<T> {
    /// Latent draws, `[B, M, R, d]`, and what they were coupled by.
    pub(super) fn draw(
        preset: Preset,
        raw_factor: Option<Array4<T>>,
        mu: ArrayView3<T>,
        log_sigma: ArrayView3<T>,
        eps: ArrayView4<T>,
    ) -> Result<(Self, Array4<T>), Error> {
        Ok(match (preset, raw_factor) {
            (_, None) => (Self::Independent, reparameterise(mu, log_sigma, eps)?),
            (Preset::Released, Some(raw)) => {
                let drawn = released::draw(mu, log_sigma, raw.view(), eps);
                (
                    Self::Released {
                        raw,
                        entropy: drawn.entropy,
                    },
                    drawn.z,
                )
            }
            (Preset::Paper, Some(raw)) => {
                let factor = unstack(copula::normalise(stack(&raw).view())?, &raw);
                let z = copula::heads::joint_posterior(mu, log_sigma, factor.view(), eps)?.z;
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

    /// Adds the copula's part of the divergence to the mean field's.
    pub(super) fn add_dependence(&self, kl: &mut Array1<T>) -> Result<(), Error> {
        if let Self::Joint { factor, .. } = self {
            *kl += &copula::heads::dependence_kl(factor.view())?;
        }
        Ok(())
    }

    /// Adds what the released code calls the copula's entropy, of weight 1.
    pub(super) fn add_entropy(&self, penalty: &mut Array1<T>) {
        if let Self::Released { entropy, .. } = self {
            penalty
                .iter_mut()
                .zip(entropy)
                .for_each(|(sum, &h)| *sum += T::of(h));
        }
    }

    /// The vector-Jacobian product of the draw, of the copula's part of the divergence (cotangent
    /// `d_kl`) and of the released code's entropy (cotangent `d_penalty`).
    pub(super) fn draw_vjp(
        &self,
        (mu, log_sigma): (ArrayView3<T>, ArrayView3<T>),
        eps: ArrayView4<T>,
        dz: ArrayView4<T>,
        (d_kl, d_penalty): (ArrayView1<T>, ArrayView1<T>),
    ) -> Result<Posterior<T>, Error> {
        Ok(match self {
            Self::Independent => {
                let g = reparameterise_vjp(mu, log_sigma, eps, dz)?;
                Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor: None,
                    eps: g.x,
                }
            }
            Self::Joint { raw, factor } => {
                let g = copula::heads::joint_posterior_vjp(log_sigma, factor.view(), eps, dz)?;
                let shared = factor.dim().0 == 1;
                let d_kl = if shared {
                    Array1::from_elem(1, d_kl.sum())
                } else {
                    d_kl.to_owned()
                };
                let d_factor = g.lh + copula::heads::dependence_kl_vjp(factor.view(), d_kl.view())?;
                let d_raw = copula::normalise_vjp(stack(raw).view(), stack(&d_factor).view())?;
                let raw_factor = Some(unstack(d_raw, raw));
                Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor,
                    eps: g.eps,
                }
            }
            Self::Released { raw, .. } => {
                let d_entropy: Vec<f64> = d_penalty.iter().map(|c| c.as_f64()).collect();
                let g = released::draw_vjp(log_sigma, raw.view(), eps, dz, &d_entropy);
                let raw_factor = Some(g.factor);
                Posterior {
                    mu: g.mu,
                    log_sigma: g.log_sigma,
                    raw_factor,
                    eps: g.eps,
                }
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
