//! The trade-off between depth and width of self-attention.

mod modular;
mod network;
mod threshold;

pub use network::{ModularNetwork, Readout, SeparationRank, separation_rank};
pub use threshold::{DepthFit, depth_threshold, log3_separation_bound, parameter_count};
