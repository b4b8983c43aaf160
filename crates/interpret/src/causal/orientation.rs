//! The rules that put arrows to a skeleton.

use super::search::SeparatingSets;
use super::{Mark, MixedGraph};
use std::collections::VecDeque;

/// Replaces circles by the rules R0 to R4 until none applies; the arrows are then all that can be known.
///
/// # Reference
/// Zhang, *On the completeness of orientation rules for causal discovery in the presence of latent confounders and
/// selection bias*, 2008.
pub(super) fn orient(graph: &mut MixedGraph, separators: &SeparatingSets) {
    unshielded_colliders(graph, separators);
    let more = |graph: &mut MixedGraph| {
        away_from_colliders(graph)
            | along_chains(graph)
            | double_triangles(graph)
            | discriminating_paths(graph, separators)
    };
    while more(graph) {}
}

/// R0: where $a$ and $c$ were separated without $b$, $a {\ast}{\to} b {\leftarrow}{\ast} c$.
fn unshielded_colliders(graph: &mut MixedGraph, separators: &SeparatingSets) {
    for (a, b, c) in graph.triples() {
        if graph.adjacent(a, c) || separators.between(a, c).contains(&b) {
            continue;
        }
        graph.orient(b, a, Mark::Arrow);
        graph.orient(b, c, Mark::Arrow);
    }
}

/// R1: $a {\ast}{\to} b$ and $b {\circ}{-}{\ast} c$ with $a$ and $c$ not adjacent become $b \to c$: otherwise $b$ would
/// have been found to be a collider.
fn away_from_colliders(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [a, b, c]| {
        let applies =
            !graph.adjacent(a, c) && graph.has(Mark::Arrow, b, a) && graph.has(Mark::Circle, b, c);
        applies && (graph.orient(b, c, Mark::Tail) | graph.orient(c, b, Mark::Arrow))
    })
}

/// R2: where $a \to b {\ast}{\to} c$ or $a {\ast}{\to} b \to c$, the edge $a {\ast}{-}{\circ} c$ has an arrow at $c$:
/// otherwise there would be a cycle.
fn along_chains(graph: &mut MixedGraph) -> bool {
    graph.apply_to_triples(|graph, [a, b, c]| {
        let applies = graph.adjacent(a, c)
            && graph.has(Mark::Arrow, b, a)
            && graph.has(Mark::Arrow, c, b)
            && (graph.has(Mark::Tail, a, b) || graph.has(Mark::Tail, b, c));
        applies && graph.orient(c, a, Mark::Arrow)
    })
}

/// R3: where $a {\ast}{\to} b {\leftarrow}{\ast} c$ and $a {\ast}{-}{\circ} d {\circ}{-}{\ast} c$ with $a$ and $c$ not
/// adjacent, the edge $d {\ast}{-}{\circ} b$ has an arrow at $b$.
fn double_triangles(graph: &mut MixedGraph) -> bool {
    let mut changed = false;
    for (a, b, c) in graph.triples() {
        let collider = graph.has(Mark::Arrow, b, a) && graph.has(Mark::Arrow, b, c);
        if !collider || graph.adjacent(a, c) {
            continue;
        }
        for d in graph.neighbours(b) {
            if graph.has(Mark::Circle, d, a) && graph.has(Mark::Circle, d, c) {
                changed |= graph.orient(b, d, Mark::Arrow);
            }
        }
    }
    changed
}

/// R4: at the end of a path that discriminates $b$, from $d$ over $a$ and $b$ to $c$, the edge
/// $b {\circ}{-}{\ast} c$ is $b \to c$ if $b$ separated $d$ and $c$, and $b$ is a collider otherwise.
fn discriminating_paths(graph: &mut MixedGraph, separators: &SeparatingSets) -> bool {
    let mut changed = false;
    for (a, b, c) in graph.triples() {
        if !graph.has(Mark::Circle, b, c) {
            continue;
        }
        let Some(start) = start_of_discriminating_path(graph, a, b, c) else {
            continue;
        };
        changed |= if separators.between(start, c).contains(&b) {
            graph.orient(b, c, Mark::Tail) | graph.orient(c, b, Mark::Arrow)
        } else {
            let at_b = graph.orient(b, a, Mark::Arrow) | graph.orient(b, c, Mark::Arrow);
            at_b | graph.orient(c, b, Mark::Arrow)
        };
    }
    changed
}

/// The node $d$, not adjacent to $c$, of the shortest path $d, \dots, a, b, c$ on which every node between $d$ and
/// $b$ is a collider and a parent of $c$.
fn start_of_discriminating_path(graph: &MixedGraph, a: usize, b: usize, c: usize) -> Option<usize> {
    let mut seen = vec![false; graph.nodes()];
    for node in [b, c] {
        seen[node] = true;
    }
    // Nodes with an arrow from the next one towards b, which are colliders if one comes from before.
    let mut open = VecDeque::from([(a, b)]);
    while let Some((node, after)) = open.pop_front() {
        let is_collider = graph.has(Mark::Arrow, node, after);
        if seen[node] || !is_collider || !graph.is_directed(node, c) {
            continue;
        }
        // Only here: a node that one way reaches as no collider may be one on another.
        seen[node] = true;
        let before = graph.neighbours(node);
        for before in before.filter(|&before| graph.has(Mark::Arrow, node, before)) {
            if before != b && before != c && !graph.adjacent(before, c) {
                return Some(before);
            }
            open.push_back((before, node));
        }
    }
    None
}
