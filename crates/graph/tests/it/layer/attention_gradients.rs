//! The gradients of whole layers against central differences, in double precision.

use crate::layer::setting::{
    TRAINING, attributed, bipartite, graph, kinds, layer, normal, tensor, with_everything,
    with_plain_residual,
};
use bochner_graph::{
    Features, Graph, GraphAttention, GraphAttentionConfig, GraphInput, Nodes, SparseFeatures,
};
use bochner_nn::Parameters;
use bochner_numerics::{finite_difference, relative_error};
use bochner_ops::{Activation, Mode};
use dfdx::prelude::*;
use ndarray::Array2;

/// A layer and everything that it is applied to.
struct Case {
    layer: GraphAttention<f64>,
    graph: Graph,
    attributes: Array2<f64>,
    /// The features of the targets, and of the sources where they are others.
    nodes: Vec<Array2<f64>>,
    mode: Mode,
}

/// The weight of the penalty in the objective.
const PENALTY: f64 = 0.7;

impl Case {
    fn square(config: &GraphAttentionConfig) -> Self {
        Self::new(config, graph(), 1)
    }

    fn bipartite(config: &GraphAttentionConfig) -> Self {
        Self::new(config, bipartite(), 2)
    }

    fn new(config: &GraphAttentionConfig, graph: Graph, ends: usize) -> Self {
        let columns = [config.inputs, config.source_inputs.unwrap_or(config.inputs)];
        let nodes = [graph.targets(), graph.sources()];
        let features = (0..ends).map(|end| normal((nodes[end], columns[end]), &format!("x{end}")));
        Self {
            layer: layer(config),
            attributes: normal((graph.edge_count(), config.edge_inputs), "attributes"),
            nodes: features.collect(),
            graph,
            mode: TRAINING,
        }
    }

    fn loss<T: Tape<f64, Cpu>>(
        &self,
        output: Tensor<(usize, usize), f64, Cpu, T>,
        penalty: Tensor<(), f64, Cpu, T>,
    ) -> Tensor<(), f64, Cpu, T> {
        let cotangent = tensor(&normal(*output.shape(), "cotangent"));
        (output * cotangent).sum() + penalty * PENALTY
    }

    /// The loss by way of tensors, which are traced as given.
    fn recorded<T: Tape<f64, Cpu>>(
        &self,
        nodes: Vec<Tensor<(usize, usize), f64, Cpu, T>>,
    ) -> Tensor<(), f64, Cpu, T> {
        let graph = attributed(&self.graph, self.attributes.view());
        let mut nodes = nodes.into_iter();
        let (targets, sources) = (nodes.next().unwrap(), nodes.next());
        let attended = match sources {
            None => self.layer.apply(graph, targets, self.mode),
            Some(sources) => self
                .layer
                .apply_bipartite(graph, targets, sources, self.mode),
        };
        let attended = attended.unwrap();
        self.loss(attended.output, attended.penalty)
    }

    fn value(&self) -> f64 {
        let nodes = self.nodes.iter().map(tensor).collect();
        self.recorded::<NoneTape>(nodes).array()
    }

    fn parameters(&self) -> Vec<(String, Vec<f64>)> {
        let mut all = Vec::new();
        self.layer.for_each("", &mut |name, parameter| {
            let mut values = Vec::new();
            parameter.read_into(&mut values);
            all.push((name.to_owned(), values));
        });
        all
    }

    fn write(&mut self, name: &str, values: &[f64]) {
        self.layer.for_each_mut("", &mut |own, parameter| {
            if own == name {
                parameter.write(values);
            }
        });
    }

    fn gradients(&self, gradients: &mut Gradients<f64, Cpu>) -> Vec<(String, Vec<f64>)> {
        let mut all = Vec::new();
        self.layer.for_each("", &mut |name, parameter| {
            let gradient = parameter.gradient(gradients).unwrap().to_vec();
            all.push((name.to_owned(), gradient));
        });
        all
    }

    /// Every gradient is that of finite differences.
    fn agrees(&mut self) {
        let what = format!("{:?}", self.layer.config().kind);
        let nodes: Vec<_> = self.nodes.iter().map(tensor).collect();
        let traced = nodes.iter().map(|x| x.leaky_trace()).collect();
        let mut gradients = self.recorded::<OwnedTape<f64, Cpu>>(traced).backward();
        for (end, x) in nodes.iter().enumerate() {
            let at = self.nodes[end].clone();
            let got = gradients.get(x).as_vec();
            let want = differences(&got, at.as_slice().unwrap(), |x| {
                self.nodes[end] = Array2::from_shape_vec(at.dim(), x.to_vec()).unwrap();
                self.value()
            });
            self.nodes[end] = at;
            close(&got, &want, &format!("features {end} of {what}"));
        }
        let got = self.gradients(&mut gradients);
        for ((name, at), (_, got)) in self.parameters().into_iter().zip(got) {
            let want = differences(&got, &at, |values| {
                self.write(&name, values);
                self.value()
            });
            self.write(&name, &at);
            close(&got, &want, &format!("{name} of {what}"));
        }
    }
}

/// Central differences. Where one does not agree with `got`, a step may have led across the kink of a
/// LeakyReLU, or a latent point across zero, where its density jumps: it is taken again, smaller.
fn differences(got: &[f64], at: &[f64], mut f: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut want = finite_difference(at, &mut f);
    let largest = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for (i, (want, got)) in want.iter_mut().zip(got).enumerate() {
        if (*want - got).abs() > 1e-7 * largest {
            let mut moved = |h: f64| {
                let mut x = at.to_vec();
                x[i] += h;
                f(&x)
            };
            *want = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        }
    }
    f(at);
    want
}

