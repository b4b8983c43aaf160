//! Layers agree with those of PyTorch Geometric, whose results `crates/bench/peers/gat_golden.py` writes.
//!
//! Wrong versions it catches: sources and targets exchanged, in the weights or in `a`; a score that sees
//! what its edge's attributes are in another order; heads summed up instead of averaged; a bias or a
//! residual in the wrong place.

use bochner_graph::{
    AttentionKind, AttributedGraph, Bias, Features, Graph, GraphAttention, GraphAttentionConfig,
    Merge, Nodes, Residual,
};
use bochner_nn::Parameters;
use bochner_numerics::{Seed, relative_error};
use bochner_ops::Mode;
use dfdx::prelude::*;
use ndarray::Array2;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

type Rows = Vec<Vec<f64>>;

/// A matrix, or a vector.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Matrix(Rows),
    Vector(Vec<f64>),
}

impl Values {
    fn flat(&self) -> Vec<f64> {
        match self {
            Self::Matrix(rows) => rows.concat(),
            Self::Vector(values) => values.clone(),
        }
    }
}

#[derive(Deserialize)]
struct Case {
    name: String,
    kind: AttentionKind,
    merge: Merge,
    edges: Vec<(usize, usize)>,
    targets: Rows,
    sources: Option<Rows>,
    attributes: Option<Rows>,
    parameters: BTreeMap<String, Values>,
    output: Rows,
    alpha: Rows,
    cotangent: Rows,
    gradients: BTreeMap<String, Values>,
    gradient_targets: Rows,
    gradient_sources: Option<Rows>,
}

fn array(rows: &Rows) -> Array2<f64> {
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

fn tensor(rows: &Rows) -> Tensor<(usize, usize), f64, Cpu> {
    Cpu::default().tensor_from_vec(rows.concat(), (rows.len(), rows[0].len()))
}

impl Case {
    fn has(&self, parameter: &str) -> bool {
        self.parameters.contains_key(parameter)
    }

    fn bias(&self, parameter: &str) -> Bias {
        match self.has(parameter) {
            true => Bias::Learned,
            false => Bias::None,
        }
    }

    fn layer(&self) -> GraphAttention<f64> {
        let columns = |rows: &Rows| rows[0].len();
        let (heads, inputs) = (self.alpha[0].len(), columns(&self.targets));
        let outputs = columns(&self.output);
        let config = GraphAttentionConfig {
            source_inputs: self
                .has("source_weight")
                .then(|| self.sources.as_ref().map_or(inputs, columns)),
            edge_inputs: self.attributes.as_ref().map_or(0, columns),
            merge: self.merge,
            kind: self.kind.clone(),
            weight_bias: self.bias("weight_bias"),
            bias: self.bias("bias"),
            residual: match self.has("residual") {
                true => Residual::Added,
                false => Residual::None,
            },
            ..GraphAttentionConfig::gat(
                inputs,
                heads,
                match self.merge {
                    Merge::Concatenate => outputs / heads,
                    Merge::Average => outputs,
                },
            )
        };
        let mut layer = GraphAttention::try_new(&Cpu::default(), &config, Seed::new(0)).unwrap();
        let mut written = 0;
        layer.for_each_mut("", &mut |name, parameter| {
            parameter.write(&self.parameters[name].flat());
            written += 1;
        });
        assert_eq!(written, self.parameters.len(), "{}", self.name);
        layer
    }

    fn check(&self) {
        let close = |got: &[f64], want: &[f64], what: &str| {
            let error = relative_error(got, want);
            assert!(error < 1e-12, "{what} of {}: {error:e}", self.name);
        };
        let layer = self.layer();
        let nodes = 1 + self.edges.iter().map(|edge| edge.0).max().unwrap();
        let sources = self.sources.as_ref().map_or(self.targets.len(), Vec::len);
        assert!(nodes <= sources);
        let graph = Graph::bipartite(self.targets.len(), sources, self.edges.clone()).unwrap();
        let attributes = self.attributes.as_ref().map(array);
        let graph = AttributedGraph {
            graph: &graph,
            attributes: attributes.as_ref().map(|x| x.view()),
        };
        let (x, y) = (tensor(&self.targets), self.sources.as_ref().map(tensor));
        let attended = match &y {
            None => layer.apply(graph, x.leaky_trace(), Mode::Evaluation),
            Some(y) => {
                let (x, y) = (x.leaky_trace(), y.leaky_trace());
                layer.apply_bipartite(graph, x, y, Mode::Evaluation)
            }
        };
        let output = attended.unwrap().output;
        close(&output.as_vec(), &self.output.concat(), "the output");
        let loss = (output * tensor(&self.cotangent)).sum();
        let mut gradients = loss.backward();
        let along = gradients.get(&x).as_vec();
        close(&along, &self.gradient_targets.concat(), "along targets");
        if let (Some(y), Some(want)) = (&y, &self.gradient_sources) {
            close(&gradients.get(y).as_vec(), &want.concat(), "along sources");
        }
        layer.for_each("", &mut |name, parameter| {
            let got = parameter.gradient(&mut gradients).unwrap();
            close(got, &self.gradients[name].flat(), name);
        });
        let (x, y) = (array(&self.targets), self.sources.as_ref().map(array));
        let targets = Features::Dense(x.view());
        let nodes = match &y {
            None => Nodes::Same(targets),
            Some(y) => Nodes::Apart {
                targets,
                sources: Features::Dense(y.view()),
            },
        };
        let weights = layer.weights(graph, nodes).unwrap().weights;
        close(weights.as_slice().unwrap(), &self.alpha.concat(), "alpha");
    }
}

#[test]
fn layers_agree_with_pytorch_geometric() {
    let golden: Golden = serde_json::from_str(include_str!("pytorch_geometric.json")).unwrap();
    assert_eq!(golden.cases.len(), 15);
    golden.cases.iter().for_each(Case::check);
}
