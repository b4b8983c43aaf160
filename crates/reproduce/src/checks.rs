//! Checks of scale `smoke` that look at more than rows.

pub(crate) mod graphs;
pub(crate) mod sentences;
