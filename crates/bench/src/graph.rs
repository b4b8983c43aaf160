//! Epochs of two-layer graph attention networks on random graphs as large as citation data sets.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_graph::{
    AttentionKind, Graph, GraphAttention, GraphAttentionConfig, Merge, SparseFeatures,
};
use bochner_nn::{Adam, alloc_gradients, cross_entropy, tape_adding_to, zero_gradients};
use bochner_numerics::Seed;
use bochner_ops::{Activation, AdamConfig, Mode, WeightDecay};
use bochner_spectral::Direct;
use dfdx::tensor::{Cpu, Gradients, Tensor, TensorFromVec};
use dfdx::tensor_ops::{Backward, GatherTo};
use rand::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Nodes, directed edges without self loops, features and classes of Cora, Citeseer and Pubmed, and the share of
/// features that are not zero.
const GRAPHS: [(&str, [usize; 4], f64); 3] = [
    ("cora", [2708, 10556, 1433, 7], 0.013),
    ("citeseer", [3327, 9104, 3703, 6], 0.0085),
    ("pubmed", [19717, 88648, 500, 3], 0.10),
];

/// The width and the heads of the hidden layer.
const HIDDEN: usize = 8;
const HEADS: usize = 8;
/// The rate of all dropout but that of the values, which the peer does not drop.
const DROPOUT: f64 = 0.6;

/// Spectral points of the kernel form.
const POINTS: usize = 32;

/// Networks, `(nodes, edges, features, classes)`, and for the kernel form the number of points behind.
pub(crate) fn workloads() -> Vec<Workload> {
    let kinds = [("gat", 0), ("gat-kernel", POINTS)];
    let of = |graph| kinds.map(|(name, points)| workload(name, graph, points));
    GRAPHS.into_iter().flat_map(of).collect()
}

fn workload(
    name: &'static str,
    (graph, shape, share): (&str, [usize; 4], f64),
    points: usize,
) -> Workload {
    let bytes = 8.0 * share * (shape[0] * shape[2]) as f64;
    let operations = operations(shape, share, points);
    let passes = vec![
        Pass::new("fwd", operations, bytes),
        Pass::new("step", 3.0 * operations, bytes),
    ];
    let points_too = (points > 0).then_some(points);
    let sizes: Vec<usize> = shape.into_iter().chain(points_too).collect();
    let start = move || start(shape, share, points);
    let workload = Workload::new(name, sizes, passes, start);
    workload.with("graph", graph).with("shape", shape.to_vec())
}

/// Products with features, along edges and with spectral points of one forward pass.
fn operations([nodes, edges, features, classes]: [usize; 4], share: f64, points: usize) -> f64 {
    let columns = HIDDEN * HEADS;
    let stored = share * (nodes * features) as f64;
    let all_edges = (nodes + edges) as f64;
    let first = stored * columns as f64 + all_edges * columns as f64;
    let second = (nodes * columns * classes) as f64 + all_edges * classes as f64;
    let kernel = 2 * 4 * points * nodes * (columns + classes);
    2.0 * (first + second + kernel as f64)
}

/// Undirected edges between different nodes, each in both directions, and self loops.
fn random_graph(nodes: usize, edges: usize, rng: &mut impl Rng) -> Result<Graph, Error> {
    let mut pairs = Vec::with_capacity(edges);
    for _ in 0..edges / 2 {
        let a = rng.gen_range(0..nodes);
        let b = (a + rng.gen_range(1..nodes)) % nodes;
        pairs.extend([(a, b), (b, a)]);
    }
    Ok(Graph::from_edges(nodes, pairs)?.with_self_loops()?.graph)
}

