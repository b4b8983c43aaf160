//! Elementary functions of whole slices: [`exp_in_place`], [`ln_in_place`], [`sin_cos`],
//! [`normal_cdf_in_place`], [`normal_quantile_in_place`]; norms: [`p_norms_into`], [`max_norm`],
//! [`SquaredNorms`].
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
//! largest error found.
//!
//! | | `f32` | `f64` | tested on |
//! |---|---|---|---|
//! | [`exp_in_place`] | 1 (0.97) | 1 (0.85) | every `f32`, a few million `f64` |
//! | [`sin_cos`] | 1 (0.97) | 1 (0.96) | every thirteenth `f32`, a few million `f64` |
//! | [`ln_in_place`] | 1.5 (0.87) | 1.5 (0.89) | some hundred thousand numbers |
//! | $x^p$ in the norms | 1 (0.98) | 1.5 (1.12) | some million bases, a few exponents |
//! | [`normal_cdf_in_place`] | 5 (3.3) | 5 (4.0) | some ten thousand numbers |
//! | [`normal_quantile_in_place`] | 4 (3.0) | 4 (3.1) | some ten thousand numbers |
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

pub(crate) mod arithmetic;
pub(crate) mod block;
pub(crate) mod exponential;
pub(crate) mod hyperbolic_tangent;
pub(crate) mod instruction_set;
pub(crate) mod lane;
pub(crate) mod logarithm;
pub(crate) mod norm;
pub(crate) mod normal;
pub(crate) mod power;
pub(crate) mod power_of_two;
pub(crate) mod squared_norms;
pub(crate) mod trigonometry;

pub use exponential::exp_in_place;
pub use logarithm::ln_in_place;
pub use norm::{PNorm, max_norm, p_norms_into};
pub use normal::{normal_cdf_in_place, normal_quantile_in_place};
pub use squared_norms::{SquaredNorms, log_squares};
pub use trigonometry::sin_cos;
