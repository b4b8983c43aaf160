//! 5,875 voice recordings of 42 people with Parkinson's disease; the target is `total_UPDRS`, the
//! score of their symptoms.
//!
//! The source interpolated the score in time for each person. Person and time are inputs, so a model can
//! read a test row's target off the training rows of the same person: random folds leak by design.
//!
//! Cite A. Tsanas, M. A. Little, P. E. McSharry, L. O. Ramig, *Accurate telemonitoring of
//! Parkinson's disease progression by non-invasive speech tests*, 2010 (CC BY 4.0).

use super::{Described, Place};
use crate::{Error, Table, TableConfig};

/// The raw file of the set.
pub const FILE: &str = "parkinsons_updrs.data";

pub(super) const SET: Described = Described {
    name: "parkinsons",
    rows: 5875,
    inputs: 20,
    is_series: false,
    has_published_folds: true,
    table: Place::Raw(FILE, parse),
    released: Place::Raw(FILE, parse),
};

const TOTAL_UPDRS: usize = 5;

/// Reads the raw file into 20 inputs (subject, age, sex, time and 16 measures of the voice) and,
/// as the last column, the target. `motor_UPDRS`, a part of the target, is left out.
///
/// # Errors
/// [`Error::Malformed`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    let columns: Vec<usize> = (0..4).chain(6..22).chain([TOTAL_UPDRS]).collect();
    Ok(Table::parse(file, bytes, 22, &TableConfig::default())?.select(&columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_comes_last_and_the_motor_score_not_at_all() {
        let row: Vec<String> = (0..22).map(|j| format!("{j}e-001")).collect();
        let names: Vec<String> = (0..22).map(|j| format!("column {j}")).collect();
        let table = parse(
            "f",
            format!("{}\n{}", names.join(","), row.join(",")).as_bytes(),
        )
        .unwrap();
        let tenths: Vec<f64> = table.row(0).iter().map(|v| (v * 10.0).round()).collect();
        let wanted = (0..22)
            .filter(|&j| j != 4 && j != 5)
            .chain([5])
            .map(f64::from);
        assert_eq!(tenths, wanted.collect::<Vec<_>>());
    }
}
