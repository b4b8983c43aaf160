//! Dense linear algebra in double precision: Cholesky factors, symmetric eigenvalues, singular values.
//!
//! Gaussian processes and copulas factorise symmetric matrices of a few to a few thousand rows. This
//! crate is the one place where they do it: [`Cholesky`] solves, inverts and names the pivot where
//! positive definiteness ends; [`symmetric_eigen`] and [`svd`] decompose. Arguments and results are
//! ndarray's, re-exported as [`ndarray`], and every failure is a typed [`Error`].
//!
//! # Features
//!
//! Matrices are factorised by faer, which needs no C and no system library, on the calling thread, so
//! that results do not depend on the number of threads. The feature `lapack` has the system's OpenBLAS
//! do it instead, through ndarray-linalg (Debian: `libopenblas-dev`). The results of the two agree to
//! about 1e-10 of their size on matrices with a condition of up to 1e4; the tests compare them.
//! OpenBLAS has threads of its own, and its last digits depend on how many: `OPENBLAS_NUM_THREADS`
//! sets the number.
//!
//! # Example
//!
//! ```
//! use bochner_dense::{Cholesky, Error, svd, symmetric_eigen};
//! use bochner_dense::ndarray::{Axis, array};
//!
//! let a = array![[4.0, 2.0], [2.0, 5.0]];
//! let factor = Cholesky::new(a.view())?;
//! assert_eq!(factor.lower(), array![[2.0, 0.0], [1.0, 2.0]]);
//! let mut b = array![8.0, 12.0];
//! factor.solve(b.view_mut().insert_axis(Axis(0)))?;
//! assert_eq!(b, array![1.0, 2.0]);
//!
//! // The third row is the sum of the others, less two.
//! let a = array![[4.0, 2.0, 6.0], [2.0, 5.0, 7.0], [6.0, 7.0, 11.0]];
//! let error = Cholesky::new(a.view()).unwrap_err();
//! assert!(matches!(error, Error::NotPositiveDefinite { row: 2, pivot: -2.0, .. }));
//!
//! let eigen = symmetric_eigen(array![[2.0, 1.0], [1.0, 2.0]].view())?;
//! assert!((eigen.values[0] - 1.0).abs() < 1e-14 && (eigen.values[1] - 3.0).abs() < 1e-14);
//! let svd = svd(array![[3.0, 0.0, 0.0], [0.0, 0.0, -4.0]].view())?;
//! assert!((svd.s[0] - 4.0).abs() < 1e-14 && (svd.s[1] - 3.0).abs() < 1e-14);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `cholesky` | [`Cholesky`] |
//! | `symmetric` | [`symmetric_eigen`], [`symmetric_eigenvalues`], [`symmetrised`] |
//! | `singular` | [`svd`] |
//! | `error` | [`Error`] |

mod backend;
mod cholesky;
mod error;
mod singular;
mod symmetric;

pub use cholesky::Cholesky;
pub use error::Error;
pub use ndarray;
pub use singular::{Svd, svd};
pub use symmetric::{SymmetricEigen, symmetric_eigen, symmetric_eigenvalues, symmetrised};
