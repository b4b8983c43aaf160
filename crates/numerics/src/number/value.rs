//! Numbers without a slope.

use super::Number;
use crate::Real;
use crate::elementary::arithmetic::Arithmetic;
use crate::elementary::exponential::exponential;
use crate::elementary::hyperbolic_tangent::tanh;
use crate::elementary::logarithm::ln;
use crate::elementary::power::power;
use crate::elementary::trigonometry::bounded_sin_cos;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number in the arithmetic of an instruction set.
pub struct Value<T, A>(T, PhantomData<A>);

impl<T, A> Value<T, A> {
    /// The number `x`.
    #[inline(always)]
    pub fn new(x: T) -> Self {
        Self(x, PhantomData)
    }

    /// The number without its arithmetic.
    #[inline(always)]
    pub fn get(self) -> T {
        self.0
    }
}

// Derived, these would ask the arithmetic for the same traits.

impl<T: Copy, A> Copy for Value<T, A> {}

impl<T: Copy, A> Clone for Value<T, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: fmt::Debug, A> fmt::Debug for Value<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Value").field(&self.0).finish()
    }
}

macro_rules! operators {
    ($($Operator:ident::$method:ident($($other:ident)?);)*) => {$(
        impl<T: Real, A: Arithmetic> $Operator for Value<T, A> {
            type Output = Self;

            #[inline(always)]
            fn $method(self $(, $other: Self)?) -> Self {
                Self::new(self.0.$method($($other.0)?))
            }
        }
    )*};
}

operators! {
    Add::add(other);
    Sub::sub(other);
    Mul::mul(other);
    Div::div(other);
    Neg::neg();
}

macro_rules! functions {
    ($($name:ident: |$x:ident| $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            let $x = self.0;
            Self::new($value)
        }
    )*};
}

impl<T: Real, A: Arithmetic> Number for Value<T, A> {
    functions! {
        exp: |x| exponential::<T, A>(x, T::zero());
        ln: |x| ln::<T, A>(x);
        sqrt: |x| x.sqrt();
        tanh: |x| tanh::<T, A>(x);
        sin: |x| bounded_sin_cos::<T, A>(x).0;
        cos: |x| bounded_sin_cos::<T, A>(x).1;
        abs: |x| x.abs();
    }

    #[inline(always)]
    fn of(x: f64) -> Self {
        Self::new(T::of(x))
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        Self::new(power::<T, A>(self.0, exponent.0))
    }

    #[inline(always)]
    fn if_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        if self.0 < other.0 { then } else { otherwise }
    }
}
