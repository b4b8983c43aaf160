//! Weights from and for other libraries.

mod error;
mod name_table;
mod state_dict;

pub use error::WeightsError;
pub use name_table::{NameTable, Place, Reshape};
pub use state_dict::StateDict;
