//! The mechanisms, a file each.

mod ikan_direct;
mod mikan;
mod released;
mod softmax;
mod squared;

pub use ikan_direct::IkanDirect;
pub use mikan::{Copula, Draw, Mikan, MikanGradients};
pub use softmax::Softmax;
pub use squared::Preset;
