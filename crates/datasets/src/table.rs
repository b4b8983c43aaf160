//! Tables of numbers, and the strict reader for the formats they come in.

use crate::Error;
use crate::lines::{End, Lines, excerpt, number};

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
    /// [`Error::ShapeMismatch`] if there are no columns, no rows or an incomplete one;
    /// [`Error::NotFinite`].
    pub fn new(values: Vec<f64>, columns: usize) -> Result<Self, Error> {
        if columns == 0 || values.is_empty() || !values.len().is_multiple_of(columns) {
            let expected = format!("a positive multiple of {columns} columns");
            return Err(Error::shape("values of a table", expected, values.len()));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite {
                row: at / columns,
                column: at % columns,
                value: values[at],
            });
        }
        Ok(Self { values, columns })
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

/// How the cells of a row stand beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cells {
    /// `a,b,c`
    Comma,
    /// `a ,b ,c `
    CommaPadded,
    /// `  a b    c`
    Spaces,
}

impl Cells {
    fn split(self, line: &str) -> Vec<&str> {
        match self {
            Self::Comma => line.split(',').collect(),
            Self::CommaPadded => line
                .split(',')
                .map(|cell| cell.strip_suffix(' ').unwrap_or(cell))
                .collect(),
            Self::Spaces => line.split(' ').filter(|cell| !cell.is_empty()).collect(),
        }
    }
}

/// The exact shape of a file of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) header: Option<&'static str>,
    pub(crate) cells: Cells,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) end: End,
}

impl Format {
    /// Lines `a,b,c` without a header, each ended by a line feed.
    pub(crate) const fn csv(rows: usize, columns: usize) -> Self {
        Self {
            header: None,
            cells: Cells::Comma,
            columns,
            rows,
            end: End::LineFeed,
        }
    }

    /// Reads bytes that must have exactly this format.
    pub(crate) fn read(&self, file: &str, bytes: &[u8]) -> Result<Table, Error> {
        let mut lines = Lines::new(file, bytes);
        if let Some(header) = self.header {
            lines.header(header)?;
        }
        let mut values = Vec::with_capacity(self.rows * self.columns);
        for row in 0..self.rows {
            let line = lines.require(|| format!("row {} of {}", row + 1, self.rows))?;
            self.read_row(line, &lines, &mut values)?;
        }
        lines.finish(self.end)?;
        Table::new(values, self.columns)
    }

    fn read_row(&self, line: &str, lines: &Lines, values: &mut Vec<f64>) -> Result<(), Error> {
        let cells = self.cells.split(line);
        if cells.len() != self.columns {
            let expected = format!("{} numbers", self.columns);
            let found = format!("{} in {}", cells.len(), excerpt(line));
            return Err(lines.malformed(expected, found));
        }
        for (j, cell) in cells.into_iter().enumerate() {
            let value = number(cell).ok_or_else(|| {
                let expected = format!("a finite number in column {}", j + 1);
                lines.malformed(expected, excerpt(cell))
            })?;
            values.push(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Format = Format::csv(2, 2);

    fn position(format: Format, text: &str) -> (usize, String) {
        match format.read("f", text.as_bytes()) {
            Err(Error::Malformed { line, expected, .. }) => (line, expected),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_format_is_read_exactly() {
        let table = CSV.read("f", b"1,2\n-3e-1,+4\n").unwrap();
        assert_eq!(table.values(), [1.0, 2.0, -0.3, 4.0]);
        assert_eq!((table.rows(), table.columns()), (2, 2));
    }

    #[test]
    fn every_defect_has_its_line() {
        for (text, line, expected) in [
            ("", 1, "row 1 of 2"),
            ("1,2\n", 2, "row 2 of 2"),
            ("1,2\n3\n", 2, "2 numbers"),
            ("1,2,3\n3,4\n", 1, "2 numbers"),
            ("1,2\n\n3,4\n", 2, "2 numbers"),
            ("1,2\n3,nan\n", 2, "a finite number in column 2"),
            ("inf,2\n3,4\n", 1, "a finite number in column 1"),
            ("1, 2\n3,4\n", 1, "a finite number in column 2"),
            ("1,2\n3,4\n5,6\n", 3, "the end of the file"),
            ("1,2\n3,4\n\n", 3, "the end of the file"),
            ("1,2\n3,4", 2, "a line feed"),
            ("1,2\r\n3,4\r\n", 1, "lines that end in a line feed"),
            ("\u{feff}1,2\n3,4\n", 1, "text"),
        ] {
            assert_eq!(position(CSV, text), (line, expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn cells_may_be_padded_or_spaced() {
        let padded = Format {
            header: Some("a,b"),
            cells: Cells::CommaPadded,
            ..Format::csv(1, 2)
        };
        assert_eq!(
            padded.read("f", b"a,b\n1 ,2 \n").unwrap().row(0),
            [1.0, 2.0]
        );
        assert_eq!(position(padded, "a,c\n1 ,2 \n").0, 1);
        assert_eq!(position(padded, "a,b\n1  ,2\n").0, 2);
        let spaced = Format {
            cells: Cells::Spaces,
            end: End::Bare,
            ..Format::csv(1, 2)
        };
        assert_eq!(spaced.read("f", b"  1   2").unwrap().row(0), [1.0, 2.0]);
        assert_eq!(position(spaced, "1 2\n"), (1, "the end of the file".into()));
        assert_eq!(position(spaced, "1\t2").0, 1);
    }

    #[test]
    fn tables_are_rectangular_and_finite() {
        assert!(Table::new(vec![1.0; 3], 2).is_err());
        assert!(Table::new(vec![], 2).is_err() && Table::new(vec![1.0], 0).is_err());
        let error = Table::new(vec![1.0, 2.0, f64::NAN, 4.0], 2).unwrap_err();
        assert!(error.to_string().starts_with("row 1, column 0"));
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
