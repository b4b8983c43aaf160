//! The ground floor of bochner: real numbers, matrix products, work splitting and random streams.
//!
//! Every crate of the workspace computes on [`Real`] (`f32` or `f64`), multiplies matrices with
//! [`matmul`], splits work with [`parallel`], and draws random numbers from a [`Stream`] that is
//! opened by purpose, so that a changed number of draws in one place changes nothing elsewhere.
//!
//! Two rules hold throughout:
//!
//! * **Results do not depend on the number of threads.** Work is split by the problem's shape,
//!   never by the pool's size, and reductions run in a fixed order.
//! * **All `unsafe` code of the workspace is in this crate**: the tiles of [`matmul`], the dispatch to
//!   instruction sets, uninitialised buffers and huge pages ([`memory`]), and the counting allocator
//!   ([`allocations`]).
//!
//! # Example
//!
//! ```
//! use bochner_numerics::{Mat, MatMut, Seed, matmul, standard_normal};
//!
//! let mut stream = Seed::new(7).stream("weights");
//! let w: Vec<f32> = (0..6).map(|_| standard_normal(&mut stream)).collect();
//! let x = [1.0, 2.0, 3.0];
//!
//! let mut y = [0.0_f32; 2];
//! // y = W x, with W of shape [2, 3].
//! matmul(1.0, Mat::new(&w, 2, 3), Mat::new(&x, 3, 1), 0.0, MatMut::new(&mut y, 2, 1));
//! assert!((y[0] - (w[0] + 2.0 * w[1] + 3.0 * w[2])).abs() < 1e-5);
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`real`] | [`Real`], the numbers everything is generic over |
//! | [`matrix`] | [`Mat`], [`MatMut`] |
//! | [`product`] | [`matmul`], [`Panels`] |
//! | [`elementary`] | functions of whole slices: exponential, sine, normal distribution; norms of rows |
//! | [`normal`] | the normal distribution, one number at a time |
//! | [`number`] | [`Number`], [`Value`] and [`Dual`]: a function written once, for its values and its slopes |
//! | [`instructions`] | work compiled for AVX-512, AVX2 and what the target has anyway |
//! | [`memory`] | keeping freed memory for the next step, large pages, memory that is not cleared |
//! | [`argument`] | [`ArgumentError`], the one spelling of what is wrong with an argument |
//! | [`allocations`] | counting allocations, for tests |
//! | [`buffers`] | [`Buffers`], memory for the next computation of the same kind |
//! | [`parallel`] | splitting work over rayon's current pool |
//! | [`operations`] | counting multiplications, exponentials, sines and powers |
//! | [`fourier`] | [`Fourier`], transforms of real numbers |
//! | `fingerprint` | [`fingerprint()`], a hash that stays the same |
//! | [`random`] | [`Seed`], [`Stream`], [`DropoutMask`] |
//! | [`scaling`] | bounds that keep a backward pass free of infinities |
//! | [`check`] | finite differences and the one table of tolerances |

pub mod allocations;
pub mod argument;
pub mod buffers;
pub mod check;
pub mod elementary;
mod fingerprint;
pub mod fourier;
pub mod lists;
pub mod matrix;
pub mod memory;
pub mod normal;
pub mod number;
pub mod operations;
pub mod parallel;
pub mod product;
pub mod random;
pub mod real;
#[cfg(feature = "ndarray")]
pub mod row_major;
pub mod scaling;

/// Work compiled once for each instruction set, the best of which is chosen at run time.
pub mod instructions {
    pub use crate::elementary::arithmetic::Arithmetic;
    pub use crate::elementary::instruction_set::{
        Task, VARIABLE, available, name, run, run_counting_bits,
    };
    pub use crate::elementary::power_of_two::exp2;
}

pub use argument::ArgumentError;
pub use buffers::{Buffer, Buffers};
pub use check::{Tolerance, finite_difference, relative_error};
pub use fingerprint::fingerprint;
pub use fourier::Fourier;
pub use matrix::{Mat, MatMut};
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use number::{Dual, Number, Value};
pub use operations::Operations;
pub use product::{Panels, matmul, matmul_in};
pub use rand;
pub use random::{
    DropoutMask, Seed, Stream, StreamState, fill_standard_normal, standard_normal, uniform_within,
};
pub use real::Real;
