//! What the mechanisms without parameters share: a similarity in closed form and a magnitude.

use super::by_settings::BySettings;
#[cfg(feature = "conformance")]
use crate::conformance::{Conformance, Pair, Reference};
use crate::error::Error;
use crate::mechanism::{Pass, Streams, Variant};
use crate::{Card, Cost, Mask, Settings, Support};
use bochner_numerics::Real;
#[cfg(feature = "conformance")]
use ndarray::ArrayView1;
#[cfg(feature = "conformance")]
use rand::RngCore;
use std::fmt::Debug;

/// What the cards of closed forms have in common.
pub(super) const CARD: Card = Card {
    shared_keys: Support::Yes,
    bias: Support::Yes,
    ..Card::PAIRWISE
};

/// The cost of those closed forms that are in Table 1.
pub(super) const COST: Option<Cost> = Some(Cost(&[[2, 1, 0, 0], [1, 2, 0, 0]]));

/// A mechanism by its settings: everything else follows.
pub(super) trait Closed:
    Clone + Debug + Default + PartialEq + Into<Variant> + Send + Sync + 'static
{
    const CARD: Card;

    /// The settings without a pass's dropout.
    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T>;

    /// Checks the settings, if there are any.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The weight of a pair before normalisation, straight from the formula.
    #[cfg(feature = "conformance")]
    fn weight(&self, pair: &Pair) -> f64;

    /// What the weights of a row are divided by, straight from the formula.
    #[cfg(feature = "conformance")]
    fn denominator(&self, row: ArrayView1<f64>) -> f64 {
        row.sum()
    }

    /// The settings that tests try.
    #[cfg(feature = "conformance")]
    fn examples() -> Vec<Self> {
        vec![Self::default()]
    }

    /// Settings that must be refused, with the name of what is wrong.
    #[cfg(feature = "conformance")]
    fn refused() -> Vec<(&'static str, Self)> {
        Vec::new()
    }

    /// The settings with their numbers drawn from all that is allowed.
    #[cfg(feature = "conformance")]
    fn extreme(&self, _: &mut dyn RngCore) -> Self {
        self.clone()
    }
}

#[cfg(feature = "conformance")]
impl<C: Closed> Conformance for C {
    fn examples() -> Vec<Self> {
        C::examples()
    }

    fn refused() -> Vec<(&'static str, Self)> {
        C::refused()
    }

    fn extreme(&self, rng: &mut dyn RngCore) -> Self {
        self.extreme(rng)
    }

    fn reference(&self, inputs: &Streams<f64>, _: &[f64], pass: &Pass) -> Result<Reference, Error> {
        let dropout = pass.weight_dropout()?;
        let weight = |pair: Pair| self.weight(&pair);
        let denominator = |row: ArrayView1<f64>| self.denominator(row);
        Ok(Reference::by_quotient(inputs, dropout, weight, denominator))
    }
}

impl<C: Closed> BySettings for C {
    fn card(&self) -> Card {
        C::CARD
    }

    fn check(&self) -> Result<(), Error> {
        Closed::check(self)
    }

    fn settings<T: Real>(
        &self,
        inputs: &Streams<T>,
        _: &[T],
        _: &Pass,
    ) -> Result<Settings<T>, Error> {
        Ok(Closed::settings(self, inputs.mask))
    }
}
