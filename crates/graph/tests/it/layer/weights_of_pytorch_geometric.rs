//! Layers take the weights of PyTorch Geometric's `GATConv`, `GATv2Conv` and `GCNConv` and give their outputs; they
//! write what they have read.
//!
//! The files are those of `crates/bench/peers/weights.py`.

use bochner_graph::{
    AttributedGraph, Bias, EdgeKernel, Features, Graph, GraphAttention, GraphAttentionConfig,
    GraphConvolution, GraphConvolutionConfig, LayerError, Merge, Nodes, Residual,
};
use bochner_nn::{Element, StateDict, WeightsError};
use bochner_numerics::{Seed, Tolerance};
use bochner_spectral::Direct;
use dfdx::tensor::Cpu;
use ndarray::{Array2, ArrayD};
use std::collections::BTreeMap;

const DOUBLE: &[u8] = include_bytes!("pyg-f64.safetensors");
const SINGLE: &[u8] = include_bytes!("pyg-f32.safetensors");

/// From a source to a target, as in the script.
const EDGES: [(usize, usize); 9] = [
    (0, 1),
    (0, 2),
    (1, 2),
    (2, 0),
    (3, 1),
    (3, 2),
    (4, 3),
    (1, 4),
    (2, 4),
];

fn graph() -> Graph {
    Graph::from_edges(5, EDGES).unwrap()
}

fn looped() -> Graph {
    graph().with_self_loops().unwrap().graph
}

type Tensors<E> = BTreeMap<String, ArrayD<E>>;

fn matrix<E: Element>(data: &Tensors<E>, name: &str) -> Array2<E> {
    let array = data[name].clone().into_dimensionality();
    array.unwrap()
}

fn check<E: Element>(case: &str, data: &Tensors<E>, output: &Array2<E>) {
    let wanted = matrix(data, "output").mapv(bochner_numerics::Real::as_f64);
    let bound = Tolerance::outputs::<E>().bound(wanted.iter().copied());
    for (got, want) in output.iter().zip(&wanted) {
        let error = (got.as_f64() - want).abs();
        assert!(error <= bound, "{case}: {got:?}, {want}");
    }
}

fn attention<E: Element>(config: &GraphAttentionConfig) -> GraphAttention<E> {
    GraphAttention::try_new(&Cpu::default(), config, Seed::new(1)).unwrap()
}

fn convolution<E: Element>() -> GraphConvolution<E> {
    let config = GraphConvolutionConfig {
        inputs: 4,
        outputs: 3,
        input_dropout: 0.0,
        bias: Bias::Learned,
    };
    GraphConvolution::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap()
}

fn agrees<E: Element>(bytes: &[u8], case: &str, config: &GraphAttentionConfig, graph: &Graph) {
    let read = |prefix: &str| StateDict::<E>::from_safetensors(bytes, prefix).unwrap();
    let (state, data) = (read(&format!("{case}.layer")), read(case).tensors);
    let mut layer = attention::<E>(config);
    let names = layer.pyg_names().unwrap();
    names.load(&state, &mut layer).unwrap();
    assert_eq!(names.save(&layer).unwrap().tensors, state.tensors);
    let x = matrix(&data, "x");
    let sources = data
        .contains_key("sources")
        .then(|| matrix(&data, "sources"));
    let attributes = data
        .contains_key("attributes")
        .then(|| matrix(&data, "attributes"));
    let graph = AttributedGraph {
        graph,
        attributes: attributes.as_ref().map(|a| a.view()),
    };
    let nodes = match &sources {
        Some(sources) => Nodes::Apart {
            targets: Features::Dense(x.view()),
            sources: Features::Dense(sources.view()),
        },
        None => Nodes::Same(Features::Dense(x.view())),
    };
    check(case, &data, &layer.infer(graph, nodes).unwrap());
}

