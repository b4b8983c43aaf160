//! The mechanisms, a file each.

mod closed;
mod expsin;
pub(crate) mod ika_ns;
pub(crate) mod ika_s;
pub(crate) mod ikan;
mod ikan_direct;
mod linear;
mod mikan;
mod rbf_only;
mod released;
mod softmax;
mod squared;

pub use expsin::Expsin;
pub use ikan_direct::IkanDirect;
pub use linear::Linear;
pub use mikan::{Copula, Draw, Mikan, MikanGradients, Posterior};
pub use rbf_only::RbfOnly;
pub use softmax::Softmax;
pub(crate) use squared::Sets;
pub use squared::{Preset, Stationarity};
