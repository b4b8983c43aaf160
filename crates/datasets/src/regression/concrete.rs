//! Compressive strength of 1,030 concretes in megapascals: seven ingredients and the age.
//!
//! 25 rows repeat others.

use crate::lines::End;
use crate::table::{Cells, Format};
use crate::{Error, Table};

/// The raw file of the set.
pub const FILE: &str = "Concrete_Data-1.csv";

const HEADER: &str = "Cement (component 1)(kg in a m^3 mixture),\
    Blast Furnace Slag (component 2)(kg in a m^3 mixture),\
    Fly Ash (component 3)(kg in a m^3 mixture),\
    Water  (component 4)(kg in a m^3 mixture),\
    Superplasticizer (component 5)(kg in a m^3 mixture),\
    Coarse Aggregate  (component 6)(kg in a m^3 mixture),\
    Fine Aggregate (component 7)(kg in a m^3 mixture),\
    Age (day),\"Concrete compressive strength(MPa, megapascals) \"";

const FORMAT: Format = Format {
    header: Some(HEADER),
    cells: Cells::CommaPadded,
    columns: 9,
    rows: 1030,
    end: End::LineFeed,
};

/// Reads the raw file: one header line, then fields padded with a space. The last column is the
/// target.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    FORMAT.read(file, bytes)
}
