//! Sparse matrices, row by row.

use super::GraphDefect;
use bochner_numerics::argument;

/// A sparse matrix in compressed rows (CSR).
///
/// Row $i$ has the columns `indices[indptr[i]..indptr[i + 1]]`, which increase, with the `values`
/// at these places; all other elements are zero. All values are finite.
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
    /// [`GraphDefect::Argument`] for arrays of other lengths, columns that are too large, values that are not
    /// finite, and an `indptr` that does not begin with 0 and end with the number of entries;
    /// [`GraphDefect::RowPointer`], [`GraphDefect::Unsorted`].
    pub fn new(
        shape: (usize, usize),
        indptr: Vec<usize>,
        indices: Vec<usize>,
        values: Vec<f32>,
    ) -> Result<Self, GraphDefect> {
        let (rows, columns) = shape;
        argument::shape("indptr", &[rows.saturating_add(1)], &[indptr.len()])?;
        argument::shape("values", &[indices.len()], &[values.len()])?;
        argument::finite("values", &[values.len()], &values)?;
        for &column in &indices {
            argument::index("indices", column, columns)?;
        }
        check_pointers(&indptr, indices.len())?;
        let increases =
            |row: &usize| indices[indptr[*row]..indptr[row + 1]].is_sorted_by(|a, b| a < b);
        if let Some(row) = (0..rows).find(|row| !increases(row)) {
            return Err(GraphDefect::Unsorted { row });
        }
        Ok(Self {
            columns,
            indptr,
            indices,
            values,
        })
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

    /// The offset of each row's first entry, and behind them the number of entries.
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
    /// Rows that hold only zeros stay unchanged.
    ///
    /// # Numerics
    /// The sums are taken in double precision, so that they do not overflow.
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

    /// Collects rows of other matrices, each given by its matrix and its number; `None` is an empty row.
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
    if let Some(row) = (0..indptr.len() - 1).find(|&row| !rises(row)) {
        return Err(GraphDefect::RowPointer { row });
    }
    let (first, last) = (indptr[0], indptr[indptr.len() - 1]);
    argument::in_range(first == 0, "the first of indptr", first as f64, "0")?;
    let allowed = format!("{entries}, the number of entries");
    let name = "the last of indptr";
    Ok(argument::in_range(
        last == entries,
        name,
        last as f64,
        allowed,
    )?)
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
        for (indptr, indices, values, found) in [
            (
                &[][..],
                &[][..],
                &[][..],
                "`indptr` has length 0, but must have length 3",
            ),
            (
                &[0, 0],
                &[],
                &[],
                "`indptr` has length 2, but must have length 3",
            ),
            (
                &[0, 0, 1],
                &[0],
                &[],
                "`values` has length 0, but must have length 1",
            ),
            (
                &[1, 1, 1],
                &[0],
                &[1.0],
                "`the first of indptr` is 1, but must be 0",
            ),
            (
                &[0, 0, 0],
                &[0],
                &[1.0],
                "`the last of indptr` is 0, but must be 1, the number of entries",
            ),
            (&[0, 2, 1], &[0], &[1.0], "the entries of row 0 end"),
            (&[0, 1, 0], &[0], &[1.0], "the entries of row 1 end"),
            (
                &[0, 0, 2],
                &[1, 1],
                &[1.0; 2],
                "the columns of row 1 do not increase",
            ),
            (
                &[0, 0, 2],
                &[1, 4],
                &[1.0; 2],
                "`indices` holds the index 4",
            ),
            (
                &[0, 0, 2],
                &[1, 2],
                &[1.0, f32::NAN],
                "`values` is NaN at [1]",
            ),
        ] {
            let defect = matrix(indptr, indices, values).unwrap_err().to_string();
            assert!(defect.starts_with(found), "{defect}");
        }
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
