//! Table 1: the complexity of the attention weights, counted exactly and timed.
//!
//! A complexity is a statement about numbers of operations, so they are counted
//! ([`bochner_numerics::operations`]): of a whole layer, projections included, for every mechanism
//! of the registry. Polynomials in T, R and d are put through the counts on a grid in exact
//! arithmetic; they must give the counts at other points too, without tolerance, and every one of
//! their terms that grows with T must be bounded by a term that the paper prints. The clock comes
//! second, at the larger scales: slopes of the logarithms of time and length.

mod class;
mod clock;
mod counts;
mod kernel;
mod polynomial;
mod report;
mod timing;

pub(crate) use report::run;

/// The suite's name on the command line.
pub const SUITE: &str = "complexity";
