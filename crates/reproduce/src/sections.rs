//! The parts that reports are put together from.

mod choice;
mod comparison;
mod edges;
mod heads;
mod pictures;
mod tables;

pub use choice::{chosen_norms, chosen_on_each_split, chosen_settings, waiting};
pub use comparison::{Comparison, against_baseline};
pub use edges::heads_along_edges;
pub use pictures::pictures_of_the_first_split;
pub use tables::{BESIDE_R, Column, Columns, OWN, against_paper, own_numbers};

/// Instead of a finding on a set that the baseline is not good enough on.
const NOT_ADEQUATE: &str = "set-up not adequate";

/// What stands in a cell without value.
pub const NOTHING: &str = "-";
