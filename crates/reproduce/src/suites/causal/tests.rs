//! Tests of the comparison of graphs, and of those that are left out.

use super::*;
use ndarray::array;

#[test]
fn graphs_agree_in_their_pairs_and_perhaps_in_their_marks() {
    let directed = |edges: &[(usize, usize)]| MixedGraph::directed(3, edges).unwrap();
    let (chain, collider) = (directed(&[(0, 1), (1, 2)]), directed(&[(0, 1), (2, 1)]));
    let (one, none) = (directed(&[(0, 1)]), directed(&[]));
    for (found, truth, want) in [
        (&chain, &chain, (1.0, true, true)),
        (&chain, &collider, (1.0, true, false)),
        (&one, &chain, (2.0 / 3.0, false, false)),
        (&chain, &one, (2.0 / 3.0, false, false)),
        (&none, &one, (0.0, false, false)),
        (&none, &none, (1.0, true, true)),
    ] {
        let seen = agreement(found, truth);
        assert_eq!(
            (seen.f1, seen.skeleton, seen.whole),
            want,
            "{found}; {truth}"
        );
    }
}

/// Graphs are left out where paths nearly cancel. A wrong answer leaves none out.
#[test]
fn a_wrong_answer_is_counted_and_leaves_no_graph_out() {
    for (weight, zero, wrong, near) in [(1.0, ZERO, 0, 0), (1.0, 0.9, 1, 0), (1e-7, ZERO, 0, 1)] {
        let model = Model {
            graph: MixedGraph::directed(3, &[(0, 1), (1, 2)]).unwrap(),
            effects: array![
                [1.0, 0.0, 0.0],
                [weight, 1.0, 0.0],
                [weight * weight, weight, 1.0]
            ],
        };
        let correlations = model.correlations(ValueCovariance::Identity).unwrap();
        let oracle = Separation::new(&model.graph, &[0, 1, 2], &[]).unwrap();
        let watched = Watched {
            correlations: &correlations,
            exact: ZeroCorrelation::new(&correlations, zero).unwrap(),
            oracle: &oracle,
            seen: Cell::default(),
        };
        watched.independent(0, 1, &[]).unwrap();
        let seen = watched.seen.get();
        assert_eq!((seen.questions, seen.wrong, seen.near), (1, wrong, near));
    }
}
