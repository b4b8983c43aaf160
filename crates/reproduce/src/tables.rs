//! One module per table of the paper.

pub mod regression;
