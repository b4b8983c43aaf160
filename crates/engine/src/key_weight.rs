//! Weights of keys, beside their scores.

use crate::Error;
use crate::kernel::HeadRows;
use bochner_numerics::Real;
use std::fmt::Debug;

/// A log-weight $u_j$ of each key: every weight $a_{ij}$ is multiplied by $e^{u_j}$.
///
/// Log-weights are double-precision numbers, and may be as far apart as these go: rows are relative to the largest that
/// they see.
pub trait KeyWeight<T: Real>: Debug + Send + Sync + 'static {
    /// Checks the settings.
    ///
    /// # Errors
    /// Whatever is out of range.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends the log-weights of some keys: finite numbers.
    fn log_weights(&self, keys: HeadRows<T>, out: &mut Vec<f64>);

    /// Adds to `out`, `[n, d]`, the gradients along the keys, given those along their log-weights.
    fn pull(&self, keys: HeadRows<T>, cotangents: &[T], out: &mut [T]);
}
