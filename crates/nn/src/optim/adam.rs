//! Adam and AdamW.

use crate::parameters::try_for_each;
use crate::{Collection, Element, Error, Parameters};
use bochner_numerics::{ArgumentError, argument, parallel};
use bochner_ops::{AdamConfig, AdamRule, Moments, check_factor};
use dfdx::nn::tensor_collection::TensorCollection;
use dfdx::optim::{Optimizer, OptimizerUpdateError};
use dfdx::tensor::{Cpu, CpuError, Gradients};
use dfdx::tensor_ops::Device;
use std::collections::BTreeMap;

/// The state that [`Adam`] carries from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdamState<E> {
    /// The number of steps taken.
    pub steps: u64,
    /// The moments of each trained parameter, by name.
    pub moments: BTreeMap<String, Moments<E>>,
}

impl<E: Element> AdamState<E> {
    /// Checks that both moments of each parameter have one length, that all are finite and that no second
    /// moment is negative.
    ///
    /// # Errors
    /// [`ArgumentError`] names the parameter whose moment is NaN, infinite, or, if it is the second, negative,
    /// or whose moments differ in length.
    pub fn validate(&self) -> Result<(), ArgumentError> {
        for (name, Moments { first, second }) in &self.moments {
            let lengths = [[first.len()], [second.len()]];
            argument::shape(format!("second moment of {name}"), &lengths[0], &lengths[1])?;
            argument::finite(format!("first moment of {name}"), &[first.len()], first)?;
            let name = format!("second moment of {name}");
            argument::finite(name.clone(), &[second.len()], second)?;
            if let Some(&negative) = second.iter().find(|&&v| v < E::zero()) {
                argument::non_negative(name, negative)?;
            }
        }
        Ok(())
    }
}

/// Adam, or AdamW with [`WeightDecay::Decoupled`](bochner_ops::WeightDecay::Decoupled): [`AdamRule`] for all
/// parameters of a model.
///
/// A parameter that the backward pass did not reach has a zero gradient and is stepped like any
/// other: its moments decay, and so does its weight. (PyTorch skips a parameter whose gradient is
/// `None`; dfdx does not tell a missing gradient from a zero one.)
///
/// # Numerics
/// Gradients that are not finite, or whose squares are not, are refused before anything is changed, which
/// reads them once more. [`clip_by_norm`](crate::clip_by_norm) before the step prevents such squares.
///
/// ```
/// use bochner_nn::{Adam, Linear, alloc_gradients, clip_by_norm, mean_squared_error, zero_gradients};
/// use bochner_numerics::Seed;
/// use bochner_ops::{AdamConfig, Rows};
/// use bochner_nn::dfdx::prelude::*;
/// use bochner_nn::ndarray::ArcArray2;
///
/// let device = Cpu::default();
/// let mut rng = Seed::new(1).stream("initial values");
/// let mut model: Linear<usize, usize, f32> = Linear::try_new(&device, 2, 1, &mut rng)?;
/// let x: Tensor<(usize, usize), f32, Cpu> = device.ones_like(&(8, 2));
/// let target = ArcArray2::<f32>::zeros((8, 1));
///
/// let mut adam = Adam::new(AdamConfig { learning_rate: 0.05, ..Default::default() })?;
/// let mut gradients = alloc_gradients(&model)?;
/// for _ in 0..100 {
///     let y = model.apply(x.clone().traced(gradients))?;
///     let loss = mean_squared_error(y, target.clone(), Rows::All)?;
///     gradients = loss.backward();
///     clip_by_norm(&model, &mut gradients, 1.0)?;
///     adam.step(&mut model, &mut gradients)?;
///     zero_gradients(&model, &mut gradients)?;
/// }
/// assert!(model.apply(x)?.as_vec().iter().all(|y| y.abs() < 0.05));
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adam<E> {
    config: AdamConfig,
    state: AdamState<E>,
}

impl<E: Element> Adam<E> {
    /// An optimiser that has taken no step.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting outside its range.
    pub fn new(config: AdamConfig) -> Result<Self, Error> {
        Self::with_state(config, AdamState::default())
    }

    /// An optimiser that goes on from a saved state.
    ///
    /// The state does not know the settings that it was reached with: give the settings of before to
    /// continue a run, or others to change it from here. [`Checkpoint`](crate::Checkpoint) says how a run can
    /// refuse other settings.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting outside its range, or a state that [`AdamState::validate`] refuses.
    pub fn with_state(config: AdamConfig, state: AdamState<E>) -> Result<Self, Error> {
        config.validate::<E>()?;
        state.validate()?;
        Ok(Self { config, state })
    }

