//! The rules that put tails to a graph whose arrows are known.

use super::{Mark, MixedGraph};
use std::collections::VecDeque;

/// Replaces circles by the rules R5 to R10 until none applies; the tails are then all that can be known.
///
/// The paths of the rules are searched for as walks. What a rule concludes from a path is carried from edge to edge
/// by triples whose ends are not adjacent, and so follows from a walk that meets itself as well.
///
/// # Reference
/// Zhang, *On the completeness of orientation rules for causal discovery in the presence of latent confounders and
/// selection bias*, 2008.
pub(super) fn orient(graph: &mut MixedGraph) {
    uncovered_circles(graph);
    let more = |graph: &mut MixedGraph| {
        beside_undirected(graph)
            | beside_tails(graph)
            | along_chains(graph)
            | along_one_path(graph)
            | along_two_paths(graph)
    };
    while more(graph) {}
}

/// A step of a walk, from a node to the next one.
type Step = fn(&MixedGraph, usize, usize) -> bool;

fn circles(graph: &MixedGraph, a: usize, b: usize) -> bool {
    graph.has(Mark::Circle, a, b) && graph.has(Mark::Circle, b, a)
}

/// The edges of all walks $a, b, \dots$ that begin with these two nodes, every three nodes in a row of which have
/// ends that are not adjacent: each with the edge before it, the nearest first.
fn uncovered_walks(graph: &MixedGraph, a: usize, b: usize, step: Step) -> Vec<WalkedEdge> {
    let mut seen = vec![false; graph.nodes() * graph.nodes()];
    let mut walked: Vec<WalkedEdge> = Vec::new();
    let mut open = VecDeque::from([WalkedEdge {
        from: a,
        to: b,
        before: None,
    }]);
    while let Some(edge) = open.pop_front() {
        let WalkedEdge { from, to, .. } = edge;
        if std::mem::replace(&mut seen[from * graph.nodes() + to], true) {
            continue;
        }
        let before = Some(walked.len());
        walked.push(edge);
        let next = graph.neighbours(to);
        let next = next.filter(|&next| next != from && !graph.adjacent(from, next));
        let next = next.filter(|&next| step(graph, to, next));
        open.extend(next.map(|next| WalkedEdge {
            from: to,
            to: next,
            before,
        }));
    }
    walked
}

/// An edge of a walk, and the place of the one before.
struct WalkedEdge {
    from: usize,
    to: usize,
    before: Option<usize>,
}

/// R5: an edge $a {\circ}{-}{\circ} b$ that an uncovered path of such edges $a, c, \dots, d, b$ closes to a cycle,
/// with neither $a$ and $d$ adjacent nor $c$ and $b$, is undirected, and so is the path.
fn uncovered_circles(graph: &mut MixedGraph) {
    for (a, b) in graph.pairs() {
        if !circles(graph, a, b) {
            continue;
        }
        let starts = graph.neighbours(a);
        let mut starts =
            starts.filter(|&c| c != b && circles(graph, a, c) && !graph.adjacent(c, b));
        if let Some(path) = starts.find_map(|c| circle_to(graph, a, b, c)) {
            for (node, other) in path.into_iter().chain([(a, b)]) {
                graph.orient(node, other, Mark::Tail);
                graph.orient(other, node, Mark::Tail);
            }
        }
    }
}

/// The edges of the path of R5 that begins with $a, c$.
fn circle_to(graph: &MixedGraph, a: usize, b: usize, c: usize) -> Option<Vec<(usize, usize)>> {
    let walked = uncovered_walks(graph, a, c, circles);
    let last = |edge: &WalkedEdge| edge.to == b && !graph.adjacent(edge.from, a) && edge.from != a;
    let mut at = walked.iter().position(last);
    at?;
    let mut path = Vec::new();
    while let Some(place) = at {
        path.push((walked[place].from, walked[place].to));
        at = walked[place].before;
    }
    Some(path)
}

/// R6: where $a - b$ is undirected, the edge $b {\circ}{-}{\ast} c$ has a tail at $b$.
fn beside_undirected(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [a, b, c]| {
        let applies = graph.has(Mark::Tail, a, b) && graph.has(Mark::Tail, b, a);
        applies && graph.orient(b, c, Mark::Tail)
    })
}

/// R7: where $a {-}{\circ} b$ with a tail at $a$ alone, and $a$ and $c$ are not adjacent, the edge
/// $b {\circ}{-}{\ast} c$ has a tail at $b$.
fn beside_tails(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [a, b, c]| {
        let tail = graph.has(Mark::Tail, a, b) && graph.has(Mark::Circle, b, a);
        tail && !graph.adjacent(a, c) && graph.orient(b, c, Mark::Tail)
    })
}

/// R8: where $a \to b \to c$, or $a {-}{\circ} b \to c$, the edge $a {\circ}{\to} c$ has a tail at $a$.
fn along_chains(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [a, b, c]| {
        let applies = graph.has(Mark::Tail, a, b)
            && !graph.has(Mark::Tail, b, a)
            && graph.is_directed(b, c)
            && partly_directed(graph, a, c);
        applies && graph.orient(a, c, Mark::Tail)
    })
}

fn partly_directed(graph: &MixedGraph, a: usize, c: usize) -> bool {
    graph.has(Mark::Circle, a, c) && graph.has(Mark::Arrow, c, a)
}

/// R9: where an uncovered path $a, b, \dots, c$ may be directed, and $b$ and $c$ are not adjacent, the edge
/// $a {\circ}{\to} c$ has a tail at $a$.
fn along_one_path(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [b, a, c]| {
        let begins =
            partly_directed(graph, a, c) && graph.may_be_directed(a, b) && !graph.adjacent(b, c);
        let arrives = |graph: &MixedGraph| {
            let walked = uncovered_walks(graph, a, b, MixedGraph::may_be_directed);
            walked.iter().any(|edge| edge.to == c)
        };
        begins && arrives(graph) && graph.orient(a, c, Mark::Tail)
    })
}

/// R10: where $b \to c \leftarrow d$, and uncovered paths that may be directed lead from $a$ to $b$ and to $d$ whose
/// first nodes differ and are not adjacent, the edge $a {\circ}{\to} c$ has a tail at $a$.
fn along_two_paths(graph: &mut MixedGraph) -> bool {
    let mut changed = false;
    for (a, c) in graph.pairs().flat_map(|(a, c)| [(a, c), (c, a)]) {
        if partly_directed(graph, a, c) && two_paths(graph, a, c) {
            changed |= graph.orient(a, c, Mark::Tail);
        }
    }
    changed
}

fn two_paths(graph: &MixedGraph, a: usize, c: usize) -> bool {
    let starts = graph.neighbours(a);
    let starts = starts.filter(|&first| first != c && graph.may_be_directed(a, first));
    let to_parents = starts.filter_map(|first| {
        let walked = uncovered_walks(graph, a, first, MixedGraph::may_be_directed);
        let parents = walked.iter().map(|edge| edge.to);
        let parents: Vec<usize> = parents.filter(|&node| graph.is_directed(node, c)).collect();
        (!parents.is_empty()).then_some((first, parents))
    });
    let to_parents: Vec<_> = to_parents.collect();
    to_parents.iter().any(|(first, parents)| {
        to_parents.iter().any(|(other, theirs)| {
            let apart = first != other && !graph.adjacent(*first, *other);
            apart && parents.iter().any(|b| theirs.iter().any(|d| b != d))
        })
    })
}
