//! Matrix products.
//!
//! A tile of the product is kept in registers: each term multiplies a few numbers of the left
//! factor, one at a time, with a row of the right factor's panel. The left factor may have any
//! strides, the right factor's rows must be contiguous: one that is not, or whose rows lie far
//! apart, is packed into [`Panels`] first.
//!
//! For each number of the product the terms are added in order, in runs of 384: the same sum whatever
//! the sizes of both matrices, and whether the right factor was packed or not.

mod pack;
mod panels;
mod tile;
mod vector;

pub use panels::{PanelColumns, Panels};
pub(crate) use vector::{Portable, Vector};

use crate::elementary::arithmetic::Arithmetic;
use crate::elementary::instruction_set::{InstructionSet, Task};
use crate::operations::{Operations, record};
use crate::{Buffer, Buffers, Mat, MatMut, Real};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use tile::{Factors, Target, multiply};

/// Terms that are summed up before the sums are written: as many rows of a panel as the first-level
/// cache has room for.
const TERMS: usize = block(384, 6);
/// Rows of the left factor that stay in the second-level cache, with [`TERMS`] columns.
const ROWS: usize = block(240, 13);
/// Rows further apart than this many numbers are packed, if there are [`ENOUGH`] products with them.
const FAR: usize = block(512, 4);
const ENOUGH: usize = block(32, 5);
/// The widest tile.
pub(crate) const REGISTERS: usize = 2;

/// A size, and a smaller one for Miri, which is tens of thousands of times as slow and has to reach the edges too.
const fn block(size: usize, in_miri: usize) -> usize {
    if cfg!(miri) { in_miri } else { size }
}

/// The right factor of a product.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a, T> {
    /// A matrix as it is.
    Plain(Mat<'a, T>),
    /// Columns of a packed matrix.
    Packed(PanelColumns<'a, T>),
}

impl<T> Right<'_, T> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Plain(matrix) => matrix.shape(),
            Self::Packed(columns) => (columns.rows, columns.cols),
        }
    }
}

impl<'a, T> From<Mat<'a, T>> for Right<'a, T> {
    fn from(matrix: Mat<'a, T>) -> Self {
        Self::Plain(matrix)
    }
}

impl<'a, T: Real> From<&'a Panels<T>> for Right<'a, T> {
    fn from(panels: &'a Panels<T>) -> Self {
        Self::Packed(panels.columns(0..panels.shape().1))
    }
}

impl<'a, T> From<PanelColumns<'a, T>> for Right<'a, T> {
    fn from(columns: PanelColumns<'a, T>) -> Self {
        Self::Packed(columns)
    }
}

/// $C \leftarrow \alpha A B + \beta C$, on the calling thread.
///
/// # Shapes
/// `a` is `[m, k]`, `b` is `[k, n]`, `c` is `[m, n]`.
///
/// # Numerics
/// $O(m n k)$ time. With `beta` zero, `c` is overwritten without being read. Call it from inside
/// [`parallel`](crate::parallel) to use several threads: the order of summation is then the same
/// for any number of them.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul<'b, T: Real>(alpha: T, a: Mat<T>, b: impl Into<Right<'b, T>>, beta: T, c: MatMut<T>) {
    multiply_by(None, alpha, a, b.into(), beta, c);
}

/// [`matmul`], with room for what has to be packed or copied from `buffers`.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul_in<'b, T: Real>(
    buffers: &Buffers<T>,
    alpha: T,
    a: Mat<T>,
    b: impl Into<Right<'b, T>>,
    beta: T,
    c: MatMut<T>,
) {
    multiply_by(Some(buffers), alpha, a, b.into(), beta, c);
}

fn multiply_by<T: Real>(
    buffers: Option<&Buffers<T>>,
    alpha: T,
    a: Mat<T>,
    b: Right<T>,
    beta: T,
    c: MatMut<T>,
) {
    let ((m, k), (rows, n)) = (a.shape(), b.shape());
    assert_eq!(k, rows, "inner dimensions");
    assert_eq!((m, n), c.shape(), "shape of the product");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        c.scale(beta);
        return;
    }
    record(Operations::multiply_adds(m * n * k));
    let target = Place::new(beta, c);
    multiply_to(buffers, alpha, a, b, target);
}

