//! Depth and width.

mod network;
mod threshold;
