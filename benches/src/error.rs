//! What can go wrong.

/// Anything: measurements are made at a desk, and whoever reads the message is there.
pub type Error = Box<dyn std::error::Error>;
