//! Causal discovery: the causes among tokens, as far as attention shows them.

mod correlations;
mod explanation;
mod graph;
mod independence;
mod ordered;
mod orientation;
mod partial_correlation;
mod possible_d_sep;
mod samples;
mod search;
mod separation;
mod tails;
mod values;

pub use correlations::Correlations;
pub use explanation::smallest_explanation;
pub use graph::{Mark, MixedGraph};
pub use independence::{FisherZ, Independence, ZeroCorrelation};
pub use ordered::{OrderedSem, sem_from_attention};
pub use partial_correlation::FisherTest;
pub use search::CausalStructure;
pub use separation::Separation;
pub use values::ValueCovariance;
