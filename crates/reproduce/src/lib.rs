//! Placeholder.
mod base64;
mod error;
mod progress;
pub mod runner;
pub mod store;
pub mod trial;
pub mod unit;

pub use error::Error;
pub use store::Store;
pub use trial::{Suite, Trial};
pub use unit::{Preset, Protocol, Scale, Settings, Shard, Unit};
pub mod published;
pub mod statistics;
