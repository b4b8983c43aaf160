//! placeholder
/// x
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {}
