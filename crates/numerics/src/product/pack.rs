//! Copying a matrix into panels.

#![allow(unsafe_code)]

use super::Vector;
use crate::elementary::arithmetic::Arithmetic;
use crate::elementary::instruction_set::Task;
use crate::{Mat, Real};
use std::mem::MaybeUninit;

/// Writes all of some panels of `width` columns, the last one padded with zeros.
pub(super) struct Pack<'a, T> {
    pub(super) matrix: Mat<'a, T>,
    pub(super) width: usize,
    pub(super) out: &'a mut [MaybeUninit<T>],
}

impl<T: Real> Task for Pack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, available: A) {
        let (rows, columns) = self.matrix.shape();
        let panels = self.out.chunks_exact_mut((rows * self.width).max(1));
        for (panel, first) in panels.zip((0..columns).step_by(self.width)) {
            let present = self.width.min(columns - first);
            if present < self.width {
                panel.fill(MaybeUninit::new(T::zero()));
            }
            let columns = self.matrix.block(0..rows, first..first + present);
            let done = squares(available, columns, self.width, panel);
            copy(columns, done, self.width, panel);
        }
    }
}

/// Copies what lies outside of the first `done` rows and columns.
#[inline(always)]
fn copy<T: Real>(matrix: Mat<T>, done: (usize, usize), width: usize, panel: &mut [MaybeUninit<T>]) {
    let (down, right) = matrix.strides();
    let columns = matrix.shape().1;
    for (i, row) in panel.chunks_exact_mut(width).enumerate() {
        let start = if i < done.0 { done.1 } else { 0 };
        let from = &matrix.data()[i * down..];
        for (x, j) in row[start..columns].iter_mut().zip(start..) {
            x.write(from[j * right]);
        }
    }
}

/// Copies the whole squares of a matrix whose columns lie side by side, and returns how many rows and
/// columns these are.
#[inline(always)]
fn squares<T: Real, A: Arithmetic>(
    _: A,
    matrix: Mat<T>,
    width: usize,
    panel: &mut [MaybeUninit<T>],
) -> (usize, usize) {
    let (rows, columns) = matrix.shape();
    let (down, right) = matrix.strides();
    let lanes = <A::Vector<T> as Vector<T>>::LANES;
    let whole = (rows / lanes * lanes, columns / lanes * lanes);
    if down != 1 || whole.0 * whole.1 == 0 {
        return (0, 0);
    }
    assert!(columns <= width && panel.len() == rows * width);
    assert!((columns - 1) * right + rows <= matrix.data().len());
    for i in (0..whole.0).step_by(lanes) {
        for j in (0..whole.1).step_by(lanes) {
            // A pointer to the slice from here on: one to a single number may not be used for its neighbours.
            let from = matrix.data()[j * right + i..].as_ptr();
            let to = panel[i * width + j..].as_mut_ptr().cast();
            // SAFETY: the square's columns are inside the matrix and its rows inside the panel, as
            // asserted; a value of `A` was given, and so the instructions are available.
            unsafe { turn::<T, A::Vector<T>>(from, right, to, width) };
        }
    }
    whole
}

/// # Safety
/// The contract of [`turn_square`].
#[inline(always)]
unsafe fn turn<T: Real, V: Vector<T>>(from: *const T, stride: usize, to: *mut T, width: usize) {
    // SAFETY: the contract is the same as that of the functions called.
    unsafe {
        match V::LANES {
            16 => turn_square::<T, V, 16>(from, stride, to, width),
            8 => turn_square::<T, V, 8>(from, stride, to, width),
            4 => turn_square::<T, V, 4>(from, stride, to, width),
            _ => turn_square::<T, V, 2>(from, stride, to, width),
        }
    }
}

/// Writes the columns of a square as rows.
///
/// A number's row and lane are the halves of one binary number. Interleaving each row with the one half the square
/// below rotates it by a digit; after as many rotations as a half has digits, the halves are swapped.
///
/// # Safety
/// `N` is the number of lanes. `from` is valid for `N` columns of `N` numbers each, `stride` apart. `to` is valid for
/// `N` rows, `width` apart. The instructions of `V` are available.
#[inline(always)]
unsafe fn turn_square<T: Real, V: Vector<T>, const N: usize>(
    from: *const T,
    stride: usize,
    to: *mut T,
    width: usize,
) {
    // SAFETY: every address is that of a column or row which the caller vouches for.
    unsafe {
        let mut rows = [V::splat(T::zero()); N];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = V::load(from.add(i * stride));
        }
        for _ in 0..N.ilog2() {
            let before = rows;
            for i in 0..N / 2 {
                (rows[2 * i], rows[2 * i + 1]) = V::interleave(before[i], before[i + N / 2]);
            }
        }
        for (i, row) in rows.into_iter().enumerate() {
            row.store(to.add(i * width));
        }
    }
}
