//! The tests of bochner-numerics.

mod accuracy;
mod argument;
mod buffers;
mod check;
#[cfg(feature = "ndarray")]
mod check_arrays;
mod elementary;
mod fourier;
mod instructions;
mod memory;
mod normal;
mod norms;
mod number;
mod operations;
mod parallel;
mod product;
mod random;
mod scaling;
