//! What the mechanisms without parameters share: a similarity in closed form and a magnitude.

use crate::attend::{State, attend, weights};
use crate::error::Error;
use crate::mechanism::Described;
use crate::mechanism::{Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Pass};
use crate::{Form, Magnitude, Mask, OwnedSettings, Settings, Similarity};
use bochner_numerics::Real;
use bochner_spectral::{ParameterSpec, Size};
use rand::RngCore;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A row of the table: everything else follows.
pub(crate) trait Closed: Described + Debug + Send + Sync + 'static {
    fn similarity<'a, T>(&self) -> Similarity<'a, T>;

    fn magnitude(&self) -> Magnitude {
        Magnitude::Norm { p: 2.0 }
    }

    /// Checks the settings, if there are any.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// The forward pass, marked with the mechanism it is one of.
struct Saved<T, C> {
    state: State<T>,
    mechanism: PhantomData<C>,
}

fn settings<'a, T: Real>(
    row: &impl Closed,
    mask: &'a Mask,
    pass: &Pass,
) -> Result<Settings<'a, T>, Error> {
    Ok(Settings {
        similarity: row.similarity(),
        magnitude: row.magnitude(),
        mask,
        dropout: pass.weight_dropout()?,
        form: Form::Quadratic,
    })
}

fn no_parameters<T, C: Closed>(flat: &[T]) -> Result<(), Error> {
    if flat.is_empty() {
        return Ok(());
    }
    Err(Error::ParameterCount {
        mechanism: C::NAME,
        expected: 0,
        got: flat.len(),
    })
}

impl<T: Real, C: Closed> Mechanism<T> for C {
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

    fn forward(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        no_parameters::<T, C>(flat)?;
        let settings = settings(self, inputs.mask, pass)?;
        let attended = attend(inputs.q, inputs.k, inputs.v, &settings)?;
        let saved = Saved {
            state: attended.state,
            mechanism: PhantomData::<C>,
        };
        Ok(Forward::unpenalised(attended.output, saved))
    }

    fn backward(
        &self,
        inputs: &Inputs<T>,
        _: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let Saved { state, .. } = forward.saved::<Saved<T, C>>(C::NAME)?;
        let settings = settings(self, inputs.mask, pass)?;
        let Inputs { q, k, v, .. } = *inputs;
        let output = forward.output.view();
        let g = state.pull_back(q, k, v, &settings, output, cotangent.output)?;
        Ok(Gradients {
            q: g.q,
            k: g.k,
            v: g.v,
            parameters: Vec::new(),
        })
    }

    fn is_deterministic(&self) -> bool {
        true
    }

    fn settings(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<OwnedSettings<T>, Error> {
        self.check()?;
        no_parameters::<T, C>(flat)?;
        Ok(OwnedSettings::new(&settings(self, inputs.mask, pass)?))
    }

    fn inspect(&self, inputs: &Inputs<T>, _: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        Ok(Inspection {
            weights: weights(inputs.q, inputs.k, &settings(self, inputs.mask, pass)?)?,
            points: None,
            correlation: None,
        })
    }
}
