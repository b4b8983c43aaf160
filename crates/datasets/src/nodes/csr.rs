//! Sparse matrices, row by row.

use super::GraphDefect;

/// A sparse matrix in compressed rows (CSR).
///
/// Row $i$ has the columns `indices[indptr[i]..indptr[i + 1]]`, which increase, with the `values`
/// at the same places; everything else is zero. All values are finite.
///
/// ```
/// use bochner_datasets::CsrMatrix;
///
/// let matrix = CsrMatrix::new((2, 4), vec![0, 2, 2], vec![1, 3], vec![0.5, 1.5])?;
/// assert_eq!(matrix.row(0), (&[1, 3][..], &[0.5, 1.5][..]));
/// assert_eq!(matrix.scaled_to_sum_1().values(), [0.25, 0.75]);
/// # Ok::<(), bochner_datasets::GraphDefect>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CsrMatrix {
    columns: usize,
    indptr: Vec<usize>,
    indices: Vec<usize>,
    values: Vec<f32>,
}

impl CsrMatrix {
    /// A matrix of `shape` (rows, columns).
    ///
    /// # Shapes
    /// `indptr` has one entry more than there are rows, `indices` and `values` one for each
    /// stored entry.
    ///
    /// # Errors
    /// [`GraphDefect::Size`], [`GraphDefect::RowPointer`], [`GraphDefect::OutOfRange`],
    /// [`GraphDefect::Unsorted`], [`GraphDefect::NotFinite`].
    pub fn new(
        shape: (usize, usize),
        indptr: Vec<usize>,
        indices: Vec<usize>,
        values: Vec<f32>,
    ) -> Result<Self, GraphDefect> {
        let (rows, columns) = shape;
        size(
            "rows of a sparse matrix",
            rows,
            indptr.len().wrapping_sub(1),
        )?;
        size("values of a sparse matrix", indices.len(), values.len())?;
        check_pointers(&indptr, indices.len())?;
        let matrix = Self {
            columns,
            indptr,
            indices,
            values,
        };
        (0..rows).try_for_each(|row| matrix.check_row(row))?;
        Ok(matrix)
    }

