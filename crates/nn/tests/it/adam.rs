//! Adam steps models, and refuses what it cannot step with.

use bochner_nn::{Adam, AdamState, Error, clip_by_norm};
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

impl bochner_nn::Parameters<f64> for Affine {
    bochner_nn::visit_fields!(f64: weight, bias);
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

#[test]
fn a_gradient_that_is_not_finite_cannot_be_clipped_and_nothing_changes() {
    let model = [vector(&[0.0, 0.0]), vector(&[0.0])];
    let mut gradients = Gradients::leaky();
    for (tensor, values) in model.iter().zip([&[100.0, 1.0][..], &[f64::NAN]]) {
        let gradient = gradients.get_or_alloc_mut(tensor).unwrap();
        gradient.copy_from_slice(values);
    }
    let error = clip_by_norm(&model[..], &mut gradients, 1.0).unwrap_err();
    assert!(
        matches!(error, Error::NonFiniteGradient { parameter, index: 0, .. } if parameter == "1")
    );
    assert_eq!(gradients.get(&model[0]).as_vec(), [100.0, 1.0]);
    assert!(clip_by_norm(&model[..], &mut gradients, f64::NAN).is_err());
}
