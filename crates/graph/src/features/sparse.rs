//! Features of which most are zero.

use super::multiply::{Matrix, multiply};
use crate::Error;
use crate::compressed::{Rows, check_offsets, cut_unwritten};
use crate::error::{countable, finite};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::memory::written_by;
use bochner_numerics::{DropoutMask, Real, argument, parallel};
use ndarray::{Array2, ArrayView2};
use std::ops::Range;
use std::sync::Arc;

/// Stored values of a piece of work.
const PIECE: usize = 4096;

/// Node features of which most are zero: a matrix in compressed rows.
///
/// Matrices that are made from one another share the list of entries, so that dropout or a normalisation
/// costs new values only, and a clone nothing. An entry given twice is stored as the sum.
///
/// ```
/// use bochner_graph::SparseFeatures;
/// use bochner_graph::ndarray::array;
///
/// // Row 0 has a 2 in column 1, row 1 has nothing, row 2 a 1 in columns 0 and 2.
/// let words = SparseFeatures::new(3, &[0, 1, 1, 3], &[1, 0, 2], vec![2.0, 1.0, 1.0])?;
/// let normalised = words.row_normalised();
/// assert_eq!(normalised.to_dense(), array![[0.0, 1.0, 0.0], [0.0; 3], [0.5, 0.0, 0.5]]);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseFeatures<T> {
    pattern: Arc<Pattern>,
    values: Arc<Vec<T>>,
}

/// The entries that are stored, by rows and by columns.
#[derive(Debug, PartialEq)]
struct Pattern {
    rows: Rows,
    columns: Rows,
    /// The place in `rows` of each entry of `columns`.
    places: Vec<u32>,
}

impl<T: Real> SparseFeatures<T> {
    /// Features in compressed rows: those of row `i` are `values[offsets[i]..offsets[i + 1]]`, in the
    /// columns that stand at the same places of `indices`. Entries of the same row and column are summed.
    ///
    /// # Errors
    /// [`Error::Offsets`] if the offsets do not cut the values into rows; [`Error::Argument`] if there is
    /// not one index for each value, if an index is not below `columns`, and if a value or a sum is NaN or
    /// infinite; [`Error::TooMany`].
    pub fn new(
        columns: usize,
        offsets: &[usize],
        indices: &[usize],
        values: Vec<T>,
    ) -> Result<Self, Error> {
        argument::shape("indices", &[values.len()], &[indices.len()])?;
        check_offsets("the features", offsets, values.len())?;
        countable("columns", columns)?;
        countable("rows", offsets.len() - 1)?;
        countable("stored values", values.len())?;
        if let Some(at) = indices.iter().position(|&column| column >= columns) {
            argument::index(format!("indices[{at}]"), indices[at], columns)?;
        }
        finite("values", &[values.len()], &values)?;
        let short = indices.iter().map(|&column| column as u32).collect();
        let rows = Rows::new(offsets.to_vec(), short);
        let (by_column, places) = rows.transposed(columns);
        let twice = |column| by_column.row(column).windows(2).any(|two| two[0] == two[1]);
        if (0..columns).any(twice) {
            return Self::summed(columns, offsets, indices, &values);
        }
        let pattern = Pattern {
            rows,
            columns: by_column,
            places,
        };
        Ok(Self {
            pattern: Arc::new(pattern),
            values: Arc::new(values),
        })
    }

    /// Features of which some entries are there more than once.
    fn summed(
        columns: usize,
        offsets: &[usize],
        indices: &[usize],
        values: &[T],
    ) -> Result<Self, Error> {
        let (mut ends, mut kept, mut sums) = (vec![0], Vec::new(), Vec::new());
        // The place of the last entry of each column.
        let mut last: Vec<Option<usize>> = vec![None; columns];
        for row in offsets.windows(2) {
            let first = sums.len();
            for (&column, &value) in indices[row[0]..row[1]].iter().zip(&values[row[0]..row[1]]) {
                match last[column] {
                    Some(at) if at >= first => sums[at] += value,
                    _ => {
                        last[column] = Some(sums.len());
                        kept.push(column);
                        sums.push(value);
                    }
                }
            }
            ends.push(sums.len());
        }
        Self::new(columns, &ends, &kept, sums)
    }

