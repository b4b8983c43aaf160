//! A graph of a million nodes and ten million edges: learned from in samples, classified exactly.
//!
//! `cargo run --release --package bochner-models --example million_nodes`
//!
//! The graph is drawn: ten classes, most edges within a class, a few words a node. Training sees a batch
//! of nodes at a time with some of their neighbours; the classes of all others are then predicted from
//! all edges, a layer after the other.

#![allow(clippy::print_stdout)]

use bochner_datasets::{PlantedGraph, PlantedPartition};
use bochner_graph::{AttentionKind, FanOut, Graph, SparseFeatures};
use bochner_models::node_classifier::{
    Architecture, Dropout, NodeClassifierConfig, Sampling, Task, Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_spectral::Direct;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Instant;

const GRAPH: PlantedPartition = PlantedPartition {
    nodes: 1_000_000,
    edges: 5_000_000,
    classes: 10,
    features: 400,
    words: 8,
    same_class: 0.5,
    own_words: 0.25,
};
const TRAIN: usize = 20_000;
const EPOCHS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let task = task(GRAPH.draw(Seed::new(1))?)?;
    let graph = task.graph();
    println!(
        "{} nodes, {} edges with self loops, drawn in {:.0?}",
        graph.targets(),
        graph.edge_count(),
        start.elapsed()
    );
    let direct = Direct {
        points: 16,
        ..Default::default()
    };
    for (name, kind) in [
        ("GAT", AttentionKind::Classic),
        ("IKAN-direct", AttentionKind::Kernel(direct.into())),
    ] {
        learn(name, kind, task.clone())?;
    }
    match peak_memory() {
        Some(peak) => println!("peak memory: {peak}"),
        None => println!("peak memory: not told by this system"),
    }
    Ok(())
}

fn task(drawn: PlantedGraph) -> Result<Task, Box<dyn Error>> {
    let edges = drawn.edges.entries().iter();
    let graph = Graph::from_edges(GRAPH.nodes, edges.map(|&[from, to]| (from, to)))?;
    let words = &drawn.features;
    let (indptr, indices) = (words.indptr(), words.indices());
    let words = SparseFeatures::new(GRAPH.features, indptr, indices, words.values().to_vec())?;
    Ok(Task::new(
        graph.with_self_loops()?.graph,
        words.row_normalised(),
        drawn.labels,
        GRAPH.classes,
        (0..TRAIN).collect(),
    )?)
}

fn learn(name: &str, kind: AttentionKind, task: Task) -> Result<(), Box<dyn Error>> {
    let config = NodeClassifierConfig {
        inputs: GRAPH.features,
        classes: GRAPH.classes,
        architecture: Architecture::attention(kind),
        dropout: Dropout::everywhere(0.2),
    };
    let training = TrainingConfig {
        learning_rate: 0.01,
        ..TrainingConfig::default()
    };
    let sampling = Sampling {
        batch: NonZeroUsize::new(512).expect("not zero"),
        fan_outs: vec![FanOut::AtMost(5), FanOut::AtMost(10)],
    };
    let task = task.sampled(sampling);
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(2))?;
    for epoch in 1..=EPOCHS {
        let start = Instant::now();
        let report = trainer.epoch()?;
        println!(
            "{name}: epoch {epoch}, cross-entropy {:.3}, {:.1?}",
            report.error,
            start.elapsed()
        );
    }
    let (task, start) = (trainer.task(), Instant::now());
    let block = NonZeroUsize::new(20_000).expect("not zero");
    let logits = (trainer.model()).infer_in_blocks(task.graph(), task.features(), block)?;
    let others: Vec<usize> = (TRAIN..GRAPH.nodes).collect();
    let seen = task.assess(logits.view(), &others)?;
    println!(
        "{name}: {:.1} % of {} other nodes, from all edges in {:.1?}",
        100.0 * (1.0 - seen.error),
        others.len(),
        start.elapsed()
    );
    Ok(())
}

/// The process's largest resident set, where Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
