//! Graphs for the tests.

use bochner_interpret::{
    Correlations, Independence, Mark, MixedGraph, Separation, ValueCovariance,
};
use bochner_numerics::{Seed, uniform_within};
use ndarray::Array2;
use rand::Rng;
use rand::seq::SliceRandom;

/// The graph that is printed as `text`.
pub(crate) fn parsed(nodes: usize, text: &str) -> MixedGraph {
    let mark = |sign: u8| match sign {
        b'o' => Mark::Circle,
        b'<' | b'>' => Mark::Arrow,
        b'-' => Mark::Tail,
        other => panic!("{other} is no mark"),
    };
    let edges = text
        .split(", ")
        .filter(|edge| !edge.is_empty())
        .map(|edge| {
            let parts: Vec<&str> = edge.split(' ').collect();
            let [left, line, right] = parts[..] else {
                panic!("{edge} is no edge")
            };
            let node = |number: &str| number.parse().expect("a number");
            let line = line.as_bytes();
            (node(left), mark(line[0]), mark(line[2]), node(right))
        });
    MixedGraph::from_edges(nodes, &edges.collect::<Vec<_>>()).expect("a graph")
}

/// All pairs of nodes, the smaller one first.
pub(crate) fn pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |a| (a + 1..nodes).map(move |b| (a, b)))
}

/// Whether this mark is at a node, at its edge to another one.
pub(crate) fn has(graph: &MixedGraph, mark: Mark, node: usize, other: usize) -> bool {
    graph.mark_at(node, other) == Some(mark)
}

pub(crate) fn is_directed(graph: &MixedGraph, cause: usize, effect: usize) -> bool {
    has(graph, Mark::Tail, cause, effect) && has(graph, Mark::Arrow, effect, cause)
}

/// The nodes from which directed paths lead to some targets, and the targets.
pub(crate) fn ancestors(graph: &MixedGraph, targets: &[usize]) -> Vec<bool> {
    let mut found = vec![false; graph.nodes()];
    let mut open = targets.to_vec();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut found[node], true) {
            let causes = graph.neighbours(node);
            open.extend(causes.filter(|&cause| is_directed(graph, cause, node)));
        }
    }
    found
}

/// All sets of the nodes below `nodes` that `allowed` names.
pub(crate) fn subsets(nodes: usize, allowed: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let sets = (0..1_usize << nodes).map(|bits| {
        let members = (0..nodes).filter(|node| bits >> node & 1 == 1);
        members.collect::<Vec<_>>()
    });
    sets.filter(|set| set.iter().all(|&node| allowed(node)))
        .collect()
}

/// A directed acyclic graph with weights on its edges.
pub(crate) struct WeightedDag {
    pub(crate) graph: MixedGraph,
    /// Row $i$ holds the direct effects on node $i$.
    pub(crate) weights: Array2<f64>,
}

impl WeightedDag {
    /// Each node has as many neighbours on average as `degree` says, and each weight lies in $\pm [0.5, 2]$.
    pub(crate) fn random(nodes: usize, degree: f64, seed: Seed) -> Self {
        let mut stream = seed.stream("graph");
        let mut order: Vec<usize> = (0..nodes).collect();
        order.shuffle(&mut stream);
        let mut weights = Array2::zeros((nodes, nodes));
        let mut edges = Vec::new();
        for (place, &effect) in order.iter().enumerate() {
            for &cause in &order[..place] {
                if stream.gen_bool(degree / (nodes - 1) as f64) {
                    let x: f64 = uniform_within(1.5, &mut stream);
                    weights[[effect, cause]] = x + 0.5_f64.copysign(x);
                    edges.push((cause, effect));
                }
            }
        }
        let graph = MixedGraph::directed(nodes, &edges).expect("in the order");
        Self { graph, weights }
    }

    /// The total effects $(I - G)^{-1}$, the attention that this model reads as.
    pub(crate) fn attention(&self) -> Array2<f64> {
        let nodes = self.weights.nrows();
        // The powers of G are zero from the number of nodes on.
        let mut total: Array2<f64> = Array2::eye(nodes);
        for _ in 0..nodes {
            total = Array2::eye(nodes) + self.weights.dot(&total);
        }
        total
    }

    /// All nodes, causes before their effects.
    pub(crate) fn order(&self) -> Vec<usize> {
        let causes = |&node: &usize| {
            let causes = ancestors(&self.graph, &[node]);
            causes.iter().filter(|&&is_cause| is_cause).count()
        };
        let mut order: Vec<usize> = (0..self.graph.nodes()).collect();
        order.sort_by_key(causes);
        order
    }

    pub(crate) fn correlations(&self) -> Correlations {
        let a = self.attention();
        Correlations::of_attention(a.view(), ValueCovariance::Identity).expect("of full rank")
    }
}

/// The maximal ancestral graph over the observed nodes of a directed graph, by its definition.
pub(crate) fn ancestral(graph: &MixedGraph, observed: &[usize], selected: &[usize]) -> MixedGraph {
    let oracle = Separation::new(graph, observed, selected).expect("a directed graph");
    let separable = |i: usize, j: usize| {
        let sets = subsets(observed.len(), |node| node != i && node != j);
        sets.iter()
            .any(|set| oracle.independent(i, j, set).expect("distinct nodes"))
    };
    let mark = |i: usize, j: usize| {
        let targets = [&[observed[j]], selected].concat();
        match ancestors(graph, &targets)[observed[i]] {
            true => Mark::Tail,
            false => Mark::Arrow,
        }
    };
    let pairs = pairs(graph.nodes()).filter(|&(_, j)| j < observed.len());
    let joined = pairs.filter(|&(i, j)| !separable(i, j));
    let edges = joined.map(|(i, j)| (i, mark(i, j), mark(j, i), j));
    MixedGraph::from_edges(observed.len(), &edges.collect::<Vec<_>>()).expect("a graph")
}
