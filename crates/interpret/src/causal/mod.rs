//! Which tokens cause which, as far as attention tells.

mod correlations;
mod ordered;
mod partial_correlation;

pub use correlations::{Correlations, ValueCovariance};
pub use ordered::{OrderedSem, sem_from_attention};
pub use partial_correlation::FisherTest;
