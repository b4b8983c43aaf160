//! One tile of a product: as many sums as there are registers.

#![allow(unsafe_code)]

use super::Vector;

/// The addresses of a tile's factors, and the strides of their numbers.
pub(super) struct Factors<T> {
    /// Terms of each sum.
    pub(super) terms: usize,
    pub(super) left: *const T,
    pub(super) left_strides: (usize, usize),
    pub(super) right: *const T,
    pub(super) right_stride: usize,
}

/// The destination of the sums: $C \leftarrow \alpha \text{sum} + \beta C$.
pub(super) struct Target<T> {
    pub(super) at: *mut T,
    pub(super) stride: usize,
    /// Columns, at most as many as all registers have lanes.
    pub(super) columns: usize,
    pub(super) alpha: T,
    /// The factor of the previous values of C; `None` if these are not read.
    pub(super) beta: Option<T>,
}

/// The product of `ROWS` rows with a panel of `REGISTERS` registers.
///
/// The left factor's numbers are taken one at a time, each for all lanes, so that it may have any
/// strides; the right factor's stand side by side.
///
/// # Safety
/// The instructions of `V` are available. The columns need all `REGISTERS` registers and no more. The
/// factors are valid for `ROWS` rows, the terms and the columns; so is the target, which overlaps
/// neither, and has been written if there is a `beta`.
#[inline(always)]
pub(super) unsafe fn multiply<T, V, const ROWS: usize, const REGISTERS: usize>(
    factors: &Factors<T>,
    target: &Target<T>,
    zero: T,
) where
    T: Copy,
    V: Vector<T>,
{
    let full = target.columns == REGISTERS * V::LANES;
    // SAFETY: the two cases differ in how the last register of a row is loaded and stored: as a
    // whole where all its columns exist, else in part. Everything else is the caller's.
    unsafe {
        if full {
            sums::<T, V, ROWS, REGISTERS, false>(factors, target, zero);
        } else {
            sums::<T, V, ROWS, REGISTERS, true>(factors, target, zero);
        }
    }
}

/// [`multiply`], with the last register of a row in part if `PART`.
///
/// # Safety
/// The contract of [`multiply`]; without `PART` the columns fill the last register too.
#[inline(always)]
unsafe fn sums<T, V, const ROWS: usize, const REGISTERS: usize, const PART: bool>(
    factors: &Factors<T>,
    target: &Target<T>,
    zero: T,
) where
    T: Copy,
    V: Vector<T>,
{
    let (row, column) = factors.left_strides;
    let last = target.columns - (REGISTERS - 1) * V::LANES;
    // SAFETY: every address is the first of a row, a term or a register inside the shapes that the
    // caller vouches for, and the last register of a row is cut at the columns.
    unsafe {
        let mut sums = [[V::splat(zero); REGISTERS]; ROWS];
        let (mut left, mut right) = (factors.left, factors.right);
        for _ in 0..factors.terms {
            let mut b = [V::splat(zero); REGISTERS];
            for (j, b) in b.iter_mut().enumerate() {
                let at = right.add(j * V::LANES);
                *b = if PART && j + 1 == REGISTERS {
                    V::load_part(at, last)
                } else {
                    V::load(at)
                };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = V::splat(*left.add(i * row));
                for (sum, &b) in sums.iter_mut().zip(&b) {
                    *sum = V::mul_add(a, b, *sum);
                }
            }
            left = left.wrapping_add(column);
            right = right.wrapping_add(factors.right_stride);
        }
        let alpha = V::splat(target.alpha);
        for (i, sums) in sums.iter().enumerate() {
            for (j, &sum) in sums.iter().enumerate() {
                let at = target.at.add(i * target.stride + j * V::LANES);
                let part = PART && j + 1 == REGISTERS;
                let mut before = V::splat(zero);
                if let Some(beta) = target.beta {
                    let there = if part {
                        V::load_part(at, last)
                    } else {
                        V::load(at)
                    };
                    before = V::mul_add(V::splat(beta), there, before);
                }
                let now = V::mul_add(alpha, sum, before);
                if part {
                    now.store_part(at, last);
                } else {
                    now.store(at);
                }
            }
        }
    }
}
