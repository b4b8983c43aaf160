//! Elementary functions of whole slices: [`exp`], [`ln_in_place`], [`sin_cos`], [`powf`], [`normal_cdf`],
//! [`normal_quantile`]; norms: [`p_norms`], [`max_norm`], [`SquaredNorms`].
//!
//! The standard library computes one number at a time, through a call that no compiler can
//! vectorise. Here each function is a polynomial without branches, written once, generic over
//! the type, and compiled once per instruction set: AVX-512, AVX2 with FMA, NEON, and whatever the
//! target has without asking. The best one the processor knows is chosen at run time.
//!
//! An element's result depends on that element alone: not on its place in the slice, on the
//! slice's length or alignment, on the thread, or on the run. It may differ by an ulp from one
//! instruction set to another, because only some have the fused multiply-add.
//!
//! # Numerics
//!
//! Bounds on the error over the whole range in units in the last place, and in brackets the
//! largest error found: of [`exp`] on every `f32`, of [`sin_cos`] on every thirteenth, on a few
//! million numbers in `f64`, of [`ln_in_place`] on some hundred thousand, for [`powf`] on some millions
//! of bases with a few exponents, for the last two on some ten thousand numbers.
//!
//! | | `f32` | `f64` |
//! |---|---|---|
//! | [`exp`] | 1 (0.97) | 1 (0.85) |
//! | [`sin_cos`] | 1 (0.97) | 1 (0.96) |
//! | [`ln_in_place`] | 1.5 (0.87) | 1.5 (0.89) |
//! | [`powf`] | 1 (0.98) | 1.5 (1.12) |
//! | [`normal_cdf`] | 5 (3.3) | 5 (4.0) |
//! | [`normal_quantile`] | 4 (3.0) | 4 (3.1) |
//!
//! # Example
//!
//! ```
//! use bochner_numerics::elementary;
//!
//! let x = [0.0_f64, 1.0, 1e5];
//! let (mut sin, mut cos) = ([0.0; 3], [0.0; 3]);
//! elementary::sin_cos(&x, &mut sin, &mut cos);
//! for i in 0..3 {
//!     assert!((sin[i] - x[i].sin()).abs() < 1e-15);
//!     assert!((cos[i] - x[i].cos()).abs() < 1e-15);
//! }
//! ```

#[cfg(test)]
mod accuracy;
pub(crate) mod arithmetic;
pub(crate) mod block;
pub(crate) mod exponential;
pub(crate) mod instruction_set;
pub(crate) mod lane;
pub(crate) mod logarithm;
pub(crate) mod norm;
pub(crate) mod normal;
pub(crate) mod power;
pub(crate) mod power_of_two;
pub(crate) mod squared_norms;
pub(crate) mod trigonometry;

pub use exponential::{exp, exp_in_place};
pub use logarithm::ln_in_place;
pub use norm::{PNorm, max_norm, p_norms, p_norms_into, signed_powers};
pub use normal::{normal_cdf, normal_cdf_in_place, normal_quantile, normal_quantile_in_place};
pub use power::powf;
pub use squared_norms::{SquaredNorms, log_squares};
pub use trigonometry::sin_cos;
