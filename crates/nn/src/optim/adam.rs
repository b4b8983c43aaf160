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

#[cfg(test)]
mod tests {
    use super::AdamState;
    use crate::{Adam, Error};
    use bochner_numerics::relative_error;
    use bochner_ops::{AdamConfig, Decayed, Moments, Schedule, WeightDecay};
    use dfdx::prelude::*;
    use dfdx::tensor_ops::{AdamConfig as DfdxConfig, WeightDecay as DfdxDecay};

    type Vector = Tensor<(usize,), f64, Cpu>;

    fn vector(values: &[f64]) -> Vector {
        Cpu::default().tensor_from_vec(values.to_vec(), (values.len(),))
    }

    fn configs() -> [AdamConfig; 3] {
        let l2 = AdamConfig {
            learning_rate: 0.05,
            betas: [0.8, 0.95],
            epsilon: 1e-3,
            weight_decay: WeightDecay::L2(0.3),
            ..AdamConfig::default()
        };
        let decoupled = AdamConfig {
            weight_decay: WeightDecay::Decoupled(0.3),
            ..l2
        };
        [AdamConfig::default(), l2, decoupled]
    }

    #[test]
    fn steps_are_those_of_dfdx_through_its_trait() {
        for config in configs() {
            let (mut ours, mut theirs) = (
                Cpu::default().tensor([1.0_f64, -2.0]),
                Cpu::default().tensor([1.0_f64, -2.0]),
            );
            let decay = match config.weight_decay {
                WeightDecay::L2(l) => DfdxDecay::L2(l),
                WeightDecay::Decoupled(l) => DfdxDecay::Decoupled(l),
            };
            let dfdx_config = DfdxConfig {
                lr: config.learning_rate,
                betas: config.betas,
                eps: config.epsilon,
                weight_decay: Some(decay),
            };
            let mut dfdx = dfdx::optim::Adam::new(&theirs, dfdx_config);
            let mut adam = Adam::new(config).unwrap();
            for _ in 0..5 {
                let loss = |x: &Tensor<Rank1<2>, f64, Cpu>| x.leaky_trace().exp().sum().backward();
                let (g, h) = (loss(&ours), loss(&theirs));
                adam.update(&mut ours, &g).unwrap();
                dfdx.update(&mut theirs, &h).unwrap();
            }
            assert!(relative_error(&ours.as_vec(), &theirs.as_vec()) < 1e-6);
        }
    }

    /// A weight that decays and a bias that does not.
    struct Affine {
        weight: Tensor<(usize, usize), f64, Cpu>,
        bias: Vector,
    }

    impl crate::Parameters<f64> for Affine {
        crate::visit_fields!(f64: weight, bias);
    }

    /// The values are those of `AdamW` with two groups of parameters under `LinearLR` for three steps and then
    /// `CosineAnnealingLR` with `T_max=7`, in PyTorch 2.
    #[test]
    fn adamw_under_a_cosine_that_decays_weights_alone_is_that_of_pytorch() {
        let weight = vec![1.0, -2.0, 0.5, 3.0];
        let mut model = Affine {
            weight: Cpu::default().tensor_from_vec(weight, (2, 2)),
            bias: vector(&[0.25, -1.0]),
        };
        let config = AdamConfig {
            weight_decay: WeightDecay::Decoupled(0.3),
            decayed: Decayed::Weights,
            ..configs()[1]
        };
        let (warmup, steps) = (3, 10);
        let schedule = Schedule::Cosine { warmup, steps };
        let mut adam = Adam::new(config).unwrap();
        for step in 1..=8 {
            let (w, b) = (model.weight.as_vec(), model.bias.as_vec());
            let mut gradients = Gradients::leaky();
            // Gradients of the sum of sin(w) exp(b), plus a tenth of the squares of w and the squares of b.
            let along_w = |i: usize| w[i].cos() * b[i % 2].exp() + 0.2 * w[i];
            let along_b = |j: usize| (w[j].sin() + w[2 + j].sin()) * b[j].exp() + 2.0 * b[j];
            let g = gradients.get_or_alloc_mut(&model.weight).unwrap();
            g.copy_from_slice(&[0, 1, 2, 3].map(along_w));
            let g = gradients.get_or_alloc_mut(&model.bias).unwrap();
            g.copy_from_slice(&[0, 1].map(along_b));
            let rate = config.learning_rate * schedule.factor(step);
            adam.step_at(rate, &mut model, &mut gradients).unwrap();
        }
        let weight = [
            0.6388075966361655,
            -1.5633888384123977,
            0.1834766442689299,
            2.4861088969223757,
        ];
        let bias = [-0.02252263769078562, -0.716365581231349];
        assert!(relative_error(&model.weight.as_vec(), &weight) < 1e-13);
        assert!(relative_error(&model.bias.as_vec(), &bias) < 1e-13);
    }

