//! Table 5: the classes of nodes of three citation graphs.
//!
//! The paper says "ten-fold cross validations" and quotes the line of GAT, which is that of a hundred
//! runs on the split that the graphs were published with. So everything runs on that split, and runs
//! differ in their seeds; all models of a seed start from it. Accuracies are kept as error rates.

mod criteria;
mod graphs;
mod identity;
mod model;
mod norms;
mod plan;
pub mod report;
mod trial;

pub use criteria::{checks, claims};
pub use graphs::Nodes;
pub use model::Model;
pub use norms::Norms;
pub use plan::{Arm, Cut, Plan};

use crate::published;
use bochner_datasets::PlanetoidSet;

/// The table's name in rows and reports.
pub const TABLE: &str = "Table 5";

/// The suite's name on the command line.
pub const SUITE: &str = "nodes";

/// The name that the paper's table gives a graph.
pub fn title(set: PlanetoidSet) -> &'static str {
    let column = PlanetoidSet::ALL.iter().position(|other| *other == set);
    published::NODE_SETS[column.unwrap_or_default()]
}

/// An error rate as an accuracy in per cent.
pub fn accuracy(error: f64) -> f64 {
    100.0 * (1.0 - error)
}
