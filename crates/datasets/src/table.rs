//! Tables of numbers, and the files that hold them.

use crate::Error;
use crate::lines::{excerpt, number};
use crate::records::{Delimiter, Record, records};
use bochner_numerics::argument;
use bochner_text::lines::utf8;
use serde::{Deserialize, Serialize};

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

    /// Reads a table whose rows are complete and have a known number of columns.
    pub(crate) fn parse(
        file: &str,
        bytes: &[u8],
        columns: usize,
        config: &TableConfig,
    ) -> Result<Self, Error> {
        let table = parse(file, bytes, config)?.table;
        if table.columns == columns {
            return Ok(table);
        }
        Err(Error::Malformed {
            file: file.to_owned(),
            line: config.skip + 1,
            expected: format!("{columns} cells"),
            found: format!("{} cells", table.columns),
        })
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

/// The form of a file that holds a table of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableConfig {
    /// The character between cells; a comma by default.
    pub delimiter: Delimiter,
    /// The number of lines before the names of the columns, or before the first row; 0 by default.
    #[doc(alias = "skiprows")]
    pub skip: usize,
    /// The first line: names of the columns by default.
    pub header: Header,
    /// The names of the columns that are read, in this order; all by default. Others may hold any text.
    #[doc(alias = "usecols")]
    pub columns: Vec<String>,
    /// The cells that stand for missing values; by default nothing, `NA`, `N/A`, `NaN`, `nan`, `null` and `?`.
    #[doc(alias = "na_values")]
    pub missing: Vec<String>,
    /// The treatment of rows with a missing value; they are refused by default.
    pub gaps: Gaps,
}

/// The first line of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// It names the columns.
    #[default]
    Names,
    /// It is a row of numbers, as all others are.
    None,
}

/// The treatment of rows with a missing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// They are an error, which names the line and the column.
    #[default]
    Refuse,
    /// They are left out, and their lines are listed.
    Drop,
}

impl Default for TableConfig {
    fn default() -> Self {
        let missing = ["", "NA", "N/A", "NaN", "nan", "null", "?"];
        Self {
            delimiter: Delimiter::Comma,
            skip: 0,
            header: Header::Names,
            columns: Vec::new(),
            missing: missing.map(str::to_owned).to_vec(),
            gaps: Gaps::Refuse,
        }
    }
}

/// A table from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTable {
    /// The names of the columns; empty if the file does not name them.
    pub names: Vec<String>,
    /// The numbers.
    pub table: Table,
    /// The lines of the rows that were left out for a missing value, from 1.
    pub dropped: Vec<usize>,
}

/// Reads a table of numbers from a file. The name `file` is only for messages.
///
/// All rows have the same number of cells, so that no number slips into another column.
///
/// ```
/// use bochner_datasets::table::{Gaps, TableConfig, parse};
///
/// let text = b"city,rain,sun\nBergen,2495,1187\nCairo,18,NA\nOslo,836,1740\n";
/// let columns = ["sun", "rain"].map(str::to_owned).to_vec();
/// let config = TableConfig { columns, gaps: Gaps::Drop, ..TableConfig::default() };
/// let read = parse("weather.csv", text, &config)?;
/// assert_eq!(read.table.values(), [1187.0, 2495.0, 1740.0, 836.0]);
/// assert_eq!(read.dropped, [3]);
///
/// let refused = parse("weather.csv", b"18,3451\n836,1740\n", &TableConfig::default()).unwrap_err();
/// assert!(refused.to_string().starts_with("weather.csv, line 1: expected the names of the columns"));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// [`Error::Text`] for bytes that are not UTF-8; [`Error::UnknownColumn`]; [`Error::Malformed`] with the line for a blank
/// line, another number of cells than the first line has, quotes that are not closed, a cell that is no finite number, a
/// missing value unless such rows are dropped, names of columns where there should be numbers and the reverse, and for a
/// file without rows.
pub fn parse(file: &str, bytes: &[u8], config: &TableConfig) -> Result<NamedTable, Error> {
    let records = records(file, utf8(file, bytes)?, config.skip, config.delimiter)?;
    let mut rows = records.iter();
    let names = match config.header {
        Header::Names => names(file, rows.next(), config)?,
        Header::None => Vec::new(),
    };
    let places = match &config.columns[..] {
        [] => (0..records.first().map_or(0, |first| first.cells.len())).collect(),
        columns => places(file, &names, columns)?,
    };
    let (mut values, mut dropped) = (Vec::new(), Vec::new());
    for Record { line, cells } in rows {
        let row = places.iter().map(|&at| {
            let cell = &*cells[at];
            if config.missing.iter().any(|mark| mark == cell) {
                return Ok(None);
            }
            let read = number(cell).map(Some);
            read.ok_or_else(|| wrong_cell(file, *line, at, &names, excerpt(cell)))
        });
        let row: Vec<Option<f64>> = row.collect::<Result<_, _>>()?;
        match row.iter().position(Option::is_none) {
            None => values.extend(row.into_iter().flatten()),
            Some(_) if config.gaps == Gaps::Drop => dropped.push(*line),
            Some(at) => {
                let found = format!("{}, a missing value", excerpt(&cells[places[at]]));
                return Err(wrong_cell(file, *line, places[at], &names, found));
            }
        }
    }
    if values.is_empty() {
        return Err(Error::Malformed {
            file: file.to_owned(),
            line: records.last().map_or(config.skip, |last| last.line) + 1,
            expected: "a row of numbers".to_owned(),
            found: match dropped.len() {
                0 => "the end of the file".to_owned(),
                rows => format!("the end of the file, and a missing value in each of {rows} rows"),
            },
        });
    }
    let names = match names.is_empty() {
        true => names,
        false => places.iter().map(|&at| names[at].clone()).collect(),
    };
    Ok(NamedTable {
        names,
        table: Table::new(values, places.len())?,
        dropped,
    })
}

