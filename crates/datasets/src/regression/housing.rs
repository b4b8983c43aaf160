//! House prices in 506 districts of Boston: 13 inputs, the target is the median price.

use super::{Described, Place};
use crate::{Delimiter, Error, Header, Table, TableConfig};

/// The raw file of the set.
pub const FILE: &str = "housing.data";

pub(super) const SET: Described = Described {
    name: "housing",
    rows: 506,
    inputs: 13,
    is_series: false,
    has_published_folds: true,
    table: Place::Raw(FILE, parse),
    released: Place::Raw(FILE, parse),
};

/// The names of the columns; the last one is the target, in thousands of dollars and capped at 50.
pub const COLUMNS: [&str; 14] = [
    "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B",
    "LSTAT", "MEDV",
];

/// Reads the raw file: numbers between runs of spaces, no header.
///
/// # Errors
/// [`Error::Malformed`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    let config = TableConfig {
        delimiter: Delimiter::Spaces,
        header: Header::None,
        ..TableConfig::default()
    };
    Table::parse(file, bytes, COLUMNS.len(), &config)
}