fn close(got: &[f64], want: &[f64], what: &str) {
    let largest = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(largest > 1e-9, "nothing depends on {what}");
    let error = relative_error(got, want);
    assert!(error < 1e-6, "{what}: {error:e}");
}

#[test]
fn with_everything_that_can_be_asked_for() {
    for config in kinds() {
        Case::square(&with_everything(config)).agrees();
    }
    for kind in [0, 7] {
        Case::bipartite(&with_everything(kinds()[kind].clone())).agrees();
    }
}

/// Along the attributes of the edges, whether the features are tensors or not.
#[test]
fn along_the_attributes_of_the_edges() {
    for config in kinds() {
        let mut case = Case::square(&with_everything(config));
        let what = format!("attributes of {:?}", case.layer.config().kind);
        let attributes = tensor(&case.attributes);
        let x = tensor(&case.nodes[0]);
        let taped = || GraphInput::Attributed {
            graph: &case.graph,
            attributes: attributes.leaky_trace(),
        };
        let attended = case.layer.apply(taped(), x.leaky_trace(), case.mode);
        let attended = attended.unwrap();
        let loss = case.loss(attended.output, attended.penalty);
        let got = loss.backward().get(&attributes).as_vec();

        let features = Features::Dense(case.nodes[0].view());
        let tape = OwnedTape::default();
        let attended = case
            .layer
            .apply_features(taped(), features, tape, case.mode);
        let attended = attended.unwrap();
        let loss = case.loss(attended.output, attended.penalty);
        assert_eq!(loss.backward().get(&attributes).as_vec(), got, "{what}");

        let at = case.attributes.clone();
        let want = differences(&got, at.as_slice().unwrap(), |values| {
            case.attributes = Array2::from_shape_vec(at.dim(), values.to_vec()).unwrap();
            case.value()
        });
        close(&got, &want, &what);
    }
}

#[test]
fn with_a_residual_that_needs_no_map() {
    for config in kinds() {
        Case::square(&with_plain_residual(config)).agrees();
    }
}

#[test]
fn of_sources_with_other_features() {
    for config in kinds() {
        let config = GraphAttentionConfig {
            source_inputs: Some(4),
            ..config
        };
        Case::bipartite(&config).agrees();
    }
}

/// The gradients along the parameters do not depend on how the features are given.
#[test]
fn whether_features_are_tensors_dense_or_sparse() {
    for config in kinds() {
        for ends in [1, 2] {
            let graph = if ends == 1 { graph() } else { bipartite() };
            let mut case = Case::new(&with_everything(config.clone()), graph, ends);
            for x in &mut case.nodes {
                x.mapv_inplace(|x| if x < 0.3 { 0.0 } else { x });
            }
            let tensors = case.nodes.iter().map(|x| tensor(x).leaky_trace()).collect();
            let loss = case.recorded::<OwnedTape<f64, Cpu>>(tensors);
            let want = (loss.array(), case.gradients(&mut loss.backward()));
            let sparse = case
                .nodes
                .iter()
                .map(|x| SparseFeatures::from_dense(x.view()));
            let sparse: Vec<_> = sparse.map(Result::unwrap).collect();
            let dense: Vec<_> = case
                .nodes
                .iter()
                .map(|x| Features::Dense(x.view()))
                .collect();
            for features in [dense, sparse.iter().map(Features::Sparse).collect()] {
                let nodes = match features[..] {
                    [targets, sources] => Nodes::Apart { targets, sources },
                    _ => Nodes::Same(features[0]),
                };
                let graph = attributed(&case.graph, case.attributes.view());
                let tape = OwnedTape::default();
                let attended = case.layer.apply_features(graph, nodes, tape, case.mode);
                let attended = attended.unwrap();
                let loss = case.loss(attended.output, attended.penalty);
                assert!((loss.array() - want.0).abs() < 1e-12);
                let got = case.gradients(&mut loss.backward());
                for ((name, got), (_, want)) in got.iter().zip(&want.1) {
                    close(got, want, name);
                }
            }
        }
    }
}

/// A loss that is no number does not stop the program.
#[test]
fn of_a_loss_that_is_no_number() {
    let case = Case::square(&kinds()[0]);
    let x = tensor(&case.nodes[0]);
    let loss = case.recorded::<OwnedTape<f64, Cpu>>(vec![x.leaky_trace()]) * f64::NAN;
    let gradients = loss.backward();
    assert!(gradients.get(&x).as_vec().iter().all(|g| g.is_nan()));

    // A derivative of the activation that is NaN, at elements that the loss ignores, does not panic either.
    let mut case = Case::square(&GraphAttentionConfig {
        activation: Activation::Elu,
        ..kinds()[0].clone()
    });
    let bias = [f64::NAN, 0.0, 0.0, 0.0, 0.0, 0.0];
    case.write("bias", &bias);
    let seen = case
        .layer
        .apply(&case.graph, x.leaky_trace(), Mode::Evaluation);
    let loss: Tensor<Rank0, f64, Cpu, _> = seen.unwrap().output.slice((.., 1..)).sum();
    assert!(!loss.array().is_nan());
    let gradients = loss.backward();
    assert!(gradients.get(&x).as_vec().iter().all(|g| g.is_nan()));
}
