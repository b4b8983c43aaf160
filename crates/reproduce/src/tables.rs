//! One module per table of the paper.

mod account;
mod arms;
mod claim;
mod cut;
mod heads;
pub mod nodes;
pub(crate) mod projection;
pub mod regression;
mod results;
mod skipped;

pub use account::Account;
pub use claim::{Check, Claim, Mark};
pub use cut::Cut;
pub use results::{Number, Results};
pub use skipped::{Remedy, Skipped};
