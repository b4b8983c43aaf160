//! A mechanism as the properties see it.

use crate::conformance::common::*;
use crate::conformance::reference::{self, Reference};
use bochner_attention::{
    Bias, Card, Error, Mask, Mechanism, Pass, Support, Variant,
    card::{Draws, Stream},
    mechanism::{Cotangents, Forward, Gradients, Streams},
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array4};

/// A mechanism with parameters in general position.
pub(crate) struct Case<T: Real> {
    pub(crate) name: String,
    pub(crate) card: Card,
    pub(crate) parameters: Vec<T>,
    pub(crate) variant: Variant,
}

impl<T: Real> Case<T> {
    pub(crate) fn of(variant: Variant) -> Self {
        let mut case = Self {
            name: format!("{variant:?}"),
            card: Card::PAIRWISE,
            parameters: Vec::new(),
            variant,
        };
        case.card = case.mechanism().card();
        let mut rng = Seed::new(8).stream("initial values");
        case.parameters = case.mechanism().initial(size(), &mut rng).unwrap();
        let shift = random::<T, _>(case.parameters.len(), "shift");
        for (x, shift) in case.parameters.iter_mut().zip(shift) {
            *x += shift * T::of(0.18);
        }
        case
    }

    pub(crate) fn mechanism(&self) -> &dyn Mechanism<T> {
        self.variant.mechanism()
    }

    /// Returns the streams that the mechanism takes.
    pub(crate) fn inputs<'a>(&self, example: &'a Example<T>, mask: &'a Mask) -> Streams<'a, T> {
        example.streams(&self.card, mask)
    }

    pub(crate) fn forward(
        &self,
        example: &Example<T>,
        mask: &Mask,
        pass: &Pass,
    ) -> Result<Forward<T>, Error> {
        let (inputs, pass) = (self.inputs(example, mask), pass.for_card(&self.card));
        self.mechanism().forward(&inputs, &self.parameters, &pass)
    }

    pub(crate) fn output(&self, example: &Example<T>, mask: &Mask, pass: &Pass) -> Array4<T> {
        self.forward(example, mask, pass)
            .unwrap()
            .output
            .into_owned()
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
        let (inputs, pass) = (self.inputs(example, mask), pass.for_card(&self.card));
        let own = (self.mechanism())
            .backward(&inputs, &self.parameters, &pass, forward, cotangents)
            .unwrap();
        example.gradients(&self.card, own)
    }

    /// The weights of a mechanism that shows them.
    pub(crate) fn weights(
        &self,
        example: &Example<T>,
        mask: &Mask,
        pass: &Pass,
    ) -> Option<Array4<T>> {
        self.card.weights.is_yes().then(|| {
            let inputs = self.inputs(example, mask);
            let shown = self.mechanism().inspect(&inputs, &self.parameters, pass);
            shown.unwrap().weights
        })
    }

    /// Queries, keys and values of such lengths; as many queries as keys for a mechanism that attends
    /// to its own sequence alone.
    pub(crate) fn example(&self, queries: usize, keys: usize) -> Example<T> {
        match self.card.cross {
            Support::Yes => Example::new(queries, keys),
            Support::No { .. } => Example::new(keys, keys),
        }
    }

    /// Whether row `i` of example `b` is one: a mechanism that attends to its own sequence alone has no rows beyond
    /// the sequence's length.
    pub(crate) fn is_row(&self, b: usize, i: usize, mask: &Mask, keys: usize) -> bool {
        let last = keys - 1;
        self.card.cross.is_yes() || mask.keeps([b, 0, last, i], [keys, keys])
    }

    /// Whether every row may depend on the whole sequence, whatever a matrix hides from it.
    pub(crate) fn sees_everything(&self) -> bool {
        !self.card.causal.is_yes()
    }

    /// Whether weights belong to pairs, of which dropout takes some.
    pub(crate) fn has_pairs(&self) -> bool {
        self.card.streams.contains(&Stream::Keys) && self.card.weights.is_yes()
    }

    /// Whether spectral points are drawn in every pass.
    pub(crate) fn is_latent(&self) -> bool {
        let draws = self.card.draws;
        matches!(draws, Draws::InEveryPass | Draws::InEveryPassAnew)
    }

    /// Calls `check` with every mask that the mechanism takes.
    pub(crate) fn with_every_mask(
        &self,
        queries: usize,
        keys: usize,
        check: impl Fn(&Self, &Example<T>, &Mask, &str),
    ) {
        let example = self.example(queries, keys);
        for (name, mask) in masks(example.q.dim().2, keys) {
            if self.card.takes(&mask) {
                let label = format!("{}, mask: {name}", self.name);
                check(self, &example, &mask, &label);
            }
        }
    }
}

impl Case<f64> {
    /// Returns the result of the plain formula.
    pub(crate) fn reference(&self, example: &Example<f64>, mask: &Mask, pass: &Pass) -> Reference {
        self.reference_with(example, mask, pass, None)
    }

    pub(crate) fn reference_with(
        &self,
        example: &Example<f64>,
        mask: &Mask,
        pass: &Pass,
        bias: Option<&Bias<f64>>,
    ) -> Reference {
        let inputs = self.inputs(example, mask).with_bias(bias);
        let pass = &pass.for_card(&self.card);
        reference::reference(&self.variant, &inputs, &self.parameters, pass).unwrap()
    }
}
