//! Layers of graphs are trained as operations, by Adam on slices and without a tape.

use bochner_graph::{
    AttentionKind, Bias, EdgeKernel, Graph, GraphAttentionConfig, GraphAttentionOperation,
    GraphConvolutionConfig, GraphConvolutionOperation, Merge, Residual,
};
use bochner_numerics::{Seed, operations, standard_normal};
use bochner_ops::{Activation, AdamConfig, AdamRule, CrossEntropy, Mode, Moments, Operation, Slot};
use bochner_spectral::{Direct, Implicit};
use ndarray::{Array1, Array2, ArrayD, ArrayViewD, IxDyn, arr0};

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

/// What one step computes: outputs of an operation, then its gradients.
struct Ran<S> {
    outputs: Vec<Vec<f64>>,
    saved: S,
}

fn forward<O: Operation<f64>>(operation: &O, inputs: &[ArrayViewD<f64>]) -> Ran<O::Saved> {
    let shapes: Vec<_> = inputs.iter().map(|x| x.shape()).collect();
    let shapes = operation.output_shapes(&shapes).unwrap();
    let mut outputs = vec![Vec::new(); shapes.len()];
    let lengths = shapes.iter().map(|shape| shape.iter().product());
    let slots = outputs
        .iter_mut()
        .zip(lengths)
        .map(|(x, n)| Slot::new(x, n));
    let saved = operation.forward(inputs, slots.collect()).unwrap();
    Ran { outputs, saved }
}

fn backward<O: Operation<f64>>(
    operation: &O,
    inputs: &[ArrayViewD<f64>],
    saved: &O::Saved,
    cotangents: &[ArrayViewD<f64>],
) -> Vec<Vec<f64>> {
    let mut gradients = vec![Vec::new(); inputs.len()];
    let slots = gradients.iter_mut().zip(inputs);
    let slots = slots.map(|(g, x)| Some(Slot::new(g, x.len()))).collect();
    operation
        .backward(inputs, saved, cotangents, slots)
        .unwrap();
    gradients
}

fn array(shape: &[usize], x: Vec<f64>) -> ArrayD<f64> {
    ArrayD::from_shape_vec(IxDyn(shape), x).unwrap()
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
        let mut one = forward(&hidden_layer, &p);
        let hidden = array(&[NODES, 8], one.outputs.remove(0));
        let mut inputs = vec![hidden.view()];
        inputs.extend(parameters[1].iter().map(|p| p.view()));
        let mut two = forward(&last_layer, &inputs);
        let logits = array(&[NODES, 2], two.outputs.remove(0));
        let penalty = one.outputs[0][0] + two.outputs[0][0];
        let entropy = forward(&targets, &[logits.view()]);
        losses.push(entropy.outputs[0][0] + penalty / NODES as f64);

        let unit = arr0(1.0).into_dyn();
        let share = arr0(1.0 / NODES as f64).into_dyn();
        let along = backward(&targets, &[logits.view()], &entropy.saved, &[unit.view()]);
        let along = array(&[NODES, 2], along.into_iter().next().unwrap());
        let mut g2 = backward(
            &last_layer,
            &inputs,
            &two.saved,
            &[along.view(), share.view()],
        );
        let along = array(&[NODES, 8], g2.remove(0));
        let g1 = backward(&hidden_layer, &p, &one.saved, &[along.view(), share.view()]);

        let config = AdamConfig::default();
        let rule = AdamRule::new(&config, 0.02, step);
        for (layer, gradients) in [g1, g2].iter().enumerate() {
            let parts = parameters[layer].iter_mut().zip(&mut moments[layer]);
            for ((parameter, moments), gradient) in parts.zip(gradients) {
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
    let saved = forward(&operation, &inputs).saved;
    let (along, penalty) = (Array2::ones((NODES, 6)).into_dyn(), arr0(1.0).into_dyn());
    let cotangents = [along.view(), penalty.view()];
    let all = backward(&operation, &inputs, &saved, &cotangents);
    let products = |wanted: &[&str]| {
        let mut gradients = vec![Vec::new(); inputs.len()];
        let slots = gradients.iter_mut().zip(&inputs).zip(&names);
        let slots =
            slots.map(|((g, x), name)| wanted.contains(&&name[..]).then(|| Slot::new(g, x.len())));
        let slots = slots.collect();
        let call = || operation.backward(&inputs, &saved, &cotangents, slots);
        let (result, counted) = operations::count(call);
        result.unwrap();
        for ((got, want), name) in gradients.iter().zip(&all).zip(&names) {
            assert_eq!(
                wanted.contains(&&name[..]),
                got == want,
                "{name} of {wanted:?}"
            );
        }
        counted.multiply_adds
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
        let mut ran = forward(&layer, &inputs);
        let logits = array(&[NODES, 2], ran.outputs.remove(0));
        let entropy = forward(&targets, &[logits.view()]);
        losses.push(entropy.outputs[0][0]);

        let unit = arr0(1.0).into_dyn();
        let along = backward(&targets, &[logits.view()], &entropy.saved, &[unit.view()]);
        let along = array(&[NODES, 2], along.into_iter().next().unwrap());
        let gradients = backward(&layer, &inputs, &ran.saved, &[along.view()]);
        let rule = AdamRule::new(&AdamConfig::default(), 0.05, step);
        for ((parameter, moments), gradient) in
            parameters.iter_mut().zip(&mut moments).zip(&gradients)
        {
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
    let saved = forward(&operation, &inputs).saved;
    let along = Array2::ones((NODES, 2)).into_dyn();
    let all = backward(&operation, &inputs, &saved, &[along.view()]);
    let products = |wanted: [bool; 3]| {
        let mut gradients = vec![Vec::new(); 3];
        let slots = gradients.iter_mut().zip(&inputs).zip(wanted);
        let slots = slots.map(|((g, x), wanted)| wanted.then(|| Slot::new(g, x.len())));
        let slots = slots.collect();
        let call = || operation.backward(&inputs, &saved, &[along.view()], slots);
        let (result, counted) = operations::count(call);
        result.unwrap();
        for ((got, want), wanted) in gradients.iter().zip(&all).zip(wanted) {
            assert_eq!(got == want, wanted);
        }
        counted.multiply_adds
    };
    let product = (NODES * 4 * 2) as u64;
    let everything = products([true; 3]);
    assert_eq!(products([false, false, true]), 0);
    assert_eq!(products([false, true, true]), everything - product);
    assert_eq!(products([true, false, true]), everything - product);
}
