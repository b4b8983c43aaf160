//! Compressive strength of 1,030 concretes in megapascals: seven ingredients and the age.
//!
//! The table has 1,005 distinct rows; 25 rows repeat others.

use super::{Described, Place};
use crate::{Error, Table, TableConfig};

/// The raw file of the set.
pub const FILE: &str = "Concrete_Data-1.csv";

pub(super) const SET: Described = Described {
    name: "concrete",
    rows: 1030,
    inputs: 8,
    is_series: false,
    has_published_folds: true,
    table: Place::Raw(FILE, parse),
    released: Place::Scaled,
};

/// Reads the raw file: one header line, then seven ingredients in kg per m³, the age in days, and, as
/// the last column, the target.
///
/// # Errors
/// [`Error::Malformed`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    Table::parse(file, bytes, 9, &TableConfig::default())
}
