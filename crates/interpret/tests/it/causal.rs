//! Causal structure.

mod correlations;
mod enumeration;
mod explanation;
mod graph;
mod in_order;
mod independence;
mod ordered;
mod partial_correlation;
mod samples;
mod search;
mod separation;
mod testing;
