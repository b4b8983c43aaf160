//! What the mechanisms share that are [`attend`](crate::attend()) by some settings.

use super::squared::shown;
use crate::attend::{AttentionGradients, Saved, attend_saving, weights};
use crate::error::Error;
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inspection, Mechanism, Pass, Streams, Variant,
};
use crate::score::PointsGradients;
use crate::{Card, Form, Settings};
use bochner_numerics::{Real, argument};
use bochner_spectral::{ParameterSpec, Size};
use ndarray::{Array4, ArrayView4};
use rand::RngCore;
use std::fmt::Debug;

/// A mechanism that is [`attend`] with settings computed from its own parameters.
///
/// The passes, the inspection and the decoder follow.
pub(super) trait BySettings:
    Clone + Debug + PartialEq + Into<Variant> + Send + Sync + 'static
{
    /// [`Mechanism::card`].
    fn card(&self) -> Card;

    /// [`Mechanism::validate`].
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// [`Mechanism::parameters`].
    fn specs(&self, _: Size) -> Vec<ParameterSpec> {
        Vec::new()
    }

    /// [`Mechanism::initial`], of settings that have been checked.
    fn start<T: Real>(&self, _: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Ok(Vec::new())
    }

    /// The settings of a pass, to which mask, bias and dropout on the weights are added. The inputs are those
    /// that the card admits, and there are as many parameters as there should be.
    fn settings<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Settings<T>, Error>;

    /// The gradient of the parameters, given that of the kernel's own points.
    fn along_parameters<T: Real>(&self, _: Option<PointsGradients<T>>) -> Vec<T> {
        Vec::new()
    }

    /// The spectral points that an inspection shows, one set or two, if there are any.
    fn sets<T: Real>(&self, _: &Streams<T>, _: &[T]) -> Result<Vec<Array4<T>>, Error> {
        Ok(Vec::new())
    }

    /// The number of points, if there are any.
    fn points_mut(&mut self) -> Option<&mut usize> {
        None
    }

    /// The form, if there is a choice.
    fn form_mut(&mut self) -> Option<&mut Form> {
        None
    }

    /// [`Mechanism::at_step`].
    fn at_step(&self, _step: u64) -> Option<Self> {
        None
    }
}

/// The forward pass, and the settings of the mechanism that it is one of.
struct OwnSaved<T, C> {
    by: C,
    saved: Saved<T>,
}

/// The settings of a pass.
fn checked<T: Real>(
    by: &impl BySettings,
    inputs: &Streams<T>,
    flat: &[T],
    pass: &Pass,
) -> Result<Settings<T>, Error> {
    by.check()?;
    by.card().admit(inputs)?;
    let specs = by.specs(inputs.size());
    let count = specs.iter().map(ParameterSpec::count).sum();
    argument::shape("parameters", &[count], &[flat.len()])?;
    inputs.complete(by.settings(inputs, flat, pass)?, pass)
}

impl<'a, T: Real> Streams<'a, T> {
    /// Settings with the mask, the bias and the dropout of a pass.
    pub(super) fn complete(
        &self,
        settings: Settings<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        Ok(Settings {
            mask: self.mask.clone(),
            bias: self.bias.cloned(),
            dropout: pass.weight_dropout()?,
            ..settings
        })
    }

    /// Attention from the queries to keys and values.
    pub(super) fn attend(&self, settings: &Settings<T>) -> Result<(Array4<T>, Saved<T>), Error> {
        let [q, k, v] = self.get()?;
        attend_saving(q, k, v, settings)
    }

    /// The vector-Jacobian product of [`Streams::attend`].
    pub(super) fn attend_vjp(
        &self,
        saved: &Saved<T>,
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> Result<AttentionGradients<T>, Error> {
        saved.check(self.mask, self.bias)?;
        saved.vjp(self.get()?, output, cotangent)
    }

    /// The weights of [`Streams::attend`].
    pub(super) fn weights(&self, settings: &Settings<T>) -> Result<Array4<T>, Error> {
        let [q, k, _] = self.get()?;
        weights(q, k, settings)
    }
}

impl<T: Real, C: BySettings> Mechanism<T> for C {
    fn card(&self) -> Card {
        BySettings::card(self)
    }

    fn validate(&self) -> Result<(), Error> {
        self.check()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        self.specs(size)
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        self.check()?;
        self.start(size, rng)
    }

    fn forward(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        let (output, saved) = inputs.attend(&checked(self, inputs, flat, pass)?)?;
        let (of, by) = (inputs.fingerprint(flat, pass), self.clone());
        Ok(Forward::unpenalised(of, output, OwnSaved { by, saved }))
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let mechanism = BySettings::card(self).name;
        let of = inputs.fingerprint(flat, pass);
        let OwnSaved { by, saved } = forward.saved::<OwnSaved<T, C>>(of, mechanism)?;
        if by != self {
            return Err(Error::ForeignForward { mechanism });
        }
        let g = inputs.attend_vjp(saved, forward.output.view(), cotangent.output)?;
        Ok(Gradients {
            streams: vec![g.q, g.k, g.v],
            parameters: self.along_parameters(g.points),
            bias: g.bias,
        })
    }

    fn with_points(&self, points: usize) -> Result<Variant, Error> {
        let mut own = self.clone();
        *own.points_mut().ok_or(super::NO_POINTS)? = points;
        Ok(own.into())
    }

    fn with_form(&self, form: Form) -> Result<Variant, Error> {
        let mut own = self.clone();
        let place = own.form_mut();
        *place.ok_or_else(|| super::no_forms(&BySettings::card(self)))? = form;
        Ok(own.into())
    }

    fn at_step(&self, step: u64) -> Option<Variant> {
        BySettings::at_step(self, step).map(Into::into)
    }

    fn settings(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Settings<T>, Error> {
        checked(self, inputs, flat, pass)
    }

    fn inspect(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let weights = inputs.weights(&checked(self, inputs, flat, pass)?)?;
        let sets = self.sets(inputs, flat)?;
        Ok(Inspection {
            points: (!sets.is_empty()).then(|| shown(&sets)),
            ..Inspection::of(weights)
        })
    }
}
