//! One module per table of the paper.

mod claim;
pub mod nodes;
pub mod regression;
mod results;

pub use claim::{Check, Claim, Mark};
pub use results::{Number, Results};
