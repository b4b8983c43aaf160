//! Layers of graphs are trained as operations, by Adam on slices and without a tape.

use bochner_graph::{
    AttentionKind, Bias, EdgeKernel, Graph, GraphAttentionConfig, GraphAttentionOperation,
    GraphConvolutionConfig, GraphConvolutionOperation, Merge, Residual,
};
use bochner_numerics::{Seed, operations, standard_normal};
use bochner_ops::{
    Activation, AdamConfig, AdamRule, CrossEntropy, Mode, Moments, Operation, apply, apply_vjp,
};
use bochner_spectral::{Direct, Implicit};
use ndarray::{Array1, Array2, ArrayD, ArrayViewD, arr0};

const NODES: usize = 30;

/// Two rings of nodes, each with self loops; neighbours are of one class.
fn graph() -> Graph {
    let ring = NODES / 2;
    let edges = (0..NODES).flat_map(|i| {
        let next = i / ring * ring + (i + 1) % ring;
        [(i, next), (next, i)]
    });
    let graph = Graph::from_edges(NODES, edges).unwrap();
    graph.with_self_loops().unwrap().graph
}

fn class(node: usize) -> usize {
    node / (NODES / 2)
}

/// Noise with a little of the class in it.
fn features() -> Array2<f64> {
    let mut stream = Seed::new(3).stream("features");
    Array2::from_shape_fn((NODES, 4), |(i, _)| {
        0.4 * class(i) as f64 + standard_normal::<f64>(&mut stream)
    })
}

/// The gradients along all inputs.
fn gradients<O: Operation<f64>>(
    operation: &O,
    inputs: &[ArrayViewD<f64>],
    saved: &O::Saved,
    cotangents: &[ArrayViewD<f64>],
) -> Vec<ArrayD<f64>> {
    let all = vec![true; inputs.len()];
    let found = apply_vjp(operation, inputs, saved, cotangents, &all).unwrap();
    found.into_iter().flatten().collect()
}

/// Counts the multiplications for the gradients along some inputs, and checks that each gradient equals that from a
/// pass with all gradients.
fn products<O: Operation<f64>>(operation: &O, inputs: &[ArrayViewD<f64>], wanted: &[bool]) -> u64 {
    let (outputs, saved) = apply(operation, inputs).unwrap();
    let ones: Vec<_> = outputs.iter().map(|y| ArrayD::ones(y.raw_dim())).collect();
    let ones: Vec<_> = ones.iter().map(|y| y.view()).collect();
    let all = gradients(operation, inputs, &saved, &ones);
    let pull = || apply_vjp(operation, inputs, &saved, &ones, wanted).unwrap();
    let (found, counted) = operations::count(pull);
    for (i, want) in all.iter().enumerate() {
        let want = wanted[i].then_some(want);
        assert_eq!(found[i].as_ref(), want, "input {i} of {wanted:?}");
    }
    counted.multiply_adds
}