    #[test]
    fn a_missing_gradient_is_a_zero_one() {
        let (mut model, mut adam) = (vector(&[1.0]), Adam::new(configs()[2]).unwrap());
        adam.step(&mut model, &mut Gradients::leaky()).unwrap();
        assert_eq!(model.as_vec(), [1.0 - 0.05 * 0.3]);
    }

    #[test]
    fn foreign_states_and_wrong_settings_are_refused() {
        let mut adam = Adam::new(AdamConfig::default()).unwrap();
        let (mut short, mut long) = (vector(&[1.0]), vector(&[1.0, 2.0]));
        adam.step(&mut short, &mut Gradients::leaky()).unwrap();
        let error = adam.step(&mut long, &mut Gradients::leaky()).unwrap_err();
        assert!(matches!(
            error,
            Error::ForeignState {
                expected: 2,
                got: 1,
                ..
            }
        ));
        assert_eq!(adam.state().steps, 1);
        assert!(
            adam.step_at(f64::NAN, &mut short, &mut Gradients::leaky())
                .is_err()
        );
        let wrong = AdamConfig {
            epsilon: 0.0,
            ..AdamConfig::default()
        };
        assert!(Adam::<f32>::new(wrong).is_err());
    }

    #[test]
    fn states_that_no_step_reaches_are_refused() {
        let state = |first: f64, second: f64| {
            let (first, second) = (vec![0.0, first], vec![0.0, second]);
            let moments = [("layer.weight".to_string(), Moments { first, second })];
            let moments = moments.into();
            Adam::with_state(AdamConfig::default(), AdamState { steps: 1, moments })
        };
        assert!(state(-1.0, 1.0).is_ok());
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = state(wrong, 1.0).unwrap_err().to_string();
            assert!(
                error.starts_with("`first moment of layer.weight` is "),
                "{error}"
            );
            assert!(state(0.0, wrong).is_err());
        }
        let (first, second) = (vec![0.0; 6], vec![0.0; 5]);
        let moments = [("weight".to_string(), Moments { first, second })].into();
        let uneven = AdamState::<f64> { steps: 1, moments };
        let error = Adam::with_state(AdamConfig::default(), uneven).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`second moment of weight` has length 5"),
            "{error}"
        );
        let error = state(0.0, -1e-300).unwrap_err().to_string();
        assert!(
            error.starts_with("`second moment of layer.weight` is -1e-300"),
            "{error}"
        );
    }

    #[test]
    fn the_last_countable_step_does_not_start_anew() {
        let steps = u64::MAX;
        let state = AdamState {
            steps,
            ..AdamState::default()
        };
        let mut adam = Adam::with_state(AdamConfig::default(), state).unwrap();
        let mut model = vector(&[1.0]);
        adam.step(&mut model, &mut Gradients::leaky()).unwrap();
        assert_eq!((model.as_vec(), adam.state().steps), (vec![1.0], steps));
    }

    #[test]
    fn gradients_that_are_not_finite_are_refused_and_nothing_changes() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e155] {
            let mut model = vec![vector(&[1.0, 2.0]), vector(&[3.0, 4.0, 5.0])];
            let mut adam = Adam::new(AdamConfig::adamw()).unwrap();
            for steps in 0..2 {
                let before = (model.clone(), adam.state().clone());
                let mut gradients = Gradients::leaky();
                for tensor in &model {
                    gradients.get_or_alloc_mut(tensor).unwrap().fill(1.0);
                }
                gradients.get_or_alloc_mut(&model[1]).unwrap()[2] = wrong;
                let error = adam.step(&mut model, &mut gradients).unwrap_err();
                assert!(
                    matches!(&error, Error::NonFiniteGradient { parameter, index: 2, .. } if parameter == "1"),
                    "{error}"
                );
                assert_eq!(adam.state(), &before.1);
                for (now, before) in model.iter().zip(&before.0) {
                    assert_eq!(now.as_vec(), before.as_vec());
                }
                gradients.get_or_alloc_mut(&model[1]).unwrap()[2] = 1.0;
                adam.step(&mut model, &mut gradients).unwrap();
                assert_eq!(adam.state().steps, steps + 1);
            }
        }
    }
}
