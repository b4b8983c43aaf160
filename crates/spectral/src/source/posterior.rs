//! The posterior of the latent: its mean and spread.

use super::bounds::Bounds;
use super::implicit::{INFERENCE, affine, network_specs, push_affine};
use super::parameters::{Named, NamedGradients};
use super::{Implicit, ParameterSpec, Size};
use crate::{
    Error, Features, InferenceNetwork, Inferred, InferredCotangents, MeanField,
    UnconditionalPosterior,
};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayView3, Ix2};
use serde::{Deserialize, Serialize};

/// The source of the latent's $\mu$ and $\log\sigma$.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Posterior {
    /// Inferred from the means of queries and keys over the kept positions, by an inference network. These means would
    /// show the future to every position under a causal mask.
    #[default]
    Inferred,
    /// Parameters `[M, d]`, the same for every example.
    Unconditional,
}

/// Names of the unconditional posterior's parameters.
pub(super) const UNCONDITIONAL: [&str; 2] = ["posterior.mu", "posterior.log_sigma"];

impl Posterior {
    pub(super) fn specs(self, Size { heads, width }: Size) -> Vec<ParameterSpec> {
        match self {
            Self::Inferred => network_specs(INFERENCE, 2 * width, width),
            Self::Unconditional => UNCONDITIONAL
                .map(|name| ParameterSpec::new(name, &[heads, width]))
                .into(),
        }
    }
}

/// The posterior of every example, held within its bounds.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub(super) posterior: MeanField<T>,
    /// The output of the inference network, if there is one.
    inferred: Option<Inferred<T>>,
}

impl<T: Real> Found<T> {
    /// The inference network's hidden layer.
    ///
    /// # Panics
    /// Without an inference network: settings that read the layer without one are refused.
    pub(super) fn hidden(&self) -> ArrayView3<'_, T> {
        let inferred = self.inferred.as_ref();
        inferred
            .expect("validated: there is a network")
            .hidden
            .view()
    }
}

impl Implicit {
    pub(super) fn find<T: Real>(
        &self,
        features: &Features<T>,
        named: &Named<T>,
    ) -> Result<Found<T>, Error> {
        let (mut posterior, inferred) = match self.posterior {
            Posterior::Unconditional => (unconditional(named).infer(features.q.dim().0)?, None),
            Posterior::Inferred => {
                let inferred = self.inference(named).infer(features)?;
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

    /// The vector-Jacobian product of [`Implicit::find`]: the gradients along queries and keys. `hidden`
    /// is the cotangent of the inference network's hidden layer.
    pub(super) fn find_vjp<T: Real>(
        &self,
        features: &Features<T>,
        named: &Named<T>,
        found: &Found<T>,
        mut cotangent: MeanField<T>,
        hidden: Option<Array3<T>>,
        parameters: &mut NamedGradients<T>,
    ) -> Result<[Array4<T>; 2], Error> {
        Bounds::around(self.prior_std).release(&found.posterior, &mut cotangent);
        let (mu, log_sigma) = (cotangent.mu.view(), cotangent.log_sigma.view());
        let Some(inferred) = &found.inferred else {
            let g = unconditional(named).infer_vjp(mu, log_sigma)?;
            parameters.push(UNCONDITIONAL[0], g.mu);
            parameters.push(UNCONDITIONAL[1], g.log_sigma);
            return Ok([features.q, features.k].map(|x| Array4::zeros(x.raw_dim())));
        };
        let cotangents = InferredCotangents {
            hidden: hidden.as_ref().map(|hidden| hidden.view()),
            mu,
            log_sigma,
        };
        let network = self.inference(named);
        let g = network.infer_vjp(features, inferred, &cotangents)?;
        for (n, layer) in [g.hidden, g.mu, g.log_sigma].into_iter().enumerate() {
            push_affine(parameters, INFERENCE, n, layer);
        }
        Ok([g.q, g.k])
    }

    fn inference<'a, T: Real>(&self, named: &Named<'a, T>) -> InferenceNetwork<'a, T> {
        let [hidden, mu, log_sigma] = [0, 1, 2].map(|n| affine(named, INFERENCE, n));
        InferenceNetwork {
            hidden,
            mu,
            log_sigma,
            slope: T::of(self.slope),
            prior_std: T::of(self.prior_std),
        }
    }
}

fn unconditional<'a, T: Real>(named: &Named<'a, T>) -> UnconditionalPosterior<'a, T> {
    let [mu, log_sigma] = UNCONDITIONAL.map(|name| named.get::<Ix2>(name));
    UnconditionalPosterior { mu, log_sigma }
}
