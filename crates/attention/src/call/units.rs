//! The units of a backward pass: powers of two that keep it in range.

use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::scaling::{multiplied, over_power, unit};
use bochner_numerics::{Real, scaling};
use ndarray::{ArrayView, CowArray, Dimension};

/// The powers of two by which values and cotangents are divided.
///
/// A gradient is linear in the cotangents and, but for that of the values, in the values; see [`scaling`].
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
    scaling::log2_largest(data)
}

/// `x` divided by a power of two.
pub(crate) fn divided<T: Real, D: Dimension>(x: ArrayView<T, D>, power: i32) -> CowArray<T, D> {
    match power {
        0 => CowArray::from(x),
        _ => CowArray::from(x.mapv(|x| over_power(x, power))),
    }
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
