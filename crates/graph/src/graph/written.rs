//! A graph as it is written down: its edges in the caller's order.

use super::Graph;
use crate::Error;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenGraph {
    targets: usize,
    sources: usize,
    /// Pairs (source, target).
    edges: Vec<(usize, usize)>,
}

impl From<Graph> for WrittenGraph {
    fn from(graph: Graph) -> Self {
        Self {
            targets: graph.targets(),
            sources: graph.sources(),
            edges: graph.edges(),
        }
    }
}

impl TryFrom<WrittenGraph> for Graph {
    type Error = Error;

    fn try_from(written: WrittenGraph) -> Result<Self, Error> {
        Self::bipartite(written.targets, written.sources, written.edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_survives_and_a_wrong_one_does_not() {
        let graph = Graph::bipartite(2, 3, [(2, 0), (0, 1), (2, 0)]).unwrap();
        let text = serde_json::to_string(&graph).unwrap();
        assert_eq!(
            text,
            r#"{"targets":2,"sources":3,"edges":[[2,0],[0,1],[2,0]]}"#
        );
        assert_eq!(serde_json::from_str::<Graph>(&text).unwrap(), graph);
        let wrong = text.replace("[0,1]", "[3,1]");
        let error = serde_json::from_str::<Graph>(&wrong).unwrap_err();
        assert!(error.to_string().contains("edge 1 has source 3"), "{error}");
        assert!(serde_json::from_str::<Graph>(r#"{"targets":2}"#).is_err());
    }
}
