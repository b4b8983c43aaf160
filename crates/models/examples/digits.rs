//! Digits as a graph of nearest neighbours, beside PyTorch Geometric.
//!
//! `python crates/bench/peers/gat_digits.py digits.json` writes the graph and trains the peer;
//! `cargo run --release --package bochner-models --example digits -- digits.json` trains the same networks here, and
//! the kernel forms, and prints the accuracy on the test part for each seed: once with the initial values of GAT's
//! published code, once with PyTorch Geometric's.

#![allow(clippy::print_stdout)]

use bochner_graph::{AttentionKind, EdgeKernel, Graph, InitialMap, SparseFeatures};
use bochner_models::node_classifier::{
    Architecture, AttentionLayers, Dropout, NodeClassifierConfig, Task, Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_spectral::{Copula, Direct, Implicit};
use ndarray::Array2;
use serde::Deserialize;
use std::error::Error;

#[derive(Deserialize)]
struct Digits {
    features: Vec<Vec<f32>>,
    edges: Vec<(usize, usize)>,
    labels: Vec<usize>,
    train: Vec<usize>,
    epochs: usize,
    seeds: u64,
    dropout: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("give the file of gat_digits.py")?;
    let digits: Digits = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let ika = Implicit {
        copula: Copula::Independent,
        ..Implicit::default()
    };
    for (name, kind) in [
        ("GAT", AttentionKind::Classic),
        ("GATv2", AttentionKind::Dynamic),
        ("RBF", AttentionKind::Kernel(EdgeKernel::RbfOnly)),
        (
            "IKAN-direct",
            AttentionKind::Kernel(Direct::default().into()),
        ),
        ("IKA-NS", AttentionKind::Kernel(ika.into())),
    ] {
        for initial_map in [InitialMap::EachHead, InitialMap::AllHeads] {
            let layers = AttentionLayers {
                initial_map,
                ..AttentionLayers::new(kind.clone())
            };
            let found: Vec<f64> = (0..digits.seeds)
                .map(|seed| accuracy(&digits, layers.clone(), Seed::new(seed)))
                .collect::<Result<_, _>>()?;
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            let squares = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let deviation = (squares / (found.len() - 1) as f64).sqrt();
            println!("{name}, {initial_map:?}: {mean:.3} +- {deviation:.3}: {found:.3?}");
        }
    }
    Ok(())
}

fn accuracy(digits: &Digits, layers: AttentionLayers, seed: Seed) -> Result<f64, Box<dyn Error>> {
    let (nodes, columns) = (digits.features.len(), digits.features[0].len());
    let graph = Graph::from_edges(nodes, digits.edges.iter().copied())?
        .with_self_loops()?
        .graph;
    let features = Array2::from_shape_vec((nodes, columns), digits.features.concat())?;
    let features = SparseFeatures::from_dense(features.view())?;
    let labels = digits.labels.iter().map(|&label| Some(label)).collect();
    let task = Task::new(graph, features, labels, 10, digits.train.clone())?;
    let config = NodeClassifierConfig {
        inputs: columns,
        classes: 10,
        architecture: Architecture::Attention(layers),
        dropout: Dropout {
            inputs: digits.dropout,
            coefficients: digits.dropout,
            values: 0.0,
        },
    };
    let mut trainer = Trainer::new(&config, &TrainingConfig::nodes(), task, seed)?;
    for _ in 0..digits.epochs {
        trainer.epoch()?;
    }
    let test: Vec<usize> = (0..nodes)
        .filter(|node| !digits.train.contains(node))
        .collect();
    let seen = trainer.task().assess(trainer.predict()?.view(), &test)?;
    Ok(1.0 - seen.error)
}