    /// The entries of a matrix that are not zero.
    ///
    /// # Errors
    /// [`Error::Argument`] for NaN and infinity; [`Error::TooMany`].
    pub fn from_dense(x: ArrayView2<T>) -> Result<Self, Error> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in x.rows() {
            for (column, &value) in row.iter().enumerate() {
                if value != T::zero() {
                    indices.push(column);
                    values.push(value);
                }
            }
            offsets.push(values.len());
        }
        Self::new(x.ncols(), &offsets, &indices, values)
    }

    /// The matrix with its zeros.
    pub fn to_dense(&self) -> Array2<T> {
        let mut x = Array2::zeros((self.rows(), self.columns()));
        for (row, column, value) in self.entries() {
            x[[row, column]] = value;
        }
        x
    }

    /// Row, column and value of each entry, row by row.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> {
        let of_row = |row| self.pattern.rows.places(row).map(move |place| (row, place));
        let places = (0..self.rows()).flat_map(of_row);
        places.map(|(row, place)| (row, self.column(place), self.values[place]))
    }

    /// The number of rows, one a node.
    pub fn rows(&self) -> usize {
        self.pattern.rows.count()
    }

    /// The number of columns, one a feature.
    pub fn columns(&self) -> usize {
        self.pattern.columns.count()
    }

    /// The stored values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The features with each row divided by the sum of its absolute values; a row of zeros stays as it is.
    pub fn row_normalised(&self) -> Self {
        let mut values = self.values.to_vec();
        for row in 0..self.rows() {
            super::normalise(&mut values[self.pattern.rows.places(row)]);
        }
        self.with_values(values)
    }

    /// Some of the rows, in the order given: those of the nodes of a
    /// [`Neighbourhood`](crate::Neighbourhood).
    ///
    /// # Errors
    /// [`Error::Argument`] for a row that does not exist.
    pub fn select(&self, rows: &[usize]) -> Result<Self, Error> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (at, &row) in rows.iter().enumerate() {
            if row >= self.rows() {
                argument::index(format!("rows[{at}]"), row, self.rows())?;
            }
            let places = self.pattern.rows.places(row);
            indices.extend(places.clone().map(|place| self.column(place)));
            values.extend_from_slice(&self.values[places]);
            offsets.push(values.len());
        }
        Self::new(self.columns(), &offsets, &indices, values)
    }

    /// The features after dropout.
    ///
    /// The factor of the entry in row `i` and column `n` of `N` is that of element $iN + n$: stored or
    /// not, the same entries are dropped, on any number of threads.
    pub fn dropped_out(&self, dropout: &DropoutMask) -> Self {
        let rows = &self.pattern.rows;
        let pieces = rows.pieces(PIECE);
        let lengths = pieces
            .iter()
            .map(|piece| rows.entries_of(piece.clone()).len());
        let [values] = written_by([self.values.len()], |[values]| {
            let parts = cut_unwritten(values, 1, lengths);
            parallel::for_each(pieces.iter().zip(parts).collect(), |(piece, part)| {
                run(DropOut {
                    pattern: &self.pattern,
                    dropout,
                    rows: piece.clone(),
                    values: part.copy_of(&self.values[rows.entries_of(piece.clone())]),
                });
            });
        });
        self.with_values(values)
    }

    /// $XW$, with `weight` row-major and as many rows as `self` has columns.
    pub(super) fn times(&self, weight: &[T], width: usize) -> Vec<T> {
        let matrix = Matrix {
            rows: &self.pattern.rows,
            values: &self.values,
            places: None,
        };
        multiply(matrix, weight, width, PIECE)
    }

    /// $X^T Y$, with `y` row-major and as many rows as `self`.
    pub(super) fn transposed_times(&self, y: &[T], width: usize) -> Vec<T> {
        let matrix = Matrix {
            rows: &self.pattern.columns,
            values: &self.values,
            places: Some(&self.pattern.places),
        };
        multiply(matrix, y, width, PIECE)
    }

    fn column(&self, place: usize) -> usize {
        self.pattern.rows.columns()[place] as usize
    }

    fn with_values(&self, values: Vec<T>) -> Self {
        Self {
            pattern: self.pattern.clone(),
            values: Arc::new(values),
        }
    }
}

/// Multiplies the stored values of some rows by the factors of their elements.
struct DropOut<'a, T> {
    pattern: &'a Pattern,
    dropout: &'a DropoutMask,
    rows: Range<usize>,
    values: &'a mut [T],
}

impl<T: Real> Task for DropOut<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let width = self.pattern.columns.count() as u64;
        let mut rest = self.values;
        for row in self.rows {
            let columns = self.pattern.rows.row(row);
            let (values, after) = rest.split_at_mut(columns.len());
            rest = after;
            let first = row as u64 * width;
            for (x, &column) in values.iter_mut().zip(columns) {
                *x *= self.dropout.factor(first + u64::from(column));
            }
        }
    }
}
