//! Strided matrix views.

use crate::Real;
use std::ops::Range;

/// A read-only matrix over a slice, with a stride (in elements) for each axis.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A row-major matrix of shape `[rows, cols]`.
    ///
    /// # Panics
    /// If `data` does not have `rows * cols` elements.
    #[inline]
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        let numbers = rows.checked_mul(cols);
        assert_eq!(Some(data.len()), numbers, "a matrix of {rows} x {cols}");
        Self {
            data,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// The transposed view.
    #[inline]
    pub fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// `(rows, columns)`.
    #[inline]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The elements, in the order of the underlying slice.
    #[inline]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// The element in row `i` and column `j`.
    ///
    /// # Panics
    /// If it lies outside.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> T
    where
        T: Copy,
    {
        assert!(i < self.rows && j < self.cols);
        self.data[i * self.row_stride + j * self.col_stride]
    }

    /// The rows in `range` of a row-major matrix.
    ///
    /// # Panics
    /// If the range is out of bounds or the matrix is a transposed view.
    #[inline]
    pub fn row_range(self, range: Range<usize>) -> Self {
        assert!(self.col_stride == 1 && self.row_stride == self.cols);
        Self::new(
            &self.data[range.start * self.cols..range.end * self.cols],
            range.len(),
            self.cols,
        )
    }

    /// A row-major matrix whose rows are `stride` apart.
    pub(crate) fn with_stride(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(cols <= stride && data.len() == rows * stride);
        Self {
            data,
            rows,
            cols,
            row_stride: stride,
            col_stride: 1,
        }
    }

    /// The columns in `range`.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn columns(self, range: Range<usize>) -> Self {
        let rows = 0..self.rows;
        self.block(rows, range)
    }

    /// Some rows and columns.
    pub(crate) fn block(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        assert!(rows.end <= self.rows && cols.end <= self.cols);
        // A matrix without rows has no elements before its columns either.
        let start = rows.start * self.row_stride + cols.start * self.col_stride;
        Self {
            data: self.data.get(start..).unwrap_or_default(),
            rows: rows.len(),
            cols: cols.len(),
            ..self
        }
    }

    /// The distances from a row to the next, and from a column to the next.
    #[inline]
    pub(crate) fn strides(&self) -> (usize, usize) {
        (self.row_stride, self.col_stride)
    }

    /// The distance from a row to the next, if the numbers of a row stand side by side.
    #[inline]
    pub(crate) fn contiguous_rows(&self) -> Option<usize> {
        (self.col_stride == 1 || self.cols == 1).then_some(self.row_stride)
    }

    /// Row `i` of a row-major matrix.
    ///
    /// # Panics
    /// If `i` is out of bounds or the matrix is a transposed view.
    #[inline]
    pub fn row(self, i: usize) -> &'a [T] {
        self.row_range(i..i + 1).data
    }
}

/// A writable, row-major matrix over a slice.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
}

impl<'a, T> MatMut<'a, T> {
    /// A row-major matrix of shape `[rows, cols]`.
    ///
    /// # Panics
    /// If `data` does not have `rows * cols` elements.
    #[inline]
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        let numbers = rows.checked_mul(cols);
        assert_eq!(Some(data.len()), numbers, "a matrix of {rows} x {cols}");
        Self { data, rows, cols }
    }

    /// `(rows, columns)`.
    #[inline]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    pub(crate) fn into_data(self) -> &'a mut [T] {
        self.data
    }
}

impl<T: Real> MatMut<'_, T> {
    /// Multiplies with a number; zero does not read what stands there.
    pub(crate) fn scale(self, factor: T) {
        for x in self.data {
            *x = if factor == T::zero() {
                T::zero()
            } else {
                factor * *x
            };
        }
    }
}
