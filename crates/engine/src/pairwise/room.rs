//! Memory of the backward pass.

use bochner_numerics::Real;

/// Room for the pairs of a block.
#[derive(Default)]
pub(crate) struct Scratch<T> {
    /// Raw scores, then their gradients.
    x: Vec<T>,
    /// Gradients along the weights, then the weights after dropout.
    weights: Vec<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn pairs(&mut self, count: usize) -> (&mut [T], &mut [T]) {
        for room in [&mut self.x, &mut self.weights] {
            if room.len() < count {
                room.resize(count, T::zero());
            }
        }
        (&mut self.x[..count], &mut self.weights[..count])
    }
}

/// Room for the pairs of a stripe.
#[derive(Default)]
pub(super) struct Room<T> {
    pub(super) scores: Vec<T>,
    pub(super) terms: Vec<T>,
    /// The slopes along each parameter.
    pub(super) parameters: Vec<T>,
    pub(super) deltas: Vec<T>,
    pub(super) dropout: Vec<T>,
}

impl<T: Real> Room<T> {
    pub(super) fn make(&mut self, pairs: usize, parameters: usize, scores: bool, terms: bool) {
        self.parameters.resize(parameters * pairs, T::zero());
        self.scores
            .resize(if scores { pairs } else { 0 }, T::zero());
        self.terms.resize(if terms { pairs } else { 0 }, T::zero());
    }
}
