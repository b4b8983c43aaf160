//! The units of a backward pass: powers of two that keep it in range.

use bochner_numerics::elementary::max_norm;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::scaling::{multiplied, over_power, unit};
use bochner_numerics::{Buffer, Buffers, Mat, Real, scaling};
use ndarray::{ArrayView, ArrayView2, CowArray, Dimension, Ix2, Zip};

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
    pub(crate) fn of<T: Real>(values: Mat<T>, cotangents: Mat<T>, others: f64) -> Self {
        let width = (values.shape().1 as f64).log2();
        let [v, c] = [values, cotangents].map(|x| scaling::log2_largest(x.data()));
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

/// A copy of numbers divided by a power of two, if that is not one.
pub(crate) fn divided<T: Real>(x: Mat<T>, power: i32, numbers: &Buffers<T>) -> Option<Buffer<T>> {
    (power != 0).then(|| {
        let mut out = numbers.any(x.data().len());
        let x = x.data();
        instructions::run(Divide {
            x,
            power,
            out: &mut out,
        });
        out
    })
}

struct Divide<'a, T> {
    x: &'a [T],
    power: i32,
    out: &'a mut [T],
}

impl<T: Real> Task for Divide<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let pairs = self.out.iter_mut().zip(self.x);
        pairs.for_each(|(out, &x)| *out = over_power(x, self.power));
    }
}

/// The rescaled copy of a matrix, if there is one, otherwise the matrix itself.
pub(crate) fn copy_or<'a, T: Real>(copy: &'a Option<Buffer<T>>, x: Mat<'a, T>) -> Mat<'a, T> {
    let (rows, width) = x.shape();
    copy.as_ref().map_or(x, |copy| Mat::new(copy, rows, width))
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
        for (i, out) in self.out.iter_mut().enumerate() {
            *out = multiplied((self.value)(i), self.power);
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

/// `x` with zeros in place of the rows that are not finite and had no influence: behind a mask they
/// may hold anything, and `0 * NaN` would carry it into the gradient of the points.
pub(crate) fn without_masked<'a, T: Real>(
    x: ArrayView2<'a, T>,
    cotangent: ArrayView2<T>,
) -> CowArray<'a, T, Ix2> {
    let mut x = CowArray::from(x);
    if !max_norm(x.as_slice().expect("rows of a head")).is_finite() {
        Zip::from(x.rows_mut())
            .and(cotangent.rows())
            .for_each(|mut row, cotangent| {
                if cotangent.iter().all(|&c| c == T::zero()) {
                    row.fill(T::zero());
                }
            });
    }
    x
}
