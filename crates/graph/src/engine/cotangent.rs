//! Cotangents in units in which nothing overflows.

use crate::error::within;
use crate::settings::{Merge, Shape};
use crate::{Error, error};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, parallel};
use ndarray::ArrayView2;
use std::borrow::Cow;

/// The cotangent of each head's output, in units of a power of two.
pub(crate) struct Cotangent<'a, T: Clone> {
    /// `[Nt, H F]`.
    pub(crate) heads: Cow<'a, [T]>,
    unit: T,
}

impl<'a, T: Real> Cotangent<'a, T> {
    pub(crate) fn new(given: ArrayView2<'a, T>, merge: Merge, shape: Shape) -> Result<Self, Error> {
        let dim = [given.nrows(), given.ncols()];
        let given = super::elements(given);
        let unit = unit(&given, error::largest::<T>());
        error::finite("cotangent", &dim, &given)?;
        let heads = match merge {
            _ if shape.heads == 1 && unit == T::one() => given,
            Merge::Concatenate if unit == T::one() => given,
            Merge::Concatenate => given.iter().map(|&x| x / unit).collect(),
            Merge::Average => {
                let divisor = unit * T::of(shape.heads as f64);
                let rows = given.chunks_exact(shape.width);
                let repeated = rows.flat_map(|row| std::iter::repeat_n(row, shape.heads));
                repeated.flatten().map(|&x| x / divisor).collect()
            }
        };
        Ok(Self { heads, unit })
    }

    /// Multiplies by the unit, so that numbers are in units of the given cotangent again; what lies beyond the type's
    /// range becomes its largest number.
    pub(crate) fn restore(&self, x: &mut [T]) {
        parallel::for_each_chunk(x, PIECE, |_, x| {
            instructions::run(Restore { x, unit: self.unit });
        });
    }
}

/// Elements of a piece of work.
const PIECE: usize = 1 << 15;

struct Restore<'a, T> {
    x: &'a mut [T],
    unit: T,
}

impl<T: Real> Task for Restore<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.x {
            *x = bounded(*x * self.unit);
        }
    }
}

/// A power of two by which numbers must be divided to lie within `limit`; one if they do.
pub(crate) fn unit<T: Real>(x: &[T], limit: T) -> T {
    if within(x, limit) {
        return T::one();
    }
    let largest = x.iter().fold(
        T::zero(),
        |largest, x| {
            if x.abs() > largest { x.abs() } else { largest }
        },
    );
    let largest = largest.min(T::max_value());
    T::of((largest / limit).as_f64().log2().ceil().exp2())
}
