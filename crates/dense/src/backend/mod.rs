//! Factorisations of matrices that lie column by column in a slice, by faer or by LAPACK.
//!
//! The entries above a factor's diagonal are zero and never read.

#[cfg(not(feature = "lapack"))]
mod pure;
#[cfg(feature = "lapack")]
mod system;

#[cfg(not(feature = "lapack"))]
pub(crate) use pure::{eigen, eigenvalues, factor, inverse, solve, svd, whiten};
#[cfg(feature = "lapack")]
pub(crate) use system::{eigen, eigenvalues, factor, inverse, solve, svd, whiten};

/// Left vectors, values and right vectors.
pub(crate) type Singular = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Sets the entries above the diagonal to zero; a factorisation in place leaves its input there.
fn clear_above_diagonal(a: &mut [f64], order: usize) {
    for (j, column) in a.chunks_exact_mut(order.max(1)).enumerate() {
        column[..j].fill(0.0);
    }
}