/// Writes $A B$, row-major, to all of `c`.
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn multiply_into<T: Real>(a: Mat<T>, b: Right<T>, c: &mut [MaybeUninit<T>]) {
    let ((m, k), (rows, n)) = (a.shape(), b.shape());
    assert_eq!(k, rows, "inner dimensions");
    assert_eq!(m.checked_mul(n), Some(c.len()), "numbers of the product");
    if k == 0 {
        c.fill(MaybeUninit::new(T::zero()));
    } else if !c.is_empty() {
        record(Operations::multiply_adds(m * n * k));
        let target = Place {
            first: c.as_mut_ptr().cast(),
            cols: n,
            beta: T::zero(),
            borrowed: PhantomData,
        };
        multiply_to(None, T::one(), a, b, target);
    }
}

/// The target of a product: a row-major matrix of the product's shape. If `beta` is not zero, the target
/// must be initialised; its values are multiplied by `beta` first.
struct Place<'a, T> {
    first: *mut T,
    cols: usize,
    beta: T,
    borrowed: PhantomData<&'a mut [MaybeUninit<T>]>,
}

impl<'a, T> Place<'a, T> {
    fn new(beta: T, matrix: MatMut<'a, T>) -> Self {
        Self {
            beta,
            cols: matrix.shape().1,
            first: matrix.into_data().as_mut_ptr(),
            borrowed: PhantomData,
        }
    }
}

/// `target` has the shape of the product.
fn multiply_to<T: Real>(
    buffers: Option<&Buffers<T>>,
    alpha: T,
    left: Mat<T>,
    right: Right<T>,
    target: Place<T>,
) {
    let set = InstructionSet::fastest();
    let (m, width) = (left.shape().0, set.panel_width::<T>());
    let mut packed = Panels::default();
    let right = match right {
        Right::Packed(columns) => {
            assert_eq!(columns.width, width, "packed for other instructions");
            Rows::packed(columns)
        }
        Right::Plain(matrix) => match matrix.contiguous_rows() {
            Some(stride) if stride <= FAR || m < ENOUGH => Rows {
                data: matrix.data(),
                stride,
                panel: width,
            },
            _ => {
                if let Some(buffers) = buffers {
                    packed = Panels::room_for(buffers, matrix);
                }
                packed.pack(matrix);
                Rows::packed(packed.columns(0..matrix.shape().1))
            }
        },
    };
    set.run(Product {
        left,
        right,
        alpha,
        target,
        buffers,
    });
}

/// The right factor: rows of numbers side by side, a panel after the other.
struct Rows<'a, T> {
    data: &'a [T],
    /// The distance from a row to the next.
    stride: usize,
    /// The distance from a panel to the next.
    panel: usize,
}

impl<'a, T> Rows<'a, T> {
    fn packed(columns: PanelColumns<'a, T>) -> Self {
        Self {
            data: columns.data,
            stride: columns.width,
            panel: columns.rows * columns.width,
        }
    }
}

/// Rows of the left factor that lie far apart, copied side by side: at distances of a large power of
/// two they would fight for the same few places of the first-level cache.
struct Near<T>(Option<Buffer<T>>);

/// Numbers between two copied rows, which keep these from such distances too.
const PADDING: usize = 16;

impl<T: Real> Near<T> {
    /// Room for a block of rows, if that is needed and they are read more than once.
    fn new(left: Mat<T>, again: bool, buffers: Option<&Buffers<T>>) -> Self {
        let (rows, terms) = left.shape();
        let far = left.contiguous_rows().is_some_and(|stride| stride > FAR);
        let size = rows.min(ROWS) * (terms.min(TERMS) + PADDING);
        let room = || match buffers {
            Some(buffers) => buffers.any(size),
            None => vec![T::zero(); size].into(),
        };
        Self((far && again).then(room))
    }

    fn block<'a>(
        &'a mut self,
        left: Mat<'a, T>,
        rows: Range<usize>,
        terms: Range<usize>,
    ) -> Mat<'a, T> {
        let block = left.block(rows, terms);
        let Some(room) = &mut self.0 else {
            return block;
        };
        let (rows, terms) = block.shape();
        let stride = terms + PADDING;
        for (i, row) in room.chunks_exact_mut(stride).take(rows).enumerate() {
            let from = &block.data()[i * block.strides().0..];
            row[..terms].copy_from_slice(&from[..terms]);
        }
        Mat::with_stride(&room[..rows * stride], rows, terms, stride)
    }
}

