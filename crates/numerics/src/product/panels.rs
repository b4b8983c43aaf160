//! The right factor of a product, packed.

#![allow(unsafe_code)]

use super::pack::Pack;
use crate::elementary::instruction_set::InstructionSet;
use crate::lists::remove_first;
use crate::{Buffer, Buffers, Mat, Real};
use std::ops::Range;

/// A matrix laid out to be the right factor of products: panels of as many columns as a tile is
/// wide, each row by row.
///
/// Packing pays where one matrix is multiplied with many others, or is a transposed view: without it every product
/// packs the matrix again.
///
/// ```
/// use bochner_numerics::{Mat, MatMut, Panels, matmul};
///
/// let keys = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let panels = Panels::new(Mat::new(&keys, 3, 2).t());
/// let mut scores = [0.0; 3];
/// let query = Mat::new(&[1.0, 10.0], 1, 2);
/// matmul(1.0, query, &panels, 0.0, MatMut::new(&mut scores, 1, 3));
/// assert_eq!(scores, [21.0, 43.0, 65.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Panels<T> {
    data: Buffer<T>,
    rows: usize,
    cols: usize,
    width: usize,
}

/// Some columns of [`Panels`].
#[derive(Clone, Copy, Debug)]
pub struct PanelColumns<'a, T> {
    pub(super) data: &'a [T],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) width: usize,
}

/// The panels of a matrix without rows and columns.
impl<T: Real> Default for Panels<T> {
    fn default() -> Self {
        Self {
            data: Buffer::default(),
            rows: 0,
            cols: 0,
            width: InstructionSet::fastest().panel_width::<T>(),
        }
    }
}

impl<T: Real> Panels<T> {
    /// Columns that begin a panel on any machine are multiples of this.
    pub const ALIGNMENT: usize = 32;

    /// Packs a matrix.
    pub fn new(matrix: Mat<T>) -> Self {
        let mut panels = Self::default();
        panels.pack(matrix);
        panels
    }

    /// Packs a matrix into memory from `buffers`.
    pub fn new_in(buffers: &Buffers<T>, matrix: Mat<T>) -> Self {
        let mut panels = Self::room_for(buffers, matrix);
        panels.pack(matrix);
        panels
    }

    pub(super) fn room_for(buffers: &Buffers<T>, matrix: Mat<T>) -> Self {
        let (rows, columns) = matrix.shape();
        Self {
            // The widest panels have room for no more columns.
            data: buffers.empty(rows * columns.next_multiple_of(Self::ALIGNMENT)),
            ..Self::default()
        }
    }

    /// Packs another matrix into the same memory.
    pub fn pack(&mut self, matrix: Mat<T>) {
        let (width, (rows, cols)) = (self.width, matrix.shape());
        let n = cols.div_ceil(width) * rows * width;
        self.data.clear();
        self.data.reserve(n);
        let out = &mut self.data.spare_capacity_mut()[..n];
        InstructionSet::fastest().run(Pack { matrix, width, out });
        // SAFETY: there is room for n numbers, and all of them have been written.
        unsafe { self.data.set_len(n) };
        (self.rows, self.cols) = (rows, cols);
    }

    /// Appends the columns of a matrix; the numbers already packed stay where they are, unless memory has to
    /// grow.
    ///
    /// # Panics
    /// If there are columns already, and they have another length.
    pub fn append(&mut self, matrix: Mat<T>) {
        if self.cols == 0 {
            return self.pack(matrix);
        }
        let (rows, more) = matrix.shape();
        assert_eq!(rows, self.rows, "columns of as many numbers");
        let panels = (self.cols + more).div_ceil(self.width);
        self.data.resize(panels * rows * self.width, T::zero());
        for j in 0..more {
            let (panel, x) = ((self.cols + j) / self.width, (self.cols + j) % self.width);
            let panel = &mut self.data[panel * rows * self.width..][..rows * self.width];
            for (i, row) in panel.chunks_exact_mut(self.width).enumerate() {
                row[x] = matrix.get(i, j);
            }
        }
        self.cols += more;
    }

    /// Keeps the first `columns` columns, if there are more.
    pub fn truncate(&mut self, columns: usize) {
        self.cols = self.cols.min(columns);
        let panels = self.cols.div_ceil(self.width);
        self.data.truncate(panels * self.rows * self.width);
    }

    /// Removes the first `columns` columns; memory for more than twice `most` columns is given back, down to that
    /// for `most`.
    ///
    /// # Panics
    /// If there are fewer columns, or if their number is not a multiple of [`ALIGNMENT`](Self::ALIGNMENT).
    pub fn remove_first(&mut self, columns: usize, most: usize) {
        assert!(
            columns <= self.cols && columns.is_multiple_of(Self::ALIGNMENT),
            "the first {columns} columns of {}",
            self.cols
        );
        let most = most.next_multiple_of(Self::ALIGNMENT) * self.rows;
        remove_first(&mut self.data, columns * self.rows, most);
        self.cols -= columns;
    }

    /// Keeps the columns that are marked, in their order.
    ///
    /// # Panics
    /// Unless there is a mark for each column.
    pub fn keep(&mut self, marks: &[bool]) {
        assert_eq!(marks.len(), self.cols, "a mark for each column");
        let (rows, width) = (self.rows, self.width);
        let place = |column: usize| column / width * rows * width + column % width;
        let mut kept = 0;
        for column in (0..self.cols).filter(|&column| marks[column]) {
            let (from, to) = (place(column), place(kept));
            for i in (0..rows).map(|i| i * width) {
                self.data[to + i] = self.data[from + i];
            }
            kept += 1;
        }
        self.truncate(kept);
    }

    /// `(rows, columns)` of the matrix.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The columns in `range`.
    ///
    /// # Panics
    /// If the range is out of bounds, or does not begin at a multiple of
    /// [`ALIGNMENT`](Self::ALIGNMENT).
    pub fn columns(&self, range: Range<usize>) -> PanelColumns<'_, T> {
        assert!(
            range.end <= self.cols && range.start.is_multiple_of(Self::ALIGNMENT),
            "columns {range:?} of {}",
            self.cols
        );
        let end = range.end.div_ceil(self.width) * self.width;
        PanelColumns {
            data: &self.data[range.start * self.rows..end * self.rows],
            rows: self.rows,
            cols: range.len(),
            width: self.width,
        }
    }
}
