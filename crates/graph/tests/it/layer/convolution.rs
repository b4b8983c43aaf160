//! The layer of graph convolutional networks.

use crate::layer::setting::{TRAINING, bipartite, graph, normal, tensor};
use bochner_graph::{
    Bias, Error, Features, Graph, GraphConvolution, GraphConvolutionConfig, LayerError,
    SparseFeatures, convolve,
};
use bochner_nn::Parameters;
use bochner_numerics::check::assert_gradient;
use bochner_numerics::{Seed, finite_difference, relative_error};
use bochner_ops::Mode;
use dfdx::prelude::*;
use ndarray::Array2;

fn config(input_dropout: f64, bias: Bias) -> GraphConvolutionConfig {
    GraphConvolutionConfig {
        inputs: 5,
        outputs: 3,
        input_dropout,
        bias,
    }
}

fn layer(config: &GraphConvolutionConfig) -> GraphConvolution<f64> {
    let mut layer = GraphConvolution::try_new(&Cpu::default(), config, Seed::new(4)).unwrap();
    layer.for_each_mut("", &mut |name, parameter| {
        let values = normal((1, parameter.len()), name);
        parameter.write(values.as_slice().unwrap());
    });
    layer
}

fn value<T: Tape<f64, Cpu>>(
    layer: &GraphConvolution<f64>,
    x: Tensor<(usize, usize), f64, Cpu, T>,
) -> Tensor<(), f64, Cpu, T> {
    layer.apply(&graph(), x, TRAINING).unwrap().square().sum()
}

#[test]
fn gradients_agree_with_finite_differences() {
    for config in [config(0.0, Bias::None), config(0.4, Bias::Learned)] {
        let mut layer = layer(&config);
        let x = normal((6, 5), "x");
        let traced = tensor(&x);
        let mut gradients = value(&layer, traced.leaky_trace()).backward();
        let got = Array2::from_shape_vec((6, 5), gradients.get(&traced).as_vec()).unwrap();
        assert_gradient(&got, &x, |x| value(&layer, tensor(&x.to_owned())).array());
        for name in ["weight", "bias"] {
            let (mut at, mut got) = (Vec::new(), Vec::new());
            layer.for_each("", &mut |own, parameter| {
                if own == name {
                    parameter.read_into(&mut at);
                    got = parameter.gradient(&mut gradients).unwrap().to_vec();
                }
            });
            let mut write = |values: &[f64]| {
                layer.for_each_mut("", &mut |own, parameter| {
                    if own == name {
                        parameter.write(values);
                    }
                });
                value(&layer, tensor(&x)).array()
            };
            if !at.is_empty() {
                let want = finite_difference(&at, &mut write);
                write(&at);
                assert!(relative_error(&got, &want) < 1e-8, "{name}");
            }
        }
    }
}

#[test]
fn it_is_the_same_from_sparse_features_and_without_a_tape() {
    let x = normal((6, 5), "x").mapv(|x| if x < 0.2 { 0.0 } else { x });
    let sparse = SparseFeatures::from_dense(x.view()).unwrap();
    let layer = layer(&config(0.4, Bias::Learned));
    let array = |x: Tensor<(usize, usize), f64, Cpu>| {
        Array2::from_shape_vec(*x.shape(), x.as_vec()).unwrap()
    };
    let near = |x: &Array2<f64>, y: &Array2<f64>| (x - y).iter().all(|d| d.abs() < 1e-13);
    for mode in [TRAINING, Mode::Evaluation] {
        let want = array(layer.apply(&graph(), tensor(&x), mode).unwrap());
        for features in [Features::Sparse(&sparse), Features::Dense(x.view())] {
            let got = layer.apply_features(&graph(), features, NoneTape, mode);
            assert!(near(&array(got.unwrap()), &want));
            if mode == Mode::Evaluation {
                assert!(near(&layer.infer(&graph(), features).unwrap(), &want));
            }
        }
    }
    let bias = layer.bias.as_ref().unwrap().view();
    let want = convolve(&graph(), x.dot(&layer.weight.view()).view()).unwrap() + bias;
    assert!(near(
        &layer.infer(&graph(), Features::Dense(x.view())).unwrap(),
        &want
    ));
}

#[test]
fn what_does_not_fit_is_named() {
    let all_dropped = config(1.0, Bias::None);
    let built = GraphConvolution::<f64>::try_new(&Cpu::default(), &all_dropped, Seed::new(0));
    let error = built.unwrap_err().to_string();
    assert!(error.starts_with("`input_dropout` is 1"), "{error}");
    let layer = layer(&config(0.0, Bias::None));
    let of = |x: Array2<f64>, graph: Graph| layer.apply(&graph, tensor(&x), TRAINING).unwrap_err();
    let error = of(normal((6, 4), "x"), graph()).to_string();
    assert!(error.starts_with("`features` has shape [6, 4]"), "{error}");
    let error = of(normal((7, 5), "x"), bipartite());
    assert!(matches!(error, LayerError::Graph(Error::NotSquare { .. })));
}
