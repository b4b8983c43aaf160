//! The errors of this crate.

/// Any error. A person reads its message; no code handles it.
pub type Error = Box<dyn std::error::Error>;
