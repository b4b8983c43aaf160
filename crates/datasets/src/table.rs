//! Tables of numbers.

use crate::Error;
use crate::lines;
use bochner_numerics::argument;

/// Finite numbers in rows and columns, stored row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    values: Vec<f64>,
    columns: usize,
}

impl Table {
    /// A table of `values`, given row by row.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is no row or no column, if the last row is incomplete, or if a value
    /// is NaN or infinite.
    pub fn new(values: Vec<f64>, columns: usize) -> Result<Self, Error> {
        argument::not_empty("values", &[values.len(), columns])?;
        let rows = values.len().div_ceil(columns);
        argument::shape("values", &[rows * columns], &[values.len()])?;
        argument::finite("values", &[rows, columns], &values)?;
        Ok(Self { values, columns })
    }

    /// Reads the numbers in the lines of a file after the first `skip` lines. Commas and spaces separate
    /// them.
    pub(crate) fn parse(
        file: &str,
        bytes: &[u8],
        skip: usize,
        columns: usize,
    ) -> Result<Self, Error> {
        let expected = format!("{columns} finite numbers");
        let row = |line: &str| lines::numbers(line).filter(|row| row.len() == columns);
        let rows = lines::parse(file, bytes, skip, &expected, row)?;
        Self::new(rows.concat(), columns)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// Column `j` from top to bottom.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, j: usize) -> impl Iterator<Item = f64> + '_ {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        self.values[j..].iter().step_by(self.columns).copied()
    }

    /// The table with its columns in the order of `columns`, which may leave some out.
    pub(crate) fn select(&self, columns: &[usize]) -> Self {
        let values = self
            .values
            .chunks(self.columns)
            .flat_map(|row| columns.iter().map(|&j| row[j]))
            .collect();
        Self {
            values,
            columns: columns.len(),
        }
    }

    /// Rows 0, `step`, 2 `step`, ...
    pub(crate) fn every(&self, step: usize) -> Self {
        let rows = self.values.chunks(self.columns).step_by(step);
        Self {
            values: rows.flatten().copied().collect(),
            columns: self.columns,
        }
    }

    /// The rows of `self`, then those of `below`.
    pub(crate) fn stack(mut self, below: &Self) -> Self {
        assert_eq!(self.columns, below.columns, "columns of stacked tables");
        self.values.extend(&below.values);
        self
    }

    /// All columns but the last, and the last.
    pub(crate) fn split_target(&self) -> (Self, Vec<f64>) {
        let last = self.columns - 1;
        let inputs: Vec<usize> = (0..last).collect();
        (self.select(&inputs), self.column(last).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_another_length_are_named() {
        let table = Table::parse("f", b"a,b\n1 ,2 \n -3e-1   +4", 1, 2).unwrap();
        assert_eq!(table.values(), [1.0, 2.0, -0.3, 4.0]);
        for text in ["a,b\n1,2\n3\n", "a,b\n1,2\n3,4,5\n", "a,b\n1,2\n\n"] {
            let error = Table::parse("f", text.as_bytes(), 1, 2)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("f, line 3: expected 2 finite numbers, found"),
                "{error}"
            );
        }
        assert!(
            Table::parse("f", b"a,b\n", 1, 2).is_err(),
            "there are no rows"
        );
    }

    #[test]
    fn tables_are_rectangular_and_finite() {
        assert!(Table::new(vec![1.0; 3], 2).is_err());
        assert!(Table::new(vec![], 2).is_err() && Table::new(vec![1.0], 0).is_err());
        let error = Table::new(vec![1.0, 2.0, f64::NAN, 4.0], 2).unwrap_err();
        assert!(error.to_string().starts_with("`values` is NaN at [1, 0]"));
    }

    #[test]
    fn columns_and_rows_are_picked() {
        let table = Table::new((0..9).map(f64::from).collect(), 3).unwrap();
        assert_eq!(table.select(&[2, 0]).row(1), [5.0, 3.0]);
        assert_eq!(table.every(2).values(), [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]);
        let (inputs, target) = table.split_target();
        assert_eq!(
            (inputs.row(2), &target[..]),
            (&[6.0, 7.0][..], &[2.0, 5.0, 8.0][..])
        );
        assert_eq!(table.every(2).stack(&table).rows(), 5);
    }
}