    fn check_row(&self, row: usize) -> Result<(), GraphDefect> {
        let (columns, values) = self.row(row);
        if !columns.is_sorted_by(|a, b| a < b) {
            return Err(GraphDefect::Unsorted { row });
        }
        if let Some(&last) = columns.last() {
            in_range("column", last as i64, 0, self.columns)?;
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(GraphDefect::NotFinite {
                row,
                column: columns[at],
            }),
            None => Ok(()),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// Where each row begins, and the number of entries at the end.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// The column of each entry.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Columns and values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> (&[usize], &[f32]) {
        let range = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The matrix with each row divided by the sum of its absolute values.
    ///
    /// Rows without a value other than zero stay as they are.
    ///
    /// # Numerics
    /// The sums are taken in double precision; no finite value becomes anything else.
    pub fn scaled_to_sum_1(&self) -> Self {
        let mut scaled = self.clone();
        for bounds in self.indptr.windows(2) {
            let row = &mut scaled.values[bounds[0]..bounds[1]];
            let sum: f64 = row.iter().map(|&value| f64::from(value).abs()).sum();
            if sum > 0.0 {
                row.iter_mut()
                    .for_each(|value| *value = (f64::from(*value) / sum) as f32);
            }
        }
        scaled
    }

    /// The matrix whose row $i$ is row `from[i]` of `sources[i]`, empty for `None`.
    pub(super) fn gather(columns: usize, rows: &[Option<(&Self, usize)>]) -> Self {
        let mut gathered = Self {
            columns,
            indptr: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        };
        for row in rows {
            if let Some((source, row)) = row {
                let (columns, values) = source.row(*row);
                gathered.indices.extend_from_slice(columns);
                gathered.values.extend_from_slice(values);
            }
            gathered.indptr.push(gathered.indices.len());
        }
        gathered
    }
}

fn check_pointers(indptr: &[usize], entries: usize) -> Result<(), GraphDefect> {
    let rises = |row: usize| indptr[row] <= indptr[row + 1] && indptr[row + 1] <= entries;
    match (0..indptr.len() - 1).find(|&row| !rises(row)) {
        Some(row) => Err(GraphDefect::RowPointer { row }),
        None => {
            size("entries before the first row", 0, indptr[0])?;
            size("entries of all rows", entries, indptr[indptr.len() - 1])
        }
    }
}

pub(super) fn size(what: &'static str, expected: usize, found: usize) -> Result<(), GraphDefect> {
    if expected == found {
        return Ok(());
    }
    Err(GraphDefect::Size {
        what,
        expected,
        found,
    })
}

/// `index` as a position from `start` to `end`, exclusive.
pub(super) fn in_range(
    what: &'static str,
    index: i64,
    start: usize,
    end: usize,
) -> Result<usize, GraphDefect> {
    usize::try_from(index)
        .ok()
        .filter(|index| (start..end).contains(index))
        .ok_or(GraphDefect::OutOfRange {
            what,
            index,
            start,
            end,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(
        indptr: &[usize],
        indices: &[usize],
        values: &[f32],
    ) -> Result<CsrMatrix, GraphDefect> {
        CsrMatrix::new((2, 4), indptr.into(), indices.into(), values.into())
    }

    #[test]
    fn every_rule_is_kept() {
        assert!(matrix(&[0, 2, 3], &[0, 3, 3], &[1.0, -1.0, 0.0]).is_ok());
        let defect = |indptr: &[usize], indices: &[usize], values: &[f32]| {
            matrix(indptr, indices, values).unwrap_err()
        };
        assert!(matches!(defect(&[], &[], &[]), GraphDefect::Size { .. }));
        assert!(matches!(
            defect(&[0, 0], &[], &[]),
            GraphDefect::Size { found: 1, .. }
        ));
        assert!(matches!(
            defect(&[0, 0, 1], &[0], &[]),
            GraphDefect::Size { found: 0, .. }
        ));
        assert!(matches!(
            defect(&[1, 1, 1], &[0], &[1.0]),
            GraphDefect::Size { found: 1, .. }
        ));
        assert!(matches!(
            defect(&[0, 0, 0], &[0], &[1.0]),
            GraphDefect::Size { found: 0, .. }
        ));
        assert_eq!(
            defect(&[0, 2, 1], &[0], &[1.0]),
            GraphDefect::RowPointer { row: 0 }
        );
        assert_eq!(
            defect(&[0, 1, 0], &[0], &[1.0]),
            GraphDefect::RowPointer { row: 1 }
        );
        assert_eq!(
            defect(&[0, 0, 2], &[1, 1], &[1.0; 2]),
            GraphDefect::Unsorted { row: 1 }
        );
        assert!(matches!(
            defect(&[0, 0, 2], &[1, 4], &[1.0; 2]),
            GraphDefect::OutOfRange {
                index: 4,
                end: 4,
                ..
            }
        ));
        assert_eq!(
            defect(&[0, 0, 2], &[1, 2], &[1.0, f32::NAN]),
            GraphDefect::NotFinite { row: 1, column: 2 }
        );
    }

    #[test]
    fn rows_are_scaled_without_overflow_and_zero_rows_stay() {
        let values = [f32::MAX, -f32::MAX, 0.0];
        let scaled = matrix(&[0, 2, 3], &[0, 1, 2], &values)
            .unwrap()
            .scaled_to_sum_1();
        assert_eq!(scaled.values(), [0.5, -0.5, 0.0]);
        let tiny = matrix(&[0, 0, 1], &[3], &[1e-45])
            .unwrap()
            .scaled_to_sum_1();
        assert_eq!(tiny.values(), [1.0]);
    }
}
