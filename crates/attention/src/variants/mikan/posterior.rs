//! Where the latent's mean and spread come from.

use super::Mikan;
use super::bounds::Bounds;
use super::networks::{self, INFERENCE, NamedArrays};
use crate::error::Error;
use crate::mechanism::{Inputs, Named, ParameterSpec, Size};
use bochner_numerics::Real;
use bochner_spectral::{Inferred, InferredCotangents, MeanField, UnconditionalPosterior};
use ndarray::{Array2, Array3, Array4, ArrayView3, Ix2};
use serde::{Deserialize, Serialize};

/// Where $\mu$ and $\log\sigma$ of the latent come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Posterior {
    /// From the means of queries and keys over the kept positions, by an inference network. No
    /// causal mask: those means would show every row its future.
    #[default]
    Inferred,
    /// From nothing: they are parameters `[M, d]`, the same for every example.
    Unconditional,
}

/// Names of the unconditional posterior's parameters.
pub(super) const UNCONDITIONAL: [&str; 2] = ["posterior.mu", "posterior.log_sigma"];

impl Posterior {
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn specs(self, Size { heads, width }: Size) -> Vec<ParameterSpec> {
        match self {
            Self::Inferred => networks::specs(INFERENCE, 2 * width, width),
            Self::Unconditional => UNCONDITIONAL
                .map(|name| ParameterSpec::new(name, &[heads, width]))
                .into(),
        }
    }
}

/// The posterior of every example, held within its bounds.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) posterior: MeanField<T>,
    /// What the inference network says, if there is one.
    pub(super) inferred: Option<Inferred<T>>,
}

impl<T: Real> Found<T> {
    /// The inference network's hidden layer.
    ///
    /// # Panics
    /// Without an inference network: what reads it is refused with one missing.
    pub(super) fn hidden(&self) -> ArrayView3<'_, T> {
        let inferred = self.inferred.as_ref();
        inferred
            .expect("validated: there is a network")
            .hidden
            .view()
    }
}

/// Gradients of inputs that a posterior was read from.
pub(super) struct InputGradients<T> {
    pub(super) q: Array4<T>,
    pub(super) k: Array4<T>,
}

impl Mikan {
    pub(super) fn posterior<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
    ) -> Result<Found<T>, Error> {
        let (mut posterior, inferred) = match self.posterior {
            Posterior::Unconditional => (unconditional(named).infer(inputs.q.dim().0)?, None),
            Posterior::Inferred => {
                let kept = Kept::of(inputs);
                let inferred = networks::inference(named, self.slope, self.prior_std).infer(
                    inputs.q,
                    inputs.k,
                    kept.queries.as_ref().map(|kept| kept.view()),
                    kept.keys.as_ref().map(|kept| kept.view()),
                )?;
                let posterior = MeanField {
                    mu: inferred.mu.clone(),
                    log_sigma: inferred.log_sigma.clone(),
                };
                (posterior, Some(inferred))
            }
        };
        Bounds::around(self.prior_std).hold(&mut posterior);
        Ok(Found {
            posterior,
            inferred,
        })
    }

    /// The vector-Jacobian product of [`Mikan::posterior`]; `hidden` is the cotangent of the
    /// inference network's hidden layer.
    pub(super) fn posterior_vjp<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
        found: &Found<T>,
        mut cotangent: MeanField<T>,
        hidden: Option<Array3<T>>,
        parameters: &mut NamedArrays<T>,
    ) -> Result<InputGradients<T>, Error> {
        Bounds::around(self.prior_std).release(&found.posterior, &mut cotangent);
        let (mu, log_sigma) = (cotangent.mu.view(), cotangent.log_sigma.view());
        let Some(inferred) = &found.inferred else {
            let g = unconditional(named).infer_vjp(mu, log_sigma)?;
            parameters.push(UNCONDITIONAL[0], g.mu);
            parameters.push(UNCONDITIONAL[1], g.log_sigma);
            return Ok(InputGradients {
                q: Array4::zeros(inputs.q.raw_dim()),
                k: Array4::zeros(inputs.k.raw_dim()),
            });
        };
        let kept = Kept::of(inputs);
        let g = networks::inference(named, self.slope, self.prior_std).infer_vjp(
            inputs.q,
            inputs.k,
            kept.queries.as_ref().map(|kept| kept.view()),
            kept.keys.as_ref().map(|kept| kept.view()),
            inferred,
            &InferredCotangents {
                hidden: hidden.as_ref().map(|hidden| hidden.view()),
                mu,
                log_sigma,
            },
        )?;
        parameters.push_layers(INFERENCE, [g.w1, g.w2, g.w3], [g.b1, g.b2, g.b3]);
        Ok(InputGradients { q: g.q, k: g.k })
    }
}

fn unconditional<'a, T: Real>(named: &Named<'a, T>) -> UnconditionalPosterior<'a, T> {
    let [mu, log_sigma] = UNCONDITIONAL.map(|name| named.get::<Ix2>(name));
    UnconditionalPosterior { mu, log_sigma }
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
