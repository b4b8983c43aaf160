//! Mechanisms for `f32` and `f64`, compiled with this crate.
//!
//! Where the profile's `opt-level` is below 2, a program uses what the crates below it have compiled of a generic
//! function. So the mechanisms are compiled once rather than once for each program of tests and each crate above. A
//! release build shares nothing, and leaves this out.

use crate::{Mechanism, Variant};

#[used]
static SINGLE: fn(&Variant) -> &dyn Mechanism<f32> = Variant::mechanism;
#[used]
static DOUBLE: fn(&Variant) -> &dyn Mechanism<f64> = Variant::mechanism;
