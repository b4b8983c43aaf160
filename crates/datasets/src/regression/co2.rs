//! Monthly means of atmospheric CO2 at Mauna Loa, in parts per million.
//!
//! The experiments use the scaled months from 1973-05 on. The raw file, which begins in 1965, says what
//! the scaled numbers are in parts per million.

use super::{Described, Place};
use crate::{Error, Table};

/// The raw file of the set.
pub const FILE: &str = "mauna-loa-c02-1965-2016.csv";

pub(super) const SET: Described = Described {
    name: "co2",
    rows: 527,
    inputs: 1,
    is_series: true,
    has_published_folds: false,
    table: Place::Scaled,
    released: Place::Scaled,
};

/// Lines of explanation, and the line of column names.
const HEADER_LINES: usize = 55;

/// The mean of one month.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Month {
    /// Year.
    pub year: u32,
    /// Month, from 1 to 12.
    pub month: u32,
    /// Middle of the month, in years.
    pub date: f64,
    /// Mole fraction of CO2 in dry air, in parts per million.
    pub ppm: f64,
}

/// Reads the raw file: 627 months without gaps, 1965-01 to 2017-03, none of them missing.
///
/// # Errors
/// [`Error::Malformed`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Month>, Error> {
    let table = Table::parse(file, bytes, HEADER_LINES, 9)?;
    let month = |i| match *table.row(i) {
        [year, month, date, ppm, ..] => Month {
            year: year as u32,
            month: month as u32,
            date,
            ppm,
        },
        _ => unreachable!("rows have nine columns"),
    };
    Ok((0..table.rows()).map(month).collect())
}