struct Product<'a, T> {
    left: Mat<'a, T>,
    right: Rows<'a, T>,
    alpha: T,
    target: Place<'a, T>,
    buffers: Option<&'a Buffers<T>>,
}

impl<T: Real> Task for Product<'_, T> {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn run<A: Arithmetic>(self, _: A) {
        let ((m, k), n) = (self.left.shape(), self.target.cols);
        let at = self.target.first;
        let width = REGISTERS * <A::Vector<T> as Vector<T>>::LANES;
        let mut near = Near::new(self.left, n > width, self.buffers);
        for first in (0..k).step_by(TERMS) {
            let terms = TERMS.min(k - first);
            let beta = if first == 0 {
                self.target.beta
            } else {
                T::one()
            };
            for top in (0..m).step_by(ROWS) {
                let bottom = (top + ROWS).min(m);
                let left = near.block(self.left, top..bottom, first..first + terms);
                let strides = left.strides();
                for (p, column) in (0..n).step_by(width).enumerate() {
                    let mut row = top;
                    while row < bottom {
                        let columns = width.min(n - column);
                        let right = p * self.right.panel + first * self.right.stride;
                        // SAFETY: `left` holds every (i, j) of its shape, `bottom - top` rows of
                        // `terms` numbers, under these strides; `right` holds k rows of n columns,
                        // the last panel padded if packed. The target has room for m n numbers and
                        // is borrowed alone; if it is read, all of it was written, by the contract
                        // of `Place` or by the first terms. The task was given a value of `A`,
                        // and so the instructions are available.
                        row += unsafe {
                            let factors = Factors {
                                terms,
                                left: left.data().as_ptr().add((row - top) * strides.0),
                                left_strides: strides,
                                right: self.right.data.as_ptr().add(right),
                                right_stride: self.right.stride,
                            };
                            let target = Target {
                                at: at.add(row * n + column),
                                stride: n,
                                columns,
                                alpha: self.alpha,
                                beta: (beta != T::zero()).then_some(beta),
                            };
                            rows::<T, A::Vector<T>>(bottom - row, &factors, &target)
                        };
                    }
                }
            }
        }
    }
}

/// Multiplies as many rows as fit into a tile, and returns how many.
///
/// # Safety
/// The contract of [`multiply`] with two registers, for `left` rows, at least one; there is at least one
/// column.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn rows<T: Real, V: Vector<T>>(
    left: usize,
    factors: &Factors<T>,
    target: &Target<T>,
) -> usize {
    let most = left.min(V::ROWS);
    // SAFETY: none of the tiles has more rows than are left.
    unsafe {
        if target.columns > V::LANES {
            tiles::<T, V, 2>(most, factors, target)
        } else if target.columns > V::Half::LANES {
            tiles::<T, V, 1>(most, factors, target)
        } else {
            tiles::<T, V::Half, 1>(most, factors, target)
        }
    }
}

/// # Safety
/// The contract of [`multiply`] for `most` rows, at least one.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn tiles<T: Real, V: Vector<T>, const REGISTERS: usize>(
    most: usize,
    factors: &Factors<T>,
    target: &Target<T>,
) -> usize {
    let zero = T::zero();
    // SAFETY: none of the tiles has more rows than are left.
    unsafe {
        match most {
            12.. => {
                multiply::<T, V, 12, REGISTERS>(factors, target, zero);
                12
            }
            8.. => {
                multiply::<T, V, 8, REGISTERS>(factors, target, zero);
                8
            }
            6.. => {
                multiply::<T, V, 6, REGISTERS>(factors, target, zero);
                6
            }
            4.. => {
                multiply::<T, V, 4, REGISTERS>(factors, target, zero);
                4
            }
            2.. => {
                multiply::<T, V, 2, REGISTERS>(factors, target, zero);
                2
            }
            _ => {
                multiply::<T, V, 1, REGISTERS>(factors, target, zero);
                1
            }
        }
    }
}
