//! The errors of this crate.

/// Any error. Nobody handles these errors: the person at the desk reads the message.
pub type Error = Box<dyn std::error::Error>;
