//! Passengers of international airlines, in thousands a month, 1949 to 1960.
//!
//! The series is small and public (G. E. P. Box, G. M. Jenkins, *Time Series Analysis*, series G),
//! so it is part of the crate, and examples run on real data without files or network.

use super::{Described, Place};
use crate::provenance::FileProvenance;
use crate::store::DataStore;
use crate::{Error, RegressionSet, Table, manifest};

/// The raw file of the set.
pub const FILE: &str = "international-airline-passengers.csv";

pub(super) const SET: Described = Described {
    name: "passenger",
    rows: AIRLINE_PASSENGERS.len(),
    inputs: 1,
    is_series: true,
    has_published_folds: false,
    table: Place::Here,
    released: Place::Here,
};

/// Thousands of passengers in each month, from January 1949 on.
#[rustfmt::skip] // One year per line.
pub const AIRLINE_PASSENGERS: [u16; 144] = [
    112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118, // 1949
    115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140, // 1950
    145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166, // 1951
    171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194, // 1952
    196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201, // 1953
    204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229, // 1954
    242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278, // 1955
    284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306, // 1956
    315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336, // 1957
    340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337, // 1958
    360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405, // 1959
    417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432, // 1960
];

/// The series as a table with two columns: the number of the month, from 0, and thousands of passengers.
pub fn table() -> Table {
    let months = AIRLINE_PASSENGERS.iter().enumerate();
    let values = months.flat_map(|(i, &thousands)| [i as f64, f64::from(thousands)]);
    Table::new(values.collect(), 2).expect("the series is a table")
}

/// Checks those files of the set that stand in the given directory: none of them is needed, but a wrong
/// one must not go unnoticed.
pub(super) fn given(store: &DataStore) -> Result<Vec<FileProvenance>, Error> {
    let files = [FILE, "train.csv", "test.csv"].iter();
    let found = files.map(|name| {
        let entry = manifest::entry(&format!("{}/{name}", RegressionSet::Passenger))?;
        let stored = store.fetch_given(entry)?;
        Ok(stored.map(|stored| FileProvenance::of(entry, &stored)))
    });
    found.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_sums_to_its_published_mean() {
        // The mean of series G is 280.30 thousand.
        let sum: u32 = AIRLINE_PASSENGERS.into_iter().map(u32::from).sum();
        assert_eq!(sum, 40363);
    }
}