fn random_words(
    nodes: usize,
    features: usize,
    share: f64,
    rng: &mut impl Rng,
) -> Result<SparseFeatures<f32>, Error> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for _ in 0..nodes {
        indices.extend((0..features).filter(|_| rng.r#gen::<f64>() < share));
        offsets.push(indices.len());
    }
    let ones = vec![1.0; indices.len()];
    Ok(SparseFeatures::new(features, &offsets, &indices, ones)?.row_normalised())
}

/// A network, its data and its training.
struct Training {
    /// The hidden layer and the last.
    layers: Vec<GraphAttention<f32>>,
    graph: Graph,
    words: SparseFeatures<f32>,
    /// The training nodes and their classes.
    nodes: Tensor<(usize,), usize, Cpu>,
    labels: Vec<usize>,
    adam: Adam<f32>,
    gradients: Option<Gradients<f32, Cpu>>,
    steps: u64,
}

impl Training {
    fn new(shape: [usize; 4], share: f64, points: usize) -> Result<Self, Error> {
        let [nodes, edges, features, classes] = shape;
        let mut rng = Seed::new(3).stream("data");
        let device = Cpu::default();
        let kind = match points {
            0 => AttentionKind::Classic,
            points => {
                let direct = Direct::default();
                AttentionKind::Kernel(Direct { points, ..direct }.into())
            }
        };
        let dropped = |config| GraphAttentionConfig {
            input_dropout: DROPOUT,
            coefficient_dropout: DROPOUT,
            kind: kind.clone(),
            ..config
        };
        let second = GraphAttentionConfig {
            merge: Merge::Average,
            ..GraphAttentionConfig::gat(HIDDEN * HEADS, 1, classes)
        };
        let first = dropped(GraphAttentionConfig {
            activation: Activation::Elu,
            ..GraphAttentionConfig::gat(features, HEADS, HIDDEN)
        });
        let layers = vec![
            GraphAttention::try_new(&device, &first, Seed::new(1))?,
            GraphAttention::try_new(&device, &dropped(second), Seed::new(2))?,
        ];
        let trained = 20 * classes;
        let adam = AdamConfig {
            learning_rate: 0.005,
            weight_decay: WeightDecay::L2(5e-4),
            ..AdamConfig::default()
        };
        Ok(Self {
            gradients: Some(alloc_gradients(&layers)?),
            adam: Adam::new(adam)?,
            layers,
            graph: random_graph(nodes, edges, &mut rng)?,
            words: random_words(nodes, features, share, &mut rng)?,
            nodes: device
                .tensor_from_vec((0..trained).map(|i| i * 7 % nodes).collect(), (trained,)),
            labels: (0..trained).map(|i| i % classes).collect(),
            steps: 0,
        })
    }

    fn infer(&self) -> Result<(), Error> {
        let hidden = self.layers[0].infer(&self.graph, &self.words)?;
        self.layers[1].infer(&self.graph, hidden.view())?;
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        let mut gradients = self.gradients.take().ok_or("a step has failed")?;
        zero_gradients(&self.layers, &mut gradients)?;
        let tape = tape_adding_to(gradients)?;
        let mode = Mode::Training(Seed::new(4).nth(self.steps));
        self.steps += 1;
        let [first, second] = [&self.layers[0], &self.layers[1]];
        let hidden = first.apply_features(&self.graph, &self.words, tape, mode.nth(0))?;
        let logits = second.apply(&self.graph, hidden.output, mode.nth(1))?;
        let loss = cross_entropy(logits.output.gather(self.nodes.clone()), &self.labels)?;
        let mut gradients = loss.backward();
        self.adam.step(&mut self.layers, &mut gradients)?;
        self.gradients = Some(gradients);
        Ok(())
    }
}

fn start(shape: [usize; 4], share: f64, points: usize) -> Result<Vec<Run>, Error> {
    let training = Rc::new(RefCell::new(Training::new(shape, share, points)?));
    let inferring = Rc::clone(&training);
    Ok(vec![
        Box::new(move || inferring.borrow().infer()),
        Box::new(move || training.borrow_mut().step()),
    ])
}
