//! What the mechanisms without parameters share: a similarity in closed form and a magnitude.

use crate::attend::{Saved, attend_saving, weights};
#[cfg(feature = "conformance")]
use crate::conformance::{Conformance, Pair, Reference};
use crate::error::Error;
use crate::mechanism::{Cotangents, Forward, Gradients, Inspection, Mechanism, Pass, Streams};
use crate::{Card, Cost, Form, Mask, Settings, Support};
use bochner_numerics::{Real, argument};
use bochner_spectral::{ParameterSpec, Size};
#[cfg(feature = "conformance")]
use ndarray::ArrayView1;
use rand::RngCore;
use std::fmt::Debug;
use std::marker::PhantomData;

/// What Table 1 states for a similarity in closed form.
pub(super) const COST: Option<Cost> = Some(Cost(&[[2, 1, 0, 0], [1, 2, 0, 0]]));

/// A mechanism by its settings: everything else follows.
pub(super) trait Closed: Clone + Debug + Default + Send + Sync + 'static {
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

/// The forward pass, marked with the mechanism it is one of.
struct Marked<T, C> {
    saved: Saved<T>,
    mechanism: PhantomData<C>,
}

fn settings<T: Real>(row: &impl Closed, mask: &Mask, pass: &Pass) -> Result<Settings<T>, Error> {
    Ok(Settings {
        dropout: pass.weight_dropout()?,
        form: Form::Quadratic,
        ..row.settings(mask)
    })
}

pub(super) fn no_parameters<T>(flat: &[T]) -> Result<(), Error> {
    Ok(argument::shape("parameters", &[0], &[flat.len()])?)
}

impl<T: Real, C: Closed> Mechanism<T> for C {
    fn card(&self) -> Card {
        Card {
            shared_keys: Support::Yes,
            ..C::CARD
        }
    }

    fn validate(&self) -> Result<(), Error> {
        self.check()
    }

    fn parameters(&self, _: Size) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn initial(&self, _: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        self.check()?;
        Ok(Vec::new())
    }

    fn forward(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        no_parameters(flat)?;
        let settings = settings(self, inputs.mask, pass)?;
        let [q, k, v] = inputs.get()?;
        let (output, saved) = attend_saving(q, k, v, &settings)?;
        let marked = Marked {
            saved,
            mechanism: PhantomData::<C>,
        };
        Ok(Forward::unpenalised(output, marked))
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        _: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let Marked { saved, .. } = forward.saved::<Marked<T, C>>(C::CARD.name)?;
        saved.check(inputs.mask, pass.weight_dropout()?)?;
        let [q, k, v] = inputs.get()?;
        let g = saved.vjp([q, k, v], forward.output.view(), cotangent.output)?;
        Ok(Gradients {
            streams: vec![g.q, g.k, g.v],
            parameters: Vec::new(),
        })
    }

    fn settings(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Settings<T>, Error> {
        self.check()?;
        no_parameters(flat)?;
        settings(self, inputs.mask, pass)
    }

    fn inspect(&self, inputs: &Streams<T>, _: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        let [q, k, _] = inputs.get()?;
        Ok(Inspection {
            weights: weights(q, k, &settings(self, inputs.mask, pass)?)?,
            points: None,
            correlation: None,
        })
    }
}
