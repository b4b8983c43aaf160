//! The units of a backward pass: powers of two that keep it in range.

use bochner_numerics::elementary::max_norm;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Real, parallel};
use ndarray::{Array, ArrayView, CowArray, Dimension};

/// The powers of two by which values and cotangents are divided.
///
/// A gradient is linear in the cotangents and, but for those of the values, in the values: in other
/// units it is the same to the bit, as long as nothing overflows or vanishes. Where it would
/// overflow, an infinity would meet another one and become NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) values: i32,
    pub(crate) cotangents: i32,
}

impl Units {
    /// One wherever products of cotangents, values and `others`, the logarithm of the largest number
    /// that they are multiplied with on their way, are well in range.
    pub(crate) fn of<T: Real, D: Dimension>(
        values: ArrayView<T, D>,
        cotangents: ArrayView<T, D>,
        others: f64,
    ) -> Self {
        let width = (values.shape()[D::NDIM.unwrap_or(1) - 1] as f64).log2();
        let (v, c) = (log2_largest(values), log2_largest(cotangents));
        match unit::<T>(v + c + width, others) {
            0 => Self::default(),
            product => {
                let values = v.ceil() as i32;
                Self {
                    values,
                    cotangents: product - values,
                }
            }
        }
    }

    /// The unit of every gradient but those of the values.
    pub(crate) fn product(self) -> i32 {
        self.values + self.cotangents
    }
}

/// The power of two by which something is divided before it is multiplied with others on a long way:
/// zero if that is well in range, given the logarithms of the largest numbers of both, and otherwise
/// one that leaves room for all that the others can be.
pub(crate) fn unit<T: Real>(largest: f64, others: f64) -> i32 {
    let range = log2_range::<T>();
    if largest + others.max(0.0) < range / 2.0 {
        0
    } else {
        (largest + range / 4.0).ceil() as i32
    }
}

/// The logarithm of the largest number of a type.
pub(crate) fn log2_range<T: Real>() -> f64 {
    T::max_value().as_f64().log2()
}

/// The logarithm of the largest finite entry.
pub(crate) fn log2_largest<T: Real, D: Dimension>(x: ArrayView<T, D>) -> f64 {
    let copy;
    let data = match x.as_slice_memory_order() {
        Some(data) => data,
        None => {
            copy = x.iter().copied().collect::<Vec<T>>();
            &copy
        }
    };
    finite_norm(parallel::max_norm(data), data).as_f64().log2()
}

/// The largest absolute value of what is finite.
pub(crate) fn largest<T: Real>(x: &[T]) -> T {
    finite_norm(max_norm(x), x)
}

/// The same, given the maximum norm of all.
fn finite_norm<T: Real>(norm: T, x: &[T]) -> T {
    if norm.is_finite() {
        return norm;
    }
    let finite = x.iter().map(|x| x.abs()).filter(|x| x.is_finite());
    finite.fold(T::zero(), T::max)
}

/// `x` divided by a power of two.
pub(crate) fn divided<T: Real, D: Dimension>(x: ArrayView<T, D>, power: i32) -> CowArray<T, D> {
    match power {
        0 => CowArray::from(x),
        _ => CowArray::from(x.mapv(|x| over_power(x, power))),
    }
}

/// A number divided by a power of two.
pub(crate) fn over_power<T: Real>(x: T, power: i32) -> T {
    T::of(libm::scalbn(x.as_f64(), -power))
}

/// `x` times a power of two, rounded, or the largest number of the type: what overflows must not
/// meet another infinity later.
#[inline(always)]
pub(crate) fn multiplied<T: Real>(x: f64, power: i32) -> T {
    let largest = T::max_value().as_f64();
    let product = if power == 0 {
        x
    } else {
        libm::scalbn(x, power)
    };
    T::of(product.clamp(-largest, largest))
}

/// Writes $\text{out}_i =$ `value(i)`, each [`multiplied`] by a power of two.
pub(crate) fn fill_multiplied<T: Real>(out: &mut [T], power: i32, value: impl Fn(usize) -> f64) {
    instructions::run(FillMultiplied { out, power, value });
}

struct FillMultiplied<'a, T, F> {
    out: &'a mut [T],
    power: i32,
    value: F,
}

impl<T: Real, F: Fn(usize) -> f64> Task for FillMultiplied<'_, T, F> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let entries = self.out.iter_mut().enumerate();
        // The usual case without a branch an entry.
        if self.power == 0 {
            entries.for_each(|(i, out)| *out = multiplied((self.value)(i), 0));
        } else {
            entries.for_each(|(i, out)| *out = multiplied((self.value)(i), self.power));
        }
    }
}

/// Multiplies what is finite by a power of two.
pub(crate) fn multiply_finite<T: Real>(x: &mut [T], power: i32) {
    if power != 0 {
        for x in x.iter_mut().filter(|x| x.is_finite()) {
            *x = multiplied(x.as_f64(), power);
        }
    }
}

/// Multiplies all of `x` by a power of two.
pub(crate) fn multiply<T: Real, D: Dimension>(x: &mut Array<T, D>, power: i32) {
    if power != 0 {
        x.mapv_inplace(|x| multiplied(x.as_f64(), power));
    }
}
