//! Layers of graphs as operations, without a tape: they name inputs that do not fit, and compute the gradients that are
//! wanted alone.

use bochner_graph::{
    AttentionKind, Bias, Graph, GraphAttentionConfig, GraphAttentionOperation,
    GraphConvolutionConfig, GraphConvolutionOperation, Residual,
};
use bochner_numerics::check::random;
use bochner_numerics::{Seed, operations};
use bochner_ops::{Mode, Operation, apply, apply_vjp};
use bochner_spectral::{Direct, Implicit};
use ndarray::{Array2, ArrayD, ArrayViewD};

const NODES: usize = 30;

/// A ring of nodes with self loops.
fn graph() -> Graph {
    let edges = (0..NODES).flat_map(|i| [(i, (i + 1) % NODES), (i, i)]);
    Graph::from_edges(NODES, edges).unwrap()
}

fn features() -> Array2<f64> {
    random((NODES, 4), "features")
}

/// Counts the multiplications for the gradients along some inputs, and checks that each gradient equals that from a
/// pass with all gradients.
fn products<O: Operation<f64>>(operation: &O, inputs: &[ArrayViewD<f64>], wanted: &[bool]) -> u64 {
    let (outputs, saved) = apply(operation, inputs).unwrap();
    let ones: Vec<_> = outputs.iter().map(|y| ArrayD::ones(y.raw_dim())).collect();
    let ones: Vec<_> = ones.iter().map(|y| y.view()).collect();
    let pull = |wanted: &[bool]| apply_vjp(operation, inputs, &saved, &ones, wanted).unwrap();
    let all = pull(&vec![true; inputs.len()]);
    let (found, counted) = operations::count(|| pull(wanted));
    for (i, want) in all.into_iter().enumerate() {
        assert_eq!(
            found[i],
            want.filter(|_| wanted[i]),
            "input {i} of {wanted:?}"
        );
    }
    counted.multiply_adds
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let config = GraphAttentionConfig::kernel(4, 2, 3, Direct::default());
    let parameters = config.initial::<f64>(Seed::new(1)).unwrap();
    let names: Vec<_> = config
        .parameters()
        .into_iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(names, ["weight", "a", "bias", "kernel"]);
    let (graph, x) = (graph(), features());
    let mut views: Vec<_> = parameters.iter().map(|p| p.view()).collect();
    let refused = |views: &[ArrayViewD<f64>]| {
        let error = config.infer(&graph, x.view(), views).unwrap_err();
        error.to_string()
    };
    views.swap(1, 2);
    assert!(
        refused(&views).starts_with("`a` has shape [6]"),
        "{}",
        refused(&views)
    );
    views.pop();
    assert!(
        refused(&views).starts_with("`parameters` has length"),
        "{}",
        refused(&views)
    );
}

#[test]
fn inputs_of_another_shape_are_named_before_anything_is_computed() {
    let config = GraphAttentionConfig::gat(8, 2, 2);
    let mode = Mode::Evaluation;
    let operation =
        GraphAttentionOperation::<f64>::of_inputs(&config, &graph(), &[[NODES, 8]], mode);
    let operation = operation.unwrap();
    let parameters: Vec<_> = config
        .parameters()
        .into_iter()
        .map(|spec| spec.shape)
        .collect();
    let shapes = |nodes: &[usize]| {
        let parameters = parameters.iter().map(Vec::as_slice);
        let inputs: Vec<_> = std::iter::once(nodes).chain(parameters).collect();
        operation.output_shapes(&inputs)
    };
    assert!(shapes(&[NODES, 8]).is_ok());
    for wrong in [&[NODES + 1, 8][..], &[NODES, 7], &[NODES]] {
        let error = shapes(wrong).unwrap_err().to_string();
        assert!(error.starts_with("`features"), "{error}");
    }
    assert!(operation.output_shapes(&[]).is_err());
}

/// Products of a parameter's gradient are not computed where the parameter is frozen.
#[test]
fn unwanted_gradients_cost_nothing() {
    let source = Implicit {
        points: 8,
        ..Implicit::default()
    };
    let config = GraphAttentionConfig {
        kind: AttentionKind::Kernel(source.into()),
        residual: Residual::Added,
        ..GraphAttentionConfig::gat(4, 2, 3)
    };
    let (graph, x, mode) = (graph(), features(), Mode::Evaluation);
    let operation = GraphAttentionOperation::of_features(&config, &graph, x.view(), mode).unwrap();
    let parameters = config.initial::<f64>(Seed::new(5)).unwrap();
    let names: Vec<_> = config
        .parameters()
        .into_iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(names, ["weight", "a", "bias", "residual", "kernel"]);
    let inputs: Vec<_> = parameters.iter().map(|p| p.view()).collect();
    let products = |wanted: &[&str]| {
        let wanted: Vec<bool> = names
            .iter()
            .map(|name| wanted.contains(&&name[..]))
            .collect();
        products(&operation, &inputs, &wanted)
    };
    let each: Vec<&str> = names.iter().map(|name| &name[..]).collect();
    let (everything, product) = (products(&each), (NODES * 4 * 6) as u64);
    assert_eq!(products(&["bias"]), 0);
    assert_eq!(products(&["residual"]), product);
    assert_eq!(
        products(&["weight", "a", "kernel", "bias"]),
        everything - product
    );
    assert_eq!(products(&["a", "kernel"]), everything - 2 * product);
    assert!(products(&["a"]) < everything - 2 * product);
}

const CONVOLUTION: GraphConvolutionConfig = GraphConvolutionConfig {
    inputs: 4,
    outputs: 2,
    input_dropout: 0.0,
    bias: Bias::Learned,
};

/// The gradients along features and weight cost a product each, that along the bias costs none.
#[test]
fn unwanted_gradients_of_a_convolution_cost_nothing() {
    let (graph, x, mode) = (graph(), features().into_dyn(), Mode::Evaluation);
    let operation =
        GraphConvolutionOperation::of_inputs(&CONVOLUTION, &graph, [NODES, 4], mode).unwrap();
    let parameters = CONVOLUTION.initial::<f64>(Seed::new(5)).unwrap();
    let mut inputs = vec![x.view()];
    inputs.extend(parameters.iter().map(|p| p.view()));
    let products = |wanted: [bool; 3]| products(&operation, &inputs, &wanted);
    let product = (NODES * 4 * 2) as u64;
    let everything = products([true; 3]);
    assert_eq!(products([false, false, true]), 0);
    assert_eq!(products([false, true, true]), everything - product);
    assert_eq!(products([true, false, true]), everything - product);
}
