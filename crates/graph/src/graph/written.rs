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
