//! The smallest data that each trainer learns from.

use bochner_attention::Variant;
use bochner_graph::{Graph, SparseFeatures};
use bochner_models::datapoints::{Between, Column, Example, Masking, NptConfig, Table};
use bochner_models::next_event::Events;
use bochner_models::regressor::RegressorConfig;
use bochner_models::translator::Pair;
use bochner_models::{
    classifier, datapoints, language_model, next_event, node_classifier, regressor, translator,
};
use bochner_text::BatchConfig;
use ndarray::{Array1, Array2};

/// Sentences of the words 4 to 9, of two classes.
pub(crate) fn sentences(classes: [usize; 3]) -> classifier::Task {
    let sentences = vec![vec![4, 5, 6, 7, 8, 9], vec![9, 8, 7], vec![]];
    classifier::Task::new(sentences, classes.to_vec(), BatchConfig::default()).unwrap()
}

/// A text of the tokens 0 to 4.
pub(crate) fn text(tokens: usize) -> language_model::Task {
    let text = (0..tokens).map(|i| i % 5).collect();
    language_model::Task::new(text, 6, 3).unwrap()
}

/// Two sequences of events of the kinds 0 to 3, the last of which is at some time.
pub(crate) fn events(last: f64) -> next_event::Task {
    let own = |kinds: &[usize], times: &[f64]| Events {
        kinds: kinds.to_vec(),
        times: times.to_vec(),
    };
    let all = vec![
        own(&[0, 1, 2, 3], &[0.0, 1.0, 2.0, 3.0]),
        own(&[3, 2, 1], &[0.0, last, 4.0]),
    ];
    next_event::Task::new(all, BatchConfig::default()).unwrap()
}

/// Two pairs of the tokens 4 to 9, whose targets are the sources in reverse.
pub(crate) fn pairs(last: usize) -> translator::Task {
    let pair = |source: Vec<usize>| Pair {
        target: source.iter().rev().copied().collect(),
        source,
    };
    let pairs = vec![pair(vec![4, 5, 6, 7]), pair(vec![8, last])];
    translator::Task::new(pairs, BatchConfig::default()).unwrap()
}

/// Six rows of one input, four of which are learned from.
pub(crate) fn rows(train: [usize; 4]) -> regressor::Task {
    let x = Array2::from_shape_fn((6, 1), |(i, _)| i as f32);
    let y = Array1::from_shape_fn(6, |i| (i * i) as f32);
    regressor::Task::new(x, y, train.to_vec()).unwrap()
}

/// A table of two columns of numbers with one hidden cell, whose value is wanted.
pub(crate) fn table(wanted: f32, masking: Masking) -> datapoints::Task {
    let values = Array2::from_shape_fn((4, 2), |(i, j)| (i + j) as f32);
    let is_known = Array2::from_shape_fn((4, 2), |cell| cell != (3, 1));
    let table = Table::new(vec![Column::Number; 2], values, is_known).unwrap();
    let example = Example::new(table, vec![([3, 1], wanted)]).unwrap();
    datapoints::Task::new(vec![example], masking).unwrap()
}

/// A model of tables of these columns, without dropout.
pub(crate) fn npt(columns: &[Column], blocks: &[Between], attention: Option<Variant>) -> NptConfig {
    NptConfig {
        columns: columns.to_vec(),
        width: 4,
        heads: 2,
        blocks: blocks.to_vec(),
        attention,
        normalised: Default::default(),
        dropout: 0.0,
        epsilon: 1e-12,
    }
}

/// A regressor of one input.
pub(crate) fn regressor(attention: Variant, dropout: f64) -> RegressorConfig {
    RegressorConfig {
        width: 8,
        heads: 2,
        hidden: 12,
        dropout,
        ..RegressorConfig::new(1, attention)
    }
}

/// Two rings of nodes, one for each class, joined in one place; a node without label.
pub(crate) fn ring_parts(nodes: usize) -> (Graph, SparseFeatures<f32>, Vec<Option<usize>>) {
    let half = nodes / 2;
    let ring = |i: usize| (i / half) * half + (i + 1) % half;
    let edges = (0..2 * half).flat_map(|i| [(i, ring(i)), (ring(i), i)]);
    let graph = Graph::from_edges(2 * half, edges.chain([(0, half), (half, 0)])).unwrap();
    let words = Array2::from_shape_fn((2 * half, 6), |(i, word)| {
        let own = word % 2 == i / half;
        f32::from(u8::from(
            (i * 7 + word * 5) % 4 == 0 || (own && (i + word) % 3 == 0),
        ))
    });
    let features = SparseFeatures::from_dense(words.view()).unwrap();
    let labels = (0..2 * half).map(|i| (i != 3).then_some(i / half));
    let graph = graph.with_self_loops().unwrap().graph;
    (graph, features, labels.collect())
}

/// The task of [`ring_parts`] with two training nodes of each class.
pub(crate) fn rings(nodes: usize) -> node_classifier::Task {
    let (graph, features, labels) = ring_parts(nodes);
    let train = vec![0, 1, nodes / 2, nodes / 2 + 1];
    node_classifier::Task::new(graph, features, labels, 2, train).unwrap()
}