/// The names in the first line of a table, which are not numbers and differ from each other.
fn names(file: &str, first: Option<&Record>, config: &TableConfig) -> Result<Vec<String>, Error> {
    let malformed = |line, expected: &str, found| Error::Malformed {
        file: file.to_owned(),
        line,
        expected: expected.to_owned(),
        found,
    };
    let Some(Record { line, cells }) = first else {
        let found = "the end of the file".to_owned();
        return Err(malformed(
            config.skip + 1,
            "the names of the columns",
            found,
        ));
    };
    if cells.iter().all(|cell| number(cell).is_some()) {
        let found = format!("numbers, {}", excerpt(&cells.join(",")));
        let expected = "the names of the columns (or `Header::None`)";
        return Err(malformed(*line, expected, found));
    }
    let repeated = |(at, name): (usize, &String)| !name.is_empty() && cells[..at].contains(name);
    match cells.iter().enumerate().position(repeated) {
        None => Ok(cells.clone()),
        Some(at) => Err(malformed(
            *line,
            "each name of a column once",
            format!("{} twice", excerpt(&cells[at])),
        )),
    }
}

/// The places of columns among those of a file.
pub(crate) fn places(
    file: &str,
    names: &[String],
    columns: &[String],
) -> Result<Vec<usize>, Error> {
    let place = |column: &String| {
        let place = names.iter().position(|name| name == column);
        place.ok_or_else(|| Error::UnknownColumn {
            file: file.to_owned(),
            column: column.clone(),
            known: match names {
                [] => "none".to_owned(),
                names => excerpt(&names.join(", ")),
            },
        })
    };
    columns.iter().map(place).collect()
}

