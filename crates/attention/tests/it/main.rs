//! The properties of attention, of its mechanisms and of its layer.

mod conformance;
#[cfg(feature = "dfdx")]
mod layer;