fn all_agree<E: Element>(bytes: &[u8]) {
    let gat = GraphAttentionConfig::gat(4, 2, 3);
    let gatv2 = GraphAttentionConfig::gatv2(4, 2, 3);
    agrees::<E>(bytes, "gat", &gat, &looped());
    let mean = GraphAttentionConfig {
        merge: Merge::Average,
        edge_inputs: 2,
        residual: Residual::Added,
        ..gat.clone()
    };
    agrees::<E>(bytes, "gat-mean", &mean, &graph());
    let apart = GraphAttentionConfig {
        source_inputs: Some(3),
        bias: Bias::None,
        ..gat
    };
    agrees::<E>(bytes, "gat-apart", &apart, &graph());
    agrees::<E>(bytes, "gatv2", &gatv2, &looped());
    let edges = GraphAttentionConfig {
        edge_inputs: 2,
        ..gatv2.clone()
    };
    agrees::<E>(bytes, "gatv2-edges", &edges, &graph());
    let shared = GraphAttentionConfig {
        source_inputs: None,
        ..gatv2
    };
    agrees::<E>(bytes, "gatv2-shared", &shared, &looped());

    let read = |prefix: &str| StateDict::<E>::from_safetensors(bytes, prefix).unwrap();
    let (state, data) = (read("gcn.layer"), read("gcn").tensors);
    let mut layer = convolution::<E>();
    let names = layer.pyg_names();
    names.load(&state, &mut layer).unwrap();
    assert_eq!(names.save(&layer).unwrap().tensors, state.tensors);
    let x = matrix(&data, "x");
    check("gcn", &data, &layer.infer(&looped(), x.view()).unwrap());
}

#[test]
fn outputs_are_those_of_pytorch_geometric() {
    all_agree::<f64>(DOUBLE);
    all_agree::<f32>(SINGLE);
}

fn refused(case: &str, config: &GraphAttentionConfig) -> WeightsError {
    let state = StateDict::from_safetensors(DOUBLE, &format!("{case}.layer")).unwrap();
    let mut layer = attention::<f64>(config);
    let names = layer.pyg_names().unwrap();
    match names.load(&state, &mut layer).unwrap_err() {
        bochner_nn::Error::Weights(error) => error,
        error => panic!("{error}"),
    }
}

#[test]
fn weights_of_other_layers_are_refused_by_name() {
    // Two maps with one weight for both.
    let shared = GraphAttentionConfig {
        source_inputs: None,
        ..GraphAttentionConfig::gatv2(4, 2, 3)
    };
    let error = refused("gatv2", &shared);
    assert!(matches!(error, WeightsError::Unequal { name, .. } if name == "lin_l.weight"));
    // Three heads of width 2 have the same matrix as two of width 3.
    let error = refused("gat", &GraphAttentionConfig::gat(4, 3, 2)).to_string();
    assert!(
        error.contains("[1, 2, 3], the layer needs [1, 3, 2]"),
        "{error}"
    );
    let error = refused("gatv2", &GraphAttentionConfig::gat(4, 2, 3));
    let WeightsError::OtherNames { missing, left_over } = error else {
        panic!("{error}")
    };
    assert_eq!(missing, ["att_dst", "att_src", "lin.weight"]);
    let others = [
        "att",
        "lin_l.bias",
        "lin_l.weight",
        "lin_r.bias",
        "lin_r.weight",
    ];
    assert_eq!(left_over, others);
}

#[test]
fn layers_that_pytorch_geometric_does_not_have_are_refused() {
    let gat = GraphAttentionConfig::gat(6, 2, 3);
    let kernel = EdgeKernel::from(Direct::default());
    let others = [
        GraphAttentionConfig::kernel(6, 2, 3, kernel),
        GraphAttentionConfig {
            weight_bias: Bias::Learned,
            ..gat.clone()
        },
        GraphAttentionConfig {
            bias: Bias::None,
            ..GraphAttentionConfig::gatv2(6, 2, 3)
        },
        GraphAttentionConfig {
            residual: Residual::Added,
            ..gat
        },
    ];
    for config in others {
        let error = attention::<f64>(&config).pyg_names().unwrap_err();
        assert!(matches!(error, LayerError::Unsupported { .. }), "{error}");
    }
}
