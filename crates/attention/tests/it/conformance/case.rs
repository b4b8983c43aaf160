//! A mechanism as the properties see it.

use crate::conformance::common::*;
use bochner_attention::{
    Cotangents, Error, Forward, Gradients, Inputs, Magnitude, Mask, Mechanism, Mikan, Pass,
    Posterior, Variant,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array3, Array4};
use serde_json::json;

/// A mechanism with parameters in general position, and what the properties must know of it.
pub(crate) struct Case<T: Real> {
    pub(crate) name: String,
    pub(crate) parameters: Vec<T>,
    mechanism: Source<T>,
    traits: Traits,
}

/// Where a mechanism comes from.
pub(crate) enum Source<T: Real> {
    Registry(Variant),
    /// Written for these tests.
    Test(Box<dyn Mechanism<T>>),
    TestLatent(Box<dyn Latent<T>>),
}

/// A mechanism whose spectral points are drawn from given noise, looked into.
pub(crate) trait Latent<T: Real>: Mechanism<T> {
    /// The draw from the noise `eps: [B, M, R, d]`.
    fn drawn(&self, inputs: &Inputs<T>, parameters: &[T], eps: &Array4<T>) -> Drawn<T>;
}

/// One draw of the latent.
pub(crate) struct Drawn<T> {
    pub(crate) mu: Array3<T>,
    pub(crate) log_sigma: Array3<T>,
    /// The normalised factors, `[1 or B, d, M, M]`.
    pub(crate) factor: Option<Array4<T>>,
    pub(crate) z: Array4<T>,
    pub(crate) penalty: Array1<T>,
    pub(crate) prior_std: f64,
    pub(crate) beta: f64,
}

impl<T: Real> Latent<T> for Mikan {
    fn drawn(&self, inputs: &Inputs<T>, parameters: &[T], eps: &Array4<T>) -> Drawn<T> {
        let forward = self
            .forward_with(inputs, parameters, &EVALUATION, eps.clone())
            .unwrap();
        let drawn = self.draw_of(&forward).unwrap();
        let latent = drawn.latent.as_ref().unwrap();
        Drawn {
            mu: latent.posterior().mu.clone(),
            log_sigma: latent.posterior().log_sigma.clone(),
            factor: latent.factor().cloned(),
            z: latent.z.clone(),
            penalty: forward.penalty.clone(),
            prior_std: self.prior_std,
            beta: self.beta,
        }
    }
}

/// What a mechanism's interface does not tell.
pub(crate) struct Traits {
    /// Spectral points are drawn.
    pub(crate) latent: bool,
    /// The draw depends on the sequence.
    pub(crate) inferred: bool,
    /// Evaluation averages over several draws.
    pub(crate) averaged: bool,
    /// It follows the authors' released code.
    pub(crate) released: bool,
    pub(crate) formula: Formula,
}

/// What the weights are, given the points.
#[derive(Clone, Copy)]
pub(crate) struct Formula {
    pub(crate) kernel: Kernel,
    pub(crate) magnitude: Magnitude,
}

#[derive(Clone, Copy)]
pub(crate) enum Kernel {
    Rbf,
    Expsin { period: f64 },
    Linear,
    Squared { floor: f64 },
}

impl Formula {
    fn of(variant: &Variant) -> Self {
        let settings = serde_json::to_value(variant).unwrap();
        let number = |key: &str| settings[key].as_f64();
        let p = number("p").unwrap_or(2.0);
        Self {
            kernel: match (variant.name(), number("floor")) {
                (_, Some(floor)) => Kernel::Squared { floor },
                ("expsin", _) => Kernel::Expsin {
                    period: number("period").unwrap(),
                },
                ("linear", _) => Kernel::Linear,
                _ => Kernel::Rbf,
            },
            magnitude: match settings["preset"].as_str() {
                Some("released") => Magnitude::Released { p },
                _ if variant.name() == "rbf-only" => Magnitude::None,
                _ => Magnitude::Norm { p },
            },
        }
    }
}

impl Traits {
    pub(crate) fn of(variant: &Variant) -> Self {
        let latent = match variant {
            Variant::Mikan(mikan) => Some(mikan),
            _ => None,
        };
        let settings = serde_json::to_value(variant).unwrap();
        Self {
            latent: latent.is_some(),
            inferred: latent.is_some_and(|mikan| mikan.posterior == Posterior::Inferred),
            averaged: latent.is_some_and(|mikan| mikan.draws > 1),
            released: settings.get("preset") == Some(&json!("released")),
            formula: Formula::of(variant),
        }
    }
}

