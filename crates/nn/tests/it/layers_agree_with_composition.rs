//! Each layer has the values and gradients of the same computation in dfdx's own operations.

use crate::common::{close, random, values};
use bochner_nn::{
    Dropout, Embedding, FeedForward, FeedForwardConfig, LayerNorm, Linear, builders, cross_entropy,
    cross_entropy_of, mean_over_time, mean_squared_error,
};
use bochner_numerics::{Seed, Stream};
use bochner_ops::{Activation, Mode, Rows};
use dfdx::nn::modules::{LayerNorm1D, Linear as DfdxLinear};
use dfdx::prelude::*;
use ndarray::ArcArray2;

fn rng() -> Stream {
    Seed::new(3).stream("initial values")
}

/// Values of `got` and `want`, and their gradients with respect to `tensors`, under one random
/// cotangent.
macro_rules! agree {
    ($got:expr, $want:expr, $tolerance:expr, $($tensor:expr),+) => {
        let (got, want) = ($got, $want);
        let cotangent = random(*got.shape(), "cotangent");
        close(&values(&got), &values(&want), $tolerance);
        let got = (got * cotangent.clone()).sum().backward();
        let want = (want * cotangent).sum().backward();
        $(close(&values(&got.get($tensor)), &values(&want.get($tensor)), $tolerance);)+
    };
}

macro_rules! linear_agrees {
    ($E:ty, $tolerance:expr) => {
        let device = Cpu::default();
        let layer: Linear<usize, Const<5>, $E> =
            Linear::try_new(&device, 7, Const, &mut rng()).unwrap();
        // More rows than one block.
        let x = random::<$E, _>((2, 450, 7), "x");
        let w = layer.weight.retaped::<OwnedTape<$E, Cpu>>();
        let b = layer.bias.retaped::<OwnedTape<$E, Cpu>>();
        let want = x.leaky_trace().matmul(w.permute::<_, Axes2<1, 0>>());
        let want = b.broadcast_like(&(2, 450, Const::<5>)) + want;
        let got = layer.apply(x.leaky_trace()).unwrap();
        agree!(got, want, $tolerance, &x, &layer.weight, &layer.bias);
    };
}

#[test]
fn linear() {
    linear_agrees!(f32, 1e-4);
    linear_agrees!(f64, 1e-12);
}

macro_rules! tied_logits_agree {
    ($E:ty, $tolerance:expr) => {
        let device = Cpu::default();
        let table: Embedding<$E> = Embedding::try_new(&device, 5, 3, &mut rng()).unwrap();
        let rows = (0..5).flat_map(|word| table.row(word).to_vec());
        let rows = device.tensor_from_vec(rows.collect(), (5, 3));
        let x = random::<$E, _>((2, 4, 3), "x");
        // First in row-major order, then with its first two axes exchanged.
        let got = table.logits(x.leaky_trace()).unwrap();
        let want = x.leaky_trace().reshape_like(&(8, 3));
        let columns = rows.clone().permute::<_, Axes2<1, 0>>();
        agree!(got, want.matmul(columns.clone()), $tolerance, &x);
        let permuted = || x.leaky_trace().permute::<_, Axes3<1, 0, 2>>();
        let want = permuted().reshape_like(&(8, 3)).matmul(columns);
        agree!(table.logits(permuted()).unwrap(), want, $tolerance, &x);
    };
}

