//! Layers, graphs and features to test with.

pub(crate) use crate::conformance::case::small_graph as graph;
use bochner_graph::{
    AttributedGraph, Bias, EdgeKernel, Graph, GraphAttention, GraphAttentionConfig, Merge, Residual,
};
use bochner_nn::Parameters;
use bochner_numerics::check::random;
use bochner_numerics::{Seed, standard_normal};
use bochner_ops::{Activation, Mode};
use bochner_spectral::{Copula, Direct, Implicit, Stationarity};
use dfdx::tensor::{Cpu, Tensor, TensorFromVec};
use ndarray::{Array2, ArrayView2};

pub(crate) type Matrix = Tensor<(usize, usize), f64, Cpu>;

/// Standard normal numbers.
pub(crate) fn normal(shape: (usize, usize), purpose: &str) -> Array2<f64> {
    random(shape, purpose)
}

pub(crate) fn tensor(x: &Array2<f64>) -> Matrix {
    Cpu::default().tensor_from_vec(x.iter().copied().collect(), x.dim())
}

/// Four targets, seven sources.
pub(crate) fn bipartite() -> Graph {
    let edges = (0..17).map(|edge| ((edge * 5 + edge / 3) % 7, (edge * 3 + edge / 5) % 4));
    Graph::bipartite(4, 7, edges).unwrap()
}

pub(crate) fn direct(stationarity: Stationarity) -> EdgeKernel {
    let direct = Direct {
        points: 3,
        stationarity,
        ..Direct::default()
    };
    EdgeKernel::from(direct).with_p(1.5).unwrap()
}

pub(crate) fn implicit(stationarity: Stationarity, copula: Copula) -> EdgeKernel {
    let implicit = Implicit {
        points: 3,
        prior_std: 0.8,
        stationarity,
        copula,
        ..Implicit::default()
    };
    EdgeKernel::from(implicit).with_p(1.5).unwrap()
}

/// One layer of each kind: two heads of width 3, from five inputs.
pub(crate) fn kinds() -> Vec<GraphAttentionConfig> {
    let kernel = |variant| GraphAttentionConfig::kernel(5, 2, 3, variant);
    vec![
        GraphAttentionConfig::gat(5, 2, 3),
        GraphAttentionConfig::gatv2(5, 2, 3),
        kernel(EdgeKernel::RbfOnly),
        kernel(EdgeKernel::Softmax),
        kernel(direct(Stationarity::Stationary)),
        kernel(direct(Stationarity::Nonstationary)),
        kernel(implicit(Stationarity::Stationary, Copula::Independent)),
        kernel(implicit(Stationarity::Nonstationary, Copula::Amortised)),
    ]
}

/// The settings with everything that can be asked for.
pub(crate) fn with_everything(config: GraphAttentionConfig) -> GraphAttentionConfig {
    GraphAttentionConfig {
        edge_inputs: 2,
        merge: Merge::Average,
        residual: Residual::Added,
        activation: Activation::Elu,
        slope: 0.4,
        input_dropout: 0.3,
        value_dropout: 0.3,
        coefficient_dropout: 0.3,
        ..config
    }
}

/// The settings without bias and activation, with a residual that needs no map: there are as many inputs as
/// outputs.
pub(crate) fn with_plain_residual(config: GraphAttentionConfig) -> GraphAttentionConfig {
    GraphAttentionConfig {
        inputs: 6,
        source_inputs: config.source_inputs.map(|_| 6),
        bias: Bias::None,
        residual: Residual::Added,
        ..config
    }
}

pub(crate) fn attributed<'a>(
    graph: &'a Graph,
    attributes: ArrayView2<'a, f64>,
) -> AttributedGraph<'a, f64> {
    AttributedGraph {
        graph,
        attributes: (attributes.ncols() > 0).then_some(attributes),
    }
}

/// A layer with numbers in all of its parameters, the bias too.
pub(crate) fn layer(config: &GraphAttentionConfig) -> GraphAttention<f64> {
    let mut layer = GraphAttention::try_new(&Cpu::default(), config, Seed::new(7)).unwrap();
    layer.for_each_mut("", &mut |name, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        let mut stream = Seed::new(8).stream(name);
        for value in &mut values {
            *value += 0.1 * standard_normal::<f64>(&mut stream);
        }
        parameter.write(&values);
    });
    layer
}

pub(crate) const SEED: Seed = Seed::new(9);
pub(crate) const TRAINING: Mode = Mode::Training(SEED);