impl<T: Real> Case<T> {
    pub(crate) fn of(variant: Variant) -> Self {
        let (name, traits) = (
            serde_json::to_string(&variant).unwrap(),
            Traits::of(&variant),
        );
        Self::new(name, Source::Registry(variant), traits)
    }

    pub(crate) fn new(name: String, mechanism: Source<T>, traits: Traits) -> Self {
        let mut case = Self {
            name,
            parameters: Vec::new(),
            mechanism,
            traits,
        };
        let mut rng = Seed::new(8).stream("initial values");
        case.parameters = case.mechanism().initial(size(), &mut rng).unwrap();
        let shift = random::<T, _>(case.parameters.len(), "shift");
        for (x, shift) in case.parameters.iter_mut().zip(shift) {
            *x += shift * T::of(0.18);
        }
        case
    }

    pub(crate) fn mechanism(&self) -> &dyn Mechanism<T> {
        match &self.mechanism {
            Source::Registry(variant) => variant.mechanism(),
            Source::Test(mechanism) => mechanism.as_ref(),
            Source::TestLatent(mechanism) => mechanism.as_ref(),
        }
    }

    /// The mechanism, if its points are drawn.
    pub(crate) fn latent(&self) -> Option<&dyn Latent<T>> {
        match &self.mechanism {
            Source::Registry(Variant::Mikan(mikan)) => Some(mikan),
            Source::TestLatent(mechanism) => Some(mechanism.as_ref()),
            _ => None,
        }
    }

    pub(crate) fn forward(
        &self,
        example: &Example<T>,
        mask: &Mask,
        pass: &Pass,
    ) -> Result<Forward<T>, Error> {
        self.mechanism()
            .forward(&example.inputs(mask), &self.parameters, pass)
    }

    pub(crate) fn output(&self, example: &Example<T>, mask: &Mask, pass: &Pass) -> Array4<T> {
        self.forward(example, mask, pass).unwrap().output
    }

    /// Gradients of the loss that [`loss`] computes.
    pub(crate) fn gradients(&self, example: &Example<T>, mask: &Mask, pass: &Pass) -> Gradients<T> {
        let forward = self.forward(example, mask, pass).unwrap();
        let (output, penalty) = cotangents(&forward);
        self.pull_back(example, mask, pass, &forward, &output, &penalty)
    }

    pub(crate) fn pull_back(
        &self,
        example: &Example<T>,
        mask: &Mask,
        pass: &Pass,
        forward: &Forward<T>,
        output: &Array4<T>,
        penalty: &Array1<T>,
    ) -> Gradients<T> {
        let cotangents = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let inputs = example.inputs(mask);
        self.mechanism()
            .backward(&inputs, &self.parameters, pass, forward, cotangents)
            .unwrap()
    }

    pub(crate) fn weights(&self, example: &Example<T>, mask: &Mask, pass: &Pass) -> Array4<T> {
        let inputs = example.inputs(mask);
        self.mechanism()
            .inspect(&inputs, &self.parameters, pass)
            .unwrap()
            .weights
    }

    pub(crate) fn is_latent(&self) -> bool {
        self.traits.latent
    }

    pub(crate) fn is_inferred(&self) -> bool {
        self.traits.inferred
    }

    pub(crate) fn is_averaged(&self) -> bool {
        self.traits.averaged
    }

    pub(crate) fn is_released(&self) -> bool {
        self.traits.released
    }

    pub(crate) fn formula(&self) -> Formula {
        self.traits.formula
    }

    /// Whether the mechanism can work with the mask at all.
    pub(crate) fn takes(&self, mask: &Mask) -> bool {
        !(self.is_inferred() && mask.is_causal())
    }

    /// Calls `check` with every mask that the mechanism takes.
    pub(crate) fn with_every_mask(
        &self,
        queries: usize,
        keys: usize,
        check: impl Fn(&Self, &Example<T>, &Mask, &str),
    ) {
        let example = Example::new(queries, keys);
        for (name, mask) in masks(queries, keys) {
            if self.takes(&mask) {
                let label = format!("{}, mask: {name}", self.name);
                check(self, &example, &mask, &label);
            }
        }
    }
}