#[test]
fn logits_of_a_tied_table() {
    tied_logits_agree!(f32, 1e-5);
    tied_logits_agree!(f64, 1e-12);
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

macro_rules! layer_norm_agrees {
    ($E:ty, $tolerance:expr) => {
        let device = Cpu::default();
        let mut layer: LayerNorm<Const<19>, $E> = LayerNorm::try_new(&device, Const).unwrap();
        let x = random::<$E, _>((450, Const::<19>), "x");
        layer.gamma = random((Const,), "gamma");
        layer.beta = random((Const,), "beta");
        let composed = LayerNorm1D {
            gamma: layer.gamma.clone(),
            beta: layer.beta.clone(),
            epsilon: layer.epsilon,
        };
        let want = composed.forward(x.leaky_trace());
        let got = layer.apply(x.leaky_trace()).unwrap();
        agree!(got, want, $tolerance, &x, &layer.gamma, &layer.beta);
    };
}

#[test]
fn layer_norm() {
    layer_norm_agrees!(f32, 1e-4);
    layer_norm_agrees!(f64, 1e-11);
}

macro_rules! residual_norm_agrees {
    ($E:ty, $tolerance:expr, $rate:expr) => {
        let mut layer: LayerNorm<usize, $E> = LayerNorm::try_new(&Cpu::default(), 19).unwrap();
        layer.gamma = random((19,), "gamma");
        layer.beta = random((19,), "beta");
        let (x, branch) = (
            random::<$E, _>((2, 450, 19), "x"),
            random::<$E, _>((2, 450, 19), "branch"),
        );
        let (dropout, mode) = (Dropout::new($rate).unwrap(), Mode::Training(Seed::new(6)));
        let dropped = dropout.apply(branch.leaky_trace(), mode).unwrap();
        let want = layer.apply(dropped + x.leaky_trace()).unwrap();
        let got = layer
            .apply_residual(x.leaky_trace(), branch.leaky_trace(), dropout, mode)
            .unwrap();
        agree!(
            got,
            want,
            $tolerance,
            &x,
            &branch,
            &layer.gamma,
            &layer.beta
        );
    };
}

#[test]
fn layer_norm_of_a_residual_branch() {
    for rate in [0.0, 0.3] {
        residual_norm_agrees!(f32, 1e-4, rate);
        residual_norm_agrees!(f64, 1e-12, rate);
    }
}

#[test]
fn mean_of_a_sequence() {
    let x = random::<f64, _>((3, 4, 5), "x");
    let want = x.leaky_trace().mean::<_, Axis<1>>();
    agree!(
        mean_over_time(x.leaky_trace(), None).unwrap(),
        want,
        1e-13,
        &x
    );

    let mut padded = values(&x);
    padded[5..20].fill(f64::NAN);
    let padded = Cpu::default().tensor_from_vec(padded, (3, 4, 5));
    let lengths = Some(&[1, 4, 3][..]);
    let want = values(&mean_over_time(x.clone(), lengths).unwrap());
    assert_eq!(values(&mean_over_time(padded, lengths).unwrap()), want);
    assert!(mean_over_time(x, Some(&[1, 4])).is_err());
}

macro_rules! feed_forward_agrees {
    ($E:ty, $tolerance:expr, $activation:expr) => {
        let (device, seed) = (Cpu::default(), Seed::new(8));
        let config = FeedForwardConfig {
            dropout: 0.3,
            activation: $activation,
            ..Default::default()
        };
        let sizes = (Const::<6>, Const::<11>, Const::<4>);
        let layer: FeedForward<_, _, _, $E> =
            FeedForward::try_new(&device, sizes, config, &mut rng()).unwrap();
        let x = random::<$E, _>((450, Const::<6>), "x");
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
        if $activation == Activation::Relu {
            want = want.relu();
        }
        let got = layer.apply(x.leaky_trace(), Mode::Training(seed)).unwrap();
        agree!(
            got,
            want,
            $tolerance,
            &x,
            &layer.first.weight,
            &layer.first.bias,
            &layer.second.weight,
            &layer.second.bias
        );
        let evaluated = layer.apply(x.clone(), Mode::Evaluation).unwrap();
        let mut want = second.forward(first.forward(x.clone()).relu());
        if $activation == Activation::Relu {
            want = want.relu();
        }
        close(&values(&evaluated), &values(&want), $tolerance);
    };
}

#[test]
fn feed_forward() {
    for activation in [Activation::Relu, Activation::Identity] {
        feed_forward_agrees!(f32, 1e-4, activation);
        feed_forward_agrees!(f64, 1e-12, activation);
    }
}

#[test]
fn dropout_gradients_use_the_mask_of_the_forward_pass() {
    let x = random::<f64, _>((40, 5), "x");
    let dropout = Dropout::new(0.4).unwrap();
    let y = dropout
        .apply(x.leaky_trace(), Mode::Training(Seed::new(2)))
        .unwrap();
    let ratio: Vec<f64> = values(&y)
        .iter()
        .zip(values(&x))
        .map(|(y, x)| y / x)
        .collect();
    assert!(ratio.contains(&0.0) && ratio.iter().any(|&r| r > 1.6));
    close(&values(&y.sum().backward().get(&x)), &ratio, 1e-14);
    for rate in [1.0, -0.1, f64::NAN] {
        assert!(Dropout::new(rate).is_err());
    }
}

macro_rules! loss_agrees {
    ($E:ty, $tolerance:expr) => {
        let (y, t) = (random::<$E, _>((9, 4), "y"), random::<$E, _>((9, 4), "t"));
        let constant = || ArcArray2::from_shape_vec((9, 4), t.as_vec()).unwrap();
        let want = dfdx::losses::mse_loss(y.leaky_trace(), t.clone());
        let got = mean_squared_error(y.leaky_trace(), constant(), Rows::All).unwrap();
        agree!(got, want, $tolerance, &y);

        let chosen = Cpu::default().tensor_from_vec(vec![7, 2, 2], (3,));
        let want = y.leaky_trace().gather(chosen.clone()) - t.clone().gather(chosen);
        let got = mean_squared_error(y.leaky_trace(), constant(), Rows::At(&[7, 2, 2])).unwrap();
        agree!(got, want.square().mean(), $tolerance, &y);

        let mut weights = [0.0; 9];
        (weights[7], weights[2]) = (0.5, 1.0);
        let at = mean_squared_error(y.leaky_trace(), constant(), Rows::At(&[7, 2, 2])).unwrap();
        let weighted =
            mean_squared_error(y.leaky_trace(), constant(), Rows::Weighted(&weights)).unwrap();
        agree!(weighted, at, $tolerance, &y);
    };
}

#[test]
fn loss() {
    loss_agrees!(f32, 1e-5);
    loss_agrees!(f64, 1e-12);
}

macro_rules! cross_entropy_agrees {
    ($E:ty, $tolerance:expr) => {
        let logits = random::<$E, _>((4, Const::<3>), "logits");
        let labels = [2, 0, 1, 2];
        let one_hot = labels.map(|label| [0, 1, 2].map(|c| if c == label { 1.0 } else { 0.0 }));
        let target = Cpu::default().tensor_from_vec(one_hot.concat(), (4, Const::<3>));
        let want = dfdx::losses::cross_entropy_with_logits_loss(logits.leaky_trace(), target);
        let got = cross_entropy(logits.leaky_trace(), &labels).unwrap();
        agree!(got, want, $tolerance, &logits);
    };
}

#[test]
fn cross_entropy_of_labels() {
    cross_entropy_agrees!(f32, 1e-5);
    cross_entropy_agrees!(f64, 1e-12);
    let logits = random::<f32, _>((2, 3), "logits");
    assert!(cross_entropy(logits.clone(), &[0]).is_err());
    assert!(cross_entropy_of(logits, &[(2, 0)]).is_err());
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