    /// The settings.
    pub fn config(&self) -> &AdamConfig {
        &self.config
    }

    /// The state from which a run can go on.
    pub fn state(&self) -> &AdamState<E> {
        &self.state
    }

    /// Steps all trained parameters of the model. One along which there is no gradient, as where the
    /// gradients are another model's, has a gradient of zero.
    ///
    /// # Errors
    /// [`Error::NonFiniteGradient`] if a gradient or its square is NaN or infinite, [`Error::ForeignState`] if
    /// the moments belong to a model of other sizes; nothing is changed then.
    pub fn step(
        &mut self,
        model: &mut (impl Parameters<E> + ?Sized),
        gradients: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        self.step_at(self.config.learning_rate, model, gradients)
    }

    /// [`step`](Self::step) with the learning rate of a schedule.
    ///
    /// # Errors
    /// The errors of [`step`](Self::step); [`Error::Argument`] if the learning rate is out of the range
    /// that [`AdamConfig`] gives.
    pub fn step_at(
        &mut self,
        learning_rate: f64,
        model: &mut (impl Parameters<E> + ?Sized),
        gradients: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        check_factor::<E>("learning_rate", learning_rate)?;
        self.prepare(model, gradients)?;
        // From some number of steps on all have the same factors.
        self.state.steps = self.state.steps.saturating_add(1);
        let decaying = AdamRule::new(&self.config, learning_rate, self.state.steps);
        let staying = decaying.clone().without_decay();
        let decayed = self.config.decayed;
        let (moments, mut values) = (&mut self.state.moments, Vec::new());
        let mut result = Ok(());
        model.for_each_mut("", &mut |name, parameter| {
            if result.is_ok() && parameter.is_trained() {
                let moments = moments.get_mut(name).expect("prepared above");
                let rule = match decayed.includes(name, parameter.dims().len()) {
                    true => &decaying,
                    false => &staying,
                };
                result = parameter.update(gradients, &mut values, &mut |values, gradient| {
                    rule.step(values, moments, gradient);
                });
            }
        });
        result
    }

    /// Makes sure that every trained parameter has moments and a finite gradient, so that no step
    /// stops half way.
    fn prepare(
        &mut self,
        model: &(impl Parameters<E> + ?Sized),
        gradients: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        let moments = &self.state.moments;
        try_for_each(model, |name, parameter| {
            let expected = parameter.len();
            if let Some(m) = moments.get(name)
                && (m.first.len(), m.second.len()) != (expected, expected)
            {
                return Err(Error::ForeignState {
                    parameter: name.to_string(),
                    expected,
                    got: m.first.len(),
                });
            }
            if !parameter.is_trained() {
                return Ok(());
            }
            let mut wrong = None;
            parameter.gradient_parts(gradients, &mut |start, part| {
                let largest = parallel::max_norm(part);
                if wrong.is_none() && !(largest * largest).is_finite() {
                    let overflows = |g: &E| !(*g * *g).is_finite();
                    wrong = part
                        .iter()
                        .position(overflows)
                        .map(|i| (start + i, part[i]));
                }
            })?;
            match wrong {
                Some((index, value)) => Err(Error::NonFiniteGradient {
                    parameter: name.to_string(),
                    index,
                    value: value.as_f64(),
                }),
                None => Ok(()),
            }
        })?;
        model.for_each("", &mut |name, parameter| {
            if parameter.is_trained() && !self.state.moments.contains_key(name) {
                let moments = Moments::zeros(parameter.len());
                self.state.moments.insert(name.to_string(), moments);
            }
        });
        Ok(())
    }
}

/// Steps any model of dfdx; a parameter without a gradient has a zero one.
///
/// dfdx lends the gradients read-only, so they are copied: [`Adam::step`] with a [`Collection`]
/// does without.
impl<E: Element, M: TensorCollection<E, Cpu>> Optimizer<M, Cpu, E> for Adam<E>
where
    Cpu: Device<E>,
{
    fn update(
        &mut self,
        model: &mut M,
        gradients: &Gradients<E, Cpu>,
    ) -> Result<(), OptimizerUpdateError<CpuError>> {
        self.step(&mut Collection(model), &mut gradients.clone())
            .map_err(|error| OptimizerUpdateError::DeviceError(error.into_device_error()))
    }
}
