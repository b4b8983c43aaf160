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
mod softmax;
mod squared;

pub use expsin::Expsin;
pub use ikan_direct::IkanDirect;
pub use linear::Linear;
pub use mikan::{Mikan, MikanGradients};
pub use rbf_only::RbfOnly;
pub use softmax::Softmax;

/// Settings are written down without what is usual, so that what was written down before there was a
/// choice still says the same.
fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
