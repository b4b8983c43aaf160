//! Each layer has the values and gradients of the same computation in dfdx's own operations.

use crate::common::{close, random, values};
use bochner_nn::{Dropout, FeedForward, FeedForwardConfig, LayerNorm, Linear, builders};
use bochner_numerics::{Seed, Stream};
use bochner_ops::{Activation, Mode};
use dfdx::nn::modules::{LayerNorm1D, Linear as DfdxLinear};
use dfdx::prelude::*;

fn rng() -> Stream {
    Seed::new(3).stream("initial values")
}

/// Values of `got` and `want`, and their gradients with respect to `tensors`, under one random
/// cotangent.
macro_rules! agree {
    ($got:expr, $want:expr, $tolerance:expr, $($tensor:expr),+ $(,)?) => {
        let (got, want) = ($got, $want);
        let cotangent = random(*got.shape(), "cotangent");
        close(&values(&got), &values(&want), $tolerance);
        let got = (got * cotangent.clone()).sum().backward();
        let want = (want * cotangent).sum().backward();
        $(close(&values(&got.get($tensor)), &values(&want.get($tensor)), $tolerance);)+
    };
}

#[test]
fn linear() {
    let device = Cpu::default();
    let layer: Linear<usize, Const<5>, f64> =
        Linear::try_new(&device, 7, Const, &mut rng()).unwrap();
    // More rows than one block.
    let x = random::<f64, _>((2, 450, 7), "x");
    let w = layer.weight.retaped::<OwnedTape<f64, Cpu>>();
    let b = layer.bias.retaped::<OwnedTape<f64, Cpu>>();
    let want = x.leaky_trace().matmul(w.permute::<_, Axes2<1, 0>>());
    let want = b.broadcast_like(&(2, 450, Const::<5>)) + want;
    let got = layer.apply(x.leaky_trace()).unwrap();
    agree!(got, want, 1e-12, &x, &layer.weight, &layer.bias);
}

#[test]
fn an_input_without_rows_is_named() {
    let layer: Linear<usize, usize, f64> =
        Linear::try_new(&Cpu::default(), 4, 2, &mut rng()).unwrap();
    let norm: LayerNorm<usize, f64> = LayerNorm::try_new(&Cpu::default(), 4).unwrap();
    let x: Tensor<(usize, usize), f64, Cpu> = Cpu::default().zeros_like(&(0, 4));
    for error in [layer.apply(x.clone()).err(), norm.apply(x).err()] {
        assert_eq!(
            error.unwrap().to_string(),
            "`input 0` has shape [0, 4] and so no elements: give at least one along every axis"
        );
    }
}

#[test]
fn linear_starts_within_its_bound() {
    let layer: Linear<usize, usize, f64> =
        Linear::try_new(&Cpu::default(), 25, 40, &mut rng()).unwrap();
    let all = [values(&layer.weight), values(&layer.bias)].concat();
    assert!(all.iter().all(|x| x.abs() <= 0.2));
    let variance = all.iter().map(|x| x * x).sum::<f64>() / all.len() as f64;
    assert!((variance - 0.04 / 3.0).abs() < 0.002, "{variance}");
}

#[test]
fn layer_norm() {
    let device = Cpu::default();
    let mut layer: LayerNorm<Const<19>, f64> = LayerNorm::try_new(&device, Const).unwrap();
    let x = random::<f64, _>((450, Const::<19>), "x");
    layer.gamma = random((Const,), "gamma");
    layer.beta = random((Const,), "beta");
    let composed = LayerNorm1D {
        gamma: layer.gamma.clone(),
        beta: layer.beta.clone(),
        epsilon: layer.epsilon,
    };
    let want = composed.forward(x.leaky_trace());
    let got = layer.apply(x.leaky_trace()).unwrap();
    agree!(got, want, 1e-11, &x, &layer.gamma, &layer.beta);
}

#[test]
fn layer_norm_of_a_residual_branch() {
    for rate in [0.0, 0.3] {
        let mut layer: LayerNorm<usize, f64> = LayerNorm::try_new(&Cpu::default(), 19).unwrap();
        layer.gamma = random((19,), "gamma");
        layer.beta = random((19,), "beta");
        let (x, branch) = (
            random::<f64, _>((2, 450, 19), "x"),
            random::<f64, _>((2, 450, 19), "branch"),
        );
        let (dropout, mode) = (Dropout::new(rate).unwrap(), Mode::Training(Seed::new(6)));
        let dropped = dropout.apply(branch.leaky_trace(), mode).unwrap();
        let want = layer.apply(dropped + x.leaky_trace()).unwrap();
        let got = layer
            .apply_residual(x.leaky_trace(), branch.leaky_trace(), dropout, mode)
            .unwrap();
        agree!(got, want, 1e-12, &x, &branch, &layer.gamma, &layer.beta);
    }
}

