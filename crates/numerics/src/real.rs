//! The real numbers everything is generic over.

use num_traits::{Float, FloatConst, NumAssign};
use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;

/// A floating-point number: `f32` or `f64`.
///
/// The trait is sealed: the matrix kernels and the tolerance table know exactly these two types.
pub trait Real:
    Float
    + FloatConst
    + NumAssign
    + Sum
    + Default
    + Debug
    + Display
    + LowerExp
    + Send
    + Sync
    + 'static
    + sealed::Sealed
{
    /// Name of the type, `"f32"` or `"f64"`.
    const NAME: &'static str;

    /// The nearest representable number.
    fn of(x: f64) -> Self;

    /// The number in double precision, which is exact.
    fn as_f64(self) -> f64;
}

mod sealed {
    use crate::elementary::lane::Lane;
    use crate::fourier::planned::Planned;

    pub trait Sealed: Lane + Planned {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    const NAME: &'static str = "f32";

    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }

    #[inline(always)]
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";

    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }

    #[inline(always)]
    fn as_f64(self) -> f64 {
        self
    }
}
