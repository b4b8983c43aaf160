//! House prices in 506 districts of Boston: 13 inputs, the target is the median price.

use crate::lines::End;
use crate::table::{Cells, Format};
use crate::{Error, Table};

/// The raw file of the set.
pub const FILE: &str = "housing.data";

/// What the columns are; the last one is the target, in thousands of dollars and capped at 50.
pub const COLUMNS: [&str; 14] = [
    "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B",
    "LSTAT", "MEDV",
];

const FORMAT: Format = Format {
    header: None,
    cells: Cells::Spaces,
    columns: COLUMNS.len(),
    rows: 506,
    end: End::Bare,
};

/// Reads the raw file: numbers between runs of spaces, no header, no final line feed.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    FORMAT.read(file, bytes)
}