#[test]
fn feed_forward() {
    for activation in [Activation::Relu, Activation::Identity] {
        let (device, seed) = (Cpu::default(), Seed::new(8));
        let config = FeedForwardConfig {
            dropout: 0.3,
            activation,
            ..Default::default()
        };
        let sizes = (Const::<6>, Const::<11>, Const::<4>);
        let layer: FeedForward<_, _, _, f64> =
            FeedForward::try_new(&device, sizes, config, &mut rng()).unwrap();
        let x = random::<f64, _>((450, Const::<6>), "x");
        let (first, second) = (&layer.first, &layer.second);
        let first = DfdxLinear {
            weight: first.weight.clone(),
            bias: first.bias.clone(),
        };
        let second = DfdxLinear {
            weight: second.weight.clone(),
            bias: second.bias.clone(),
        };
        let mask = Dropout::new(0.3)
            .unwrap()
            .apply(device.ones_like(&(450, Const::<11>)), Mode::Training(seed))
            .unwrap();
        let hidden = first.forward(x.leaky_trace()).relu() * mask;
        let mut want = second.forward(hidden);
        if activation == Activation::Relu {
            want = want.relu();
        }
        let got = layer.apply(x.leaky_trace(), Mode::Training(seed)).unwrap();
        agree!(
            got,
            want,
            1e-12,
            &x,
            &layer.first.weight,
            &layer.first.bias,
            &layer.second.weight,
            &layer.second.bias
        );
        let evaluated = layer.apply(x.clone(), Mode::Evaluation).unwrap();
        let mut want = second.forward(first.forward(x.clone()).relu());
        if activation == Activation::Relu {
            want = want.relu();
        }
        close(&values(&evaluated), &values(&want), 1e-12);
    }
}

#[test]
fn wrong_shapes_and_numbers_are_refused() {
    let device = Cpu::default();
    let layer: Linear<usize, usize, f32> = Linear::try_new(&device, 3, 2, &mut rng()).unwrap();
    let error = layer.apply(random::<f32, _>((5, 4), "x")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`weight` has shape [2, 3], but must have [2, 4]")
    );
    assert!(layer.try_forward(random::<f32, _>((5, 4), "x")).is_err());
    assert!(Linear::<usize, usize, f32>::try_new(&device, 0, 2, &mut rng()).is_err());
    assert!(LayerNorm::<usize, f32>::try_new(&device, 0).is_err());
    let mut norm: LayerNorm<usize, f32> = LayerNorm::try_new(&device, 4).unwrap();
    norm.epsilon = f64::NAN;
    assert!(norm.apply(random((5, 4), "x")).is_err());
    let config = FeedForwardConfig {
        dropout: -0.1,
        ..Default::default()
    };
    assert!(
        FeedForward::<usize, usize, usize, f32>::try_new(&device, (1, 1, 1), config, &mut rng())
            .is_err()
    );
}

#[test]
fn settings_survive_a_change_of_the_type() {
    let device = Cpu::default();
    let mut norm: LayerNorm<Const<4>, f64> = LayerNorm::try_new(&device, Const).unwrap();
    norm.epsilon = 0.25;
    assert_eq!(norm.to_dtype::<f32>().epsilon, 0.25);
    let dropout = Dropout::new(0.75).unwrap();
    assert_eq!(ToDtype::<f64, Cpu>::to_dtype::<f32>(&dropout), dropout);
    let config = FeedForwardConfig {
        dropout: 0.5,
        activation: Activation::LeakyRelu { slope: 0.5 },
        ..Default::default()
    };
    let sizes = (Const::<2>, Const::<3>, Const::<4>);
    let layer: FeedForward<_, _, _, f64> =
        FeedForward::try_new(&device, sizes, config, &mut rng()).unwrap();
    assert_eq!(layer.to_dtype::<f32>().config, config);
    let model = (layer, norm, dropout).to_dtype::<f32>();
    assert_eq!(
        (model.0.config, model.1.epsilon, model.2),
        (config, 0.25, dropout)
    );
    assert_eq!(
        FeedForwardConfig::default().activation,
        Activation::Identity
    );
}

#[test]
fn layers_fit_into_models_of_dfdx() {
    type Model = (
        builders::Linear<3, 8>,
        ReLU,
        Residual<builders::LayerNorm<8>>,
        builders::FeedForward<8, 16, 4>,
        Dropout,
        dfdx::nn::builders::Linear<4, 2>,
    );
    let device = Cpu::seed_from_u64(5);
    let mut model = device.build_module::<Model, f32>();
    let mut optimiser = dfdx::optim::Adam::new(&model, Default::default());
    let x = random::<f32, _>((10, Const::<3>), "x");
    let before = model.forward(x.clone());
    let y = model.forward_mut(x.trace(model.alloc_grads()));
    let gradients = y.square().mean().backward();
    optimiser.update(&mut model, &gradients).unwrap();
    assert_ne!(values(&before), values(&model.forward(x.clone())));

    let file = tempfile::NamedTempFile::new().unwrap();
    model.save_safetensors(file.path()).unwrap();
    let mut loaded = device.build_module::<Model, f32>();
    loaded.load_safetensors(file.path()).unwrap();
    assert_eq!(
        values(&model.forward(x.clone())),
        values(&loaded.forward(x))
    );
}
