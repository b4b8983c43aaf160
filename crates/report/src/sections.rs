//! The parts that reports are put together from.

mod adequacy;
mod averages;
mod choice;
mod comparison;
mod control;
pub mod heads;
mod order;
mod pictures;
mod tables;

pub(crate) use adequacy::alarms;
pub use adequacy::gates;
pub use averages::averaged_over_sets;
pub(crate) use averages::behind_verdicts;
pub use choice::{ChosenBy, chosen_norms, chosen_on_each_split, chosen_settings, waiting};
pub use comparison::{Comparison, against_baseline};
pub use control::control;
pub use order::order_of_rows;
pub use pictures::pictures_of_the_first_split;
pub use tables::{
    BESIDE_BOTH, BESIDE_R, Column, Columns, NAMES, NAMES_AND_PRESET, OWN, against_paper,
    own_measures, own_numbers,
};

/// Instead of a finding on a set that the baseline is not good enough on.
const NOT_ADEQUATE: &str = "set-up not adequate";

/// The content of a cell without value.
pub const NOTHING: &str = "-";
