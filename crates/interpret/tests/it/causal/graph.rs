//! Graphs with marks at the ends of their edges.

use super::testing::parsed;
use bochner_interpret::{Error, MixedGraph};

#[test]
fn graphs_are_read_as_they_are_printed() {
    let text = "0 o-> 1, 0 --- 3, 1 <-> 2, 2 <-o 3";
    assert_eq!(parsed(4, text).to_string(), text);
}

#[test]
fn edges_that_make_no_graph_are_refused() {
    let of = |edges: &[(usize, usize)]| MixedGraph::directed(2, edges);
    let error = of(&[(0, 2)]).unwrap_err();
    assert!(matches!(error, Error::Argument(_)));
    assert!(
        error.to_string().starts_with("`edges` holds the index 2"),
        "{error}"
    );
    for (edges, ends) in [(&[(1, 1)][..], [1, 1]), (&[(0, 1), (1, 0)], [1, 0])] {
        let refused = of(edges);
        assert!(matches!(refused, Err(Error::RepeatedEdge { nodes }) if nodes == ends));
    }
}