fn wrong_cell(file: &str, line: usize, at: usize, names: &[String], found: String) -> Error {
    let column = match names.get(at).filter(|name| !name.is_empty()) {
        Some(name) => format!("`{name}`"),
        None => (at + 1).to_string(),
    };
    Error::Malformed {
        file: file.to_owned(),
        line,
        expected: format!("a finite number in column {column}"),
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, config: &TableConfig) -> NamedTable {
        parse("f", text.as_bytes(), config).unwrap()
    }

    fn refused(text: &str, config: &TableConfig) -> String {
        parse("f", text.as_bytes(), config).unwrap_err().to_string()
    }

    fn with(delimiter: Delimiter, header: Header) -> TableConfig {
        TableConfig {
            delimiter,
            header,
            ..TableConfig::default()
        }
    }

    #[test]
    fn the_line_that_cannot_be_read_is_named() {
        let config = TableConfig::default();
        for (text, wanted) in [
            (
                "a,b\n1,2\n3\n",
                "f, line 3: expected 2 cells, found 1 cells",
            ),
            (
                "a,b\n1,2\n3,4,5\n",
                "f, line 3: expected 2 cells, found 3 cells",
            ),
            (
                "a,b\r\n1,2\r\n\r\n3,4\r\n",
                "f, line 3: expected a row, found a blank line",
            ),
            (
                "a,b\n1,2\n\n3,4\n",
                "f, line 3: expected a row, found a blank line",
            ),
            (
                "a,b\n1,2\n3,x\n",
                "f, line 3: expected a finite number in column `b`, found \"x\"",
            ),
            (
                "a,\n1,2\n3,inf\n",
                "f, line 3: expected a finite number in column 2, found \"inf\"",
            ),
            (
                "a,b\n1,2\n,4\n",
                "f, line 3: expected a finite number in column `a`, found \"\", a missing value",
            ),
            (
                "1,2\n3,4\n",
                "f, line 1: expected the names of the columns (or `Header::None`), found numbers, \"1,2\"",
            ),
            (
                "a,a\n3,4\n",
                "f, line 1: expected each name of a column once, found \"a\" twice",
            ),
            (
                "a,b\n",
                "f, line 2: expected a row of numbers, found the end of the file",
            ),
            (
                "",
                "f, line 1: expected the names of the columns, found the end of the file",
            ),
            (
                "a,b\n1,\"2\n3,4\n",
                "f, line 2: expected a closing quote, found the end of the file",
            ),
            // A name may take several lines.
            (
                "\"a\nb\",c\n1,2\n3,x\n",
                "f, line 4: expected a finite number in column `c`, found \"x\"",
            ),
        ] {
            let said = refused(text, &config);
            assert!(said.starts_with(wanted), "{said}");
        }
        let spaces = with(Delimiter::Spaces, Header::None);
        assert!(refused("1 2\n\n3 4", &spaces).starts_with("f, line 2: expected a row"));
        assert!(refused("a b\n3 4", &spaces).starts_with("f, line 1: expected a finite number"));
        let utf16: Vec<u8> = "a,b\n1,2\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let said = parse("f", &utf16, &config).unwrap_err().to_string();
        assert!(said.contains("UTF-16: convert it to UTF-8"), "{said}");
    }

    #[test]
    fn empty_cells_shift_no_column() {
        let config = TableConfig {
            gaps: Gaps::Drop,
            ..TableConfig::default()
        };
        let gaps = read("\u{feff}a,b,c\r\n1,,3\r\n4,5,6\r\nNA,8,9\r\n", &config);
        assert_eq!(gaps.names, ["a", "b", "c"]);
        assert_eq!(
            (gaps.table.values(), &gaps.dropped[..]),
            (&[4.0, 5.0, 6.0][..], &[2, 4][..])
        );
        let said = refused("a,b\n1,?\n", &config);
        assert!(said.contains("a missing value in each of 1 rows"), "{said}");
    }

    #[test]
    fn cells_stand_between_delimiters() {
        let commas = read("\"a\", b\n\"1\" , 2.5e-1 \n", &TableConfig::default());
        assert_eq!(
            (commas.names[1].as_str(), commas.table.values()),
            ("b", &[1.0, 0.25][..])
        );
        for (delimiter, text) in [
            (Delimiter::Semicolon, "1;2\n3;4\n\n"),
            (Delimiter::Tab, "1\t2\r\n3\t4"),
            (Delimiter::Spaces, "  1   2\n 3 \t 4 \n"),
        ] {
            let read = read(text, &with(delimiter, Header::None));
            assert_eq!(read.table.values(), [1.0, 2.0, 3.0, 4.0], "{delimiter:?}");
            assert!(read.names.is_empty());
        }
    }

    #[test]
    fn columns_are_found_by_name_behind_skipped_lines() {
        let config = |columns: &[&str]| TableConfig {
            skip: 2,
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            ..TableConfig::default()
        };
        let text = "about \"this\nfile, \nname,x,y\nfoo,1,2\nbar,3,4\n";
        let found = read(text, &config(&["y", "x"]));
        assert_eq!(found.names, ["y", "x"]);
        assert_eq!(found.table.values(), [2.0, 1.0, 4.0, 3.0]);
        let said = refused(text, &config(&["x", "z"]));
        let wanted = "f has no column called `z`: its first line names \"name, x, y\"; give one";
        assert!(said.starts_with(wanted), "{said}");
        let said = refused(&text.replace("3,4", "3,"), &config(&["y"]));
        assert!(
            said.starts_with("f, line 5: expected a finite number in column `y`"),
            "{said}"
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
