//! Attention for `f32` and `f64`, compiled with this crate.
//!
//! Where the profile's `opt-level` is below 2, a program uses what the crates below it have compiled of a generic
//! function. So the engine, whose compilation takes longer than everything else, is compiled once rather than
//! once for each program of tests and each crate above. A release build shares nothing, and leaves this out.

use crate::{
    Decoder, Error, Gradients, Output, Paths, Saved, Settings, Wanted, attend, attend_vjp,
};
use bochner_numerics::Real;
use ndarray::{ArrayView4, ArrayViewMut4};

type Input<'a, T> = ArrayView4<'a, T>;

/// Functions that between them use all of the engine: whoever compiles these compiles it.
#[expect(dead_code, reason = "not to be called, only compiled")]
struct Instances<T: Real> {
    attend: Attend<T>,
    attend_vjp: AttendVjp<T>,
    decode: Decode<T>,
}

type Attend<T> =
    fn(&Settings<T>, Input<T>, Input<T>, Input<T>) -> Result<(Output<T>, Saved<T>), Error>;
type AttendVjp<T> = fn(
    &Settings<T>,
    &Saved<T>,
    Input<T>,
    Input<T>,
    Input<T>,
    Input<T>,
    Wanted,
) -> Result<Gradients<T>, Error>;
type Decode<T> = fn(
    &mut Decoder<T>,
    [Input<T>; 3],
    Option<&[usize]>,
    Option<&Paths>,
    ArrayViewMut4<T>,
) -> Result<(), Error>;

impl<T: Real> Instances<T> {
    const ALL: Self = Self {
        attend,
        attend_vjp,
        decode: Decoder::step_into,
    };
}

#[used]
static SINGLE: Instances<f32> = Instances::ALL;
#[used]
static DOUBLE: Instances<f64> = Instances::ALL;
