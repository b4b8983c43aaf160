//! Arrays of any strides as the row-major arrays that products want.

use crate::{Buffer, Buffers, Real, parallel};
use ndarray::{ArrayView4, ArrayViewMut, Axis, Dimension};

/// An array in row-major order: as it was given, or a copy.
#[derive(Debug)]
pub enum RowMajor<'a, T> {
    /// The numbers of the array itself.
    Given(&'a [T], [usize; 4]),
    /// A copy.
    Copied(Buffer<T>, [usize; 4]),
}

impl<'a, T: Real> RowMajor<'a, T> {
    /// Returns the array, copied into memory from `buffers` unless it is in row-major order.
    pub fn new(array: ArrayView4<'a, T>, buffers: &Buffers<T>) -> Self {
        if let Some(data) = array.to_slice() {
            return Self::Given(data, array.dim().into());
        }
        let (_, heads, time, width) = array.dim();
        let mut copy = buffers.any(array.len());
        parallel::for_each_chunk(&mut copy, (time * width).max(1), |h, copy| {
            let head = array.index_axis(Axis(0), h / heads);
            let head = head.index_axis(Axis(0), h % heads);
            for (row, copy) in head.rows().into_iter().zip(copy.chunks_exact_mut(width)) {
                match row.as_slice() {
                    Some(row) => copy.copy_from_slice(row),
                    None => copy.iter_mut().zip(row).for_each(|(copy, &x)| *copy = x),
                }
            }
        });
        Self::Copied(copy, array.dim().into())
    }

    /// The array.
    pub fn view(&self) -> ArrayView4<'_, T> {
        let (data, shape) = match self {
            Self::Given(data, shape) => (*data, shape),
            Self::Copied(data, shape) => (data.as_slice(), shape),
        };
        ArrayView4::from_shape(*shape, data).expect("as many as there were")
    }
}

/// Calls `f`, which writes them all, with the numbers of an array in row-major order.
pub fn write_row_major<T: Real, D: Dimension>(
    mut out: ArrayViewMut<T, D>,
    buffers: &Buffers<T>,
    f: impl FnOnce(&mut [T]),
) {
    if let Some(out) = out.as_slice_mut() {
        return f(out);
    }
    let mut copy = buffers.any(out.len());
    f(&mut copy);
    let width = out.shape().last().copied().unwrap_or(1).max(1);
    for (mut out, row) in out.rows_mut().into_iter().zip(copy.chunks_exact(width)) {
        match out.as_slice_mut() {
            Some(out) => out.copy_from_slice(row),
            None => out.iter_mut().zip(row).for_each(|(out, &x)| *out = x),
        }
    }
}
