//! The facts about the citation graphs, checked on the files in the directory `BOCHNER_DATA`.

use crate::store;
use bochner_datasets::nodes::{load, load_graph};
use bochner_datasets::{PlanetoidData, PlanetoidGraph, PlanetoidSet, SplitSizes};
use bochner_numerics::Seed;
use std::collections::HashSet;

fn graphs() -> [PlanetoidGraph; 3] {
    PlanetoidSet::ALL.map(|set| load_graph(set, &store()).unwrap())
}

/// The graphs with features, without Pubmed, whose largest file the test data lack.
fn complete() -> [PlanetoidData; 2] {
    [PlanetoidSet::Cora, PlanetoidSet::Citeseer].map(|set| load(set, &store()).unwrap())
}

fn per_class(
    graph: &PlanetoidGraph,
    nodes: impl IntoIterator<Item = usize>,
) -> (Vec<usize>, usize) {
    let mut counts = vec![0; graph.set.classes()];
    let mut without = 0;
    for node in nodes {
        match graph.labels[node] {
            Some(class) => counts[class] += 1,
            None => without += 1,
        }
    }
    (counts, without)
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn edges_are_counted_as_described() {
    for graph in graphs() {
        // Entries, self loops, nodes with self loops, repetitions of other entries, nodes without edges.
        let want = match graph.set {
            PlanetoidSet::Cora => [10858, 0, 0, 302, 0],
            PlanetoidSet::Citeseer => [9464, 248, 124, 112, 48],
            PlanetoidSet::Pubmed => [88676, 6, 3, 22, 0],
        };
        let entries = graph.edges.entries();
        let distinct: HashSet<_> = entries.iter().collect();
        let loops = entries.iter().filter(|[i, j]| i == j).count();
        let looped = distinct.iter().filter(|[i, j]| i == j).count();
        let repetitions = (entries.len() - loops) - (distinct.len() - looped);
        let edges = graph.edges.undirected();
        let touched: HashSet<_> = edges.as_flattened().iter().collect();
        let alone = graph.set.nodes() - touched.len();
        let got = [entries.len(), loops, looped, repetitions, alone];
        assert_eq!(got, want, "{}", graph.set);
        let sizes = (graph.edges.nodes(), edges.len());
        assert_eq!(sizes, (graph.set.nodes(), graph.set.edges()));
        let symmetric = distinct.iter().all(|[i, j]| distinct.contains(&[*j, *i]));
        assert!(symmetric, "{}", graph.set);
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn classes_and_splits_are_counted_as_described() {
    for graph in graphs() {
        let (all, validation, test): (&[usize], &[usize], &[usize]) = match graph.set {
            PlanetoidSet::Cora => (
                &[351, 217, 418, 818, 426, 298, 180],
                &[61, 36, 78, 158, 81, 57, 29],
                &[130, 91, 144, 319, 149, 103, 64],
            ),
            PlanetoidSet::Citeseer => (
                &[249, 590, 668, 701, 596, 508],
                &[29, 86, 116, 106, 94, 69],
                &[77, 182, 181, 231, 169, 160],
            ),
            PlanetoidSet::Pubmed => (&[4103, 7739, 7875], &[98, 194, 208], &[180, 413, 407]),
        };
        let missing = if graph.set == PlanetoidSet::Citeseer {
            15
        } else {
            0
        };
        let counts = |nodes: &[usize]| per_class(&graph, nodes.iter().copied());
        let everything = per_class(&graph, 0..graph.set.nodes());
        assert_eq!(everything, (all.to_vec(), missing), "{}", graph.set);
        let split = &graph.split;
        assert_eq!(counts(&split.train), (vec![20; graph.set.classes()], 0));
        assert_eq!(counts(&split.validation), (validation.to_vec(), 0));
        assert_eq!(counts(&split.test), (test.to_vec(), 0));
        let (first, last) = match graph.set {
            PlanetoidSet::Cora => (1708, 2707),
            PlanetoidSet::Citeseer => (2312, 3326),
            PlanetoidSet::Pubmed => (18717, 19716),
        };
        assert_eq!((split.test[0], split.test[999]), (first, last));
        assert_eq!(graph.provenance.len(), 5);
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn features_are_as_described() {
    for data in complete() {
        let set = data.graph.set;
        let features = &data.features;
        let shape = (features.rows(), features.columns());
        assert_eq!(shape, (set.nodes(), set.features()));
        let entries = match set {
            PlanetoidSet::Cora => 49216,
            _ => 105165,
        };
        assert_eq!(features.entries(), entries, "{set}");
        assert!(features.values().iter().all(|&value| value == 1.0));
        assert_eq!(data.graph.provenance.len(), 8);
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn nodes_of_citeseer_without_label_have_edges_but_no_features() {
    const NODES: [usize; 15] = [
        2407, 2489, 2553, 2682, 2781, 2953, 3042, 3063, 3212, 3214, 3250, 3292, 3305, 3306, 3309,
    ];
    for data in complete() {
        let graph = &data.graph;
        let unlabelled: Vec<_> = (0..graph.set.nodes())
            .filter(|&node| graph.labels[node].is_none())
            .collect();
        let empty: Vec<_> = (0..graph.set.nodes())
            .filter(|&node| data.features.row(node).0.is_empty())
            .collect();
        assert_eq!(unlabelled, empty);
        if graph.set != PlanetoidSet::Citeseer {
            assert!(empty.is_empty());
            continue;
        }
        assert_eq!(empty, NODES);
        let edges = graph.edges.undirected();
        let touching = edges
            .iter()
            .filter(|[i, j]| NODES.contains(i) || NODES.contains(j));
        assert_eq!(touching.count(), 16);
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn random_splits_of_the_standard_sizes_can_be_drawn() {
    for graph in graphs() {
        let split = SplitSizes::STANDARD
            .draw(&graph.labels, Seed::new(7))
            .unwrap();
        let (train, without) = per_class(&graph, split.train.iter().copied());
        assert_eq!((train, without), (vec![20; graph.set.classes()], 0));
        assert_eq!((split.validation.len(), split.test.len()), (500, 1000));
        assert_ne!(split, graph.split);
    }
}
