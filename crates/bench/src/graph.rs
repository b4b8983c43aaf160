//! Epochs of two-layer graph attention networks on random graphs as large as citation data sets.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_datasets::PlantedPartition;
use bochner_graph::{AttentionKind, Graph, SparseFeatures};
use bochner_models::node_classifier::{
    Architecture, Dropout, NodeClassifierConfig, Task, Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_spectral::Direct;
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

/// Nodes, directed edges without self loops, features and classes of Cora, Citeseer and Pubmed, and the number of
/// features of a node that are not zero.
const GRAPHS: [(&str, [usize; 4], usize); 3] = [
    ("cora", [2708, 10556, 1433, 7], 18),
    ("citeseer", [3327, 9104, 3703, 6], 31),
    ("pubmed", [19717, 88648, 500, 3], 50),
];

/// The rate of all dropout but that of the values, which the peer does not drop.
const DROPOUT: Dropout = Dropout {
    inputs: 0.6,
    values: 0.0,
    coefficients: 0.6,
};

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
    (graph, shape, words): (&str, [usize; 4], usize),
    points: usize,
) -> Workload {
    let bytes = 8.0 * (shape[0] * words) as f64;
    let passes = vec![Pass::new("fwd", bytes), Pass::new("step", bytes)];
    let points_too = (points > 0).then_some(points);
    let sizes: Vec<usize> = shape.into_iter().chain(points_too).collect();
    let start = move || start(shape, words, points);
    let workload = Workload::new(name, sizes, passes, start);
    workload.with("graph", graph).with("shape", shape.to_vec())
}

/// A network with its data and its training.
fn trainer(shape: [usize; 4], words: usize, points: usize) -> Result<Trainer, Error> {
    let [nodes, edges, features, classes] = shape;
    let partition = PlantedPartition {
        nodes,
        edges: edges / 2,
        classes,
        features,
        words,
        same_class: 0.8,
        own_words: 0.4,
    };
    let drawn = partition.draw(Seed::new(3))?;
    let edges = drawn.edges.undirected();
    let both_ways = edges.iter().flat_map(|&[i, j]| [(i, j), (j, i)]);
    let graph = Graph::from_edges(nodes, both_ways)?
        .with_self_loops()?
        .graph;
    let x = &drawn.features;
    let x = SparseFeatures::new(features, x.indptr(), x.indices(), x.values().to_vec())?;
    let train = (0..20 * classes).collect();
    let task = Task::new(graph, x.row_normalised(), drawn.labels, classes, train)?;
    let kind = match points {
        0 => AttentionKind::Classic,
        points => {
            let direct = Direct::default();
            AttentionKind::Kernel(Direct { points, ..direct }.into())
        }
    };
    let config = NodeClassifierConfig {
        inputs: features,
        classes,
        architecture: Architecture::attention(kind),
        dropout: DROPOUT,
    };
    let training = TrainingConfig::nodes();
    Ok(Trainer::new(&config, &training, task, Seed::new(1))?)
}

fn start(shape: [usize; 4], words: usize, points: usize) -> Result<Vec<Run>, Error> {
    let trainer = Rc::new(RefCell::new(trainer(shape, words, points)?));
    let inferring = Rc::clone(&trainer);
    let infer = move || {
        black_box(inferring.borrow().predict()?);
        Ok(())
    };
    let step = move || {
        trainer.borrow_mut().epoch()?;
        Ok(())
    };
    Ok(vec![Box::new(infer), Box::new(step)])
}