/// The accuracy and the losses of two layers, trained on the cross-entropy of all nodes.
fn train(kind: AttentionKind) -> (f64, Vec<f64>) {
    let (graph, x) = (graph(), features());
    let first = GraphAttentionConfig {
        kind: kind.clone(),
        activation: Activation::Elu,
        ..GraphAttentionConfig::gat(4, 2, 4)
    };
    let last = GraphAttentionConfig {
        kind,
        merge: Merge::Average,
        ..GraphAttentionConfig::gat(8, 2, 2)
    };
    let mut parameters: [Vec<ArrayD<f64>>; 2] =
        [&first, &last].map(|config| config.initial(Seed::new(5)).unwrap());
    let mut moments = parameters.each_ref().map(|layer| {
        let zeros = layer.iter().map(|p| Moments::zeros(p.len()));
        zeros.collect::<Vec<_>>()
    });
    let targets = CrossEntropy {
        labelled: (0..NODES).map(|node| (node, class(node))).collect(),
        smoothing: 0.0,
    };
    let mut losses = Vec::new();
    for step in 1..=60 {
        let mode = Mode::Training(Seed::new(7).nth(step));
        let hidden_layer =
            GraphAttentionOperation::of_features(&first, &graph, x.view(), mode).unwrap();
        let last_layer =
            GraphAttentionOperation::of_inputs(&last, &graph, &[[NODES, 8]], mode).unwrap();

        let p: Vec<_> = parameters[0].iter().map(|p| p.view()).collect();
        let (one, saved_by_one) = apply(&hidden_layer, &p).unwrap();
        let mut inputs = vec![one[0].view()];
        inputs.extend(parameters[1].iter().map(|p| p.view()));
        let (two, saved_by_two) = apply(&last_layer, &inputs).unwrap();
        let (penalty, logits) = (one[1].sum() + two[1].sum(), [two[0].view()]);
        let (entropy, saved) = apply(&targets, &logits).unwrap();
        losses.push(entropy[0].sum() + penalty / NODES as f64);

        let unit = arr0(1.0).into_dyn();
        let share = arr0(1.0 / NODES as f64).into_dyn();
        let along = gradients(&targets, &logits, &saved, &[unit.view()]);
        let along = [along[0].view(), share.view()];
        let mut g2 = gradients(&last_layer, &inputs, &saved_by_two, &along);
        let along = g2.remove(0);
        let along = [along.view(), share.view()];
        let g1 = gradients(&hidden_layer, &p, &saved_by_one, &along);

        let config = AdamConfig::default();
        let rule = AdamRule::new(&config, 0.02, step);
        for (layer, gradients) in [g1, g2].iter().enumerate() {
            let parts = parameters[layer].iter_mut().zip(&mut moments[layer]);
            for ((parameter, moments), gradient) in parts.zip(gradients) {
                let gradient = gradient.as_slice().unwrap();
                rule.step(parameter.as_slice_mut().unwrap(), moments, gradient);
            }
        }
    }
    let views = parameters.each_ref().map(|layer| {
        let views = layer.iter().map(|p| p.view());
        views.collect::<Vec<_>>()
    });
    let hidden = first.infer(&graph, x.view(), &views[0]).unwrap();
    let logits = last.infer(&graph, hidden.view(), &views[1]).unwrap();
    let right: Array1<f64> = (0..NODES)
        .map(|i| f64::from((logits[[i, 1]] > logits[[i, 0]]) == (class(i) == 1)))
        .collect();
    (right.mean().unwrap(), losses)
}

#[test]
fn they_learn_the_classes_of_nodes() {
    let direct = Direct {
        points: 8,
        ..Direct::default()
    };
    let implicit = Implicit {
        points: 8,
        ..Implicit::default()
    };
    for kind in [
        AttentionKind::Classic,
        AttentionKind::Dynamic,
        AttentionKind::Kernel(EdgeKernel::RbfOnly),
        AttentionKind::Kernel(direct.into()),
        AttentionKind::Kernel(implicit.into()),
    ] {
        let (accuracy, losses) = train(kind.clone());
        assert!(losses[59] < 0.6 * losses[0], "{kind:?}: {losses:?}");
        assert!(accuracy > 0.9, "{kind:?}: {accuracy}");
    }
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

#[test]
fn a_convolution_learns_the_classes_of_nodes() {
    let (graph, x) = (graph(), features());
    let mut parameters = CONVOLUTION.initial::<f64>(Seed::new(5)).unwrap();
    let zeros = parameters.iter().map(|p| Moments::zeros(p.len()));
    let mut moments: Vec<_> = zeros.collect();
    let targets = CrossEntropy {
        labelled: (0..NODES).map(|node| (node, class(node))).collect(),
        smoothing: 0.0,
    };
    let mut losses = Vec::new();
    for step in 1..=100 {
        let mode = Mode::Training(Seed::new(7).nth(step));
        let layer =
            GraphConvolutionOperation::of_features(&CONVOLUTION, &graph, x.view(), mode).unwrap();
        let inputs: Vec<_> = parameters.iter().map(|p| p.view()).collect();
        let (outputs, saved_by_layer) = apply(&layer, &inputs).unwrap();
        let logits = [outputs[0].view()];
        let (entropy, saved) = apply(&targets, &logits).unwrap();
        losses.push(entropy[0].sum());

        let unit = arr0(1.0).into_dyn();
        let along = gradients(&targets, &logits, &saved, &[unit.view()]);
        let gradients = gradients(&layer, &inputs, &saved_by_layer, &[along[0].view()]);
        let rule = AdamRule::new(&AdamConfig::default(), 0.05, step);
        for ((parameter, moments), gradient) in
            parameters.iter_mut().zip(&mut moments).zip(&gradients)
        {
            let gradient = gradient.as_slice().unwrap();
            rule.step(parameter.as_slice_mut().unwrap(), moments, gradient);
        }
    }
    assert!(losses[99] < 0.6 * losses[0], "{losses:?}");
}

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
