//! Monthly means of atmospheric CO2 at Mauna Loa, in parts per million.
//!
//! The experiments use the scaled months from 1973-05 on. The raw file, which begins in 1965, says what
//! the scaled numbers are in parts per million.

use super::{Described, Place};
use crate::{Error, Table, TableConfig};

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

/// Lines of explanation, before the line of column names.
const EXPLANATION: usize = 54;

/// The number that stands for a missing mean.
const MISSING: f64 = -99.99;

/// The mean of one month.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Month {
    /// Year.
    pub year: u32,
    /// Month, from 1 to 12.
    pub month: u32,
    /// Middle of the month, in years.
    pub date: f64,
    /// Mole fraction of CO2 in dry air, in parts per million; `None` if it was not measured.
    pub ppm: Option<f64>,
}

/// Reads the raw file: in the published one 627 months, 1965-01 to 2017-03, none of them missing.
///
/// # Errors
/// [`Error::Malformed`] with the line, also for a month that is not the one after that of the line before, a date that is
/// not in its year, and a mole fraction that is not positive; [`Error::Text`] for bytes that are not UTF-8.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Month>, Error> {
    let config = TableConfig {
        skip: EXPLANATION,
        ..TableConfig::default()
    };
    let table = Table::parse(file, bytes, 9, &config)?;
    let mut months: Vec<Month> = Vec::with_capacity(table.rows());
    for i in 0..table.rows() {
        let row = table.row(i);
        let next = month(row).filter(|month| {
            let follows = |before: &Month| before.index() + 1 == month.index();
            months.last().is_none_or(follows)
        });
        months.push(next.ok_or_else(|| Error::Malformed {
            file: file.to_owned(),
            line: EXPLANATION + 2 + i,
            expected: match months.last() {
                None => {
                    "a year, a month from 1 to 12, a date in it and a positive number".to_owned()
                }
                Some(before) => format!(
                    "the month after {}-{:02}, a date in it and a positive number",
                    before.year, before.month
                ),
            },
            found: format!("{:?}", &row[..4]),
        })?);
    }
    Ok(months)
}

impl Month {
    /// The number of the month among those of all years.
    fn index(&self) -> u32 {
        12 * self.year + self.month
    }
}

/// The month of a row, unless its numbers are none of a month.
fn month(row: &[f64]) -> Option<Month> {
    let whole =
        |x: f64, most: f64| (x.fract() == 0.0 && (1.0..=most).contains(&x)).then_some(x as u32);
    let (date, ppm) = (row[2], row[3]);
    let is_right = date.floor() == row[0] && (ppm > 0.0 || ppm == MISSING);
    is_right.then_some(Month {
        year: whole(row[0], 9999.0)?,
        month: whole(row[1], 12.0)?,
        date,
        ppm: (ppm != MISSING).then_some(ppm),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file with these rows.
    fn read(rows: &[&str]) -> Result<Vec<Month>, Error> {
        let explanation = "\"about, the file\",,\n".repeat(EXPLANATION);
        let names = "year,month,date,CO2,a,b,c,d,e\n";
        let rows = rows.iter().map(|row| format!("{row},0,0,0,0,0\n"));
        let text = [explanation, names.to_owned(), rows.collect()].concat();
        parse("f", text.as_bytes())
    }

    #[test]
    fn a_missing_month_has_no_number() {
        let months = read(&["1964,12,1964.96,-99.99", "1965,1,1965.04,319.44"]).unwrap();
        let found: Vec<_> = months
            .iter()
            .map(|month| (month.year, month.month, month.ppm))
            .collect();
        assert_eq!(found, [(1964, 12, None), (1965, 1, Some(319.44))]);
    }

    #[test]
    fn a_month_that_is_none_or_not_the_next_is_named() {
        for wrong in [
            "1965,13,1965.126,320",
            "1965.9,2,1965.126,320",
            "1965,0,1965.126,320",
            "1965,3,1965.2027,320",
            "1965,1,1965.0411,320",
            "1965,2,1966.126,320",
            "1965,2,1965.126,0",
        ] {
            let error = read(&["1965,1,1965.0411,319.44", wrong]).unwrap_err();
            let said = error.to_string();
            assert!(
                said.starts_with("f, line 57: expected the month after 1965-01"),
                "{said}"
            );
        }
        assert!(
            read(&["1965,13,1965.0411,319.44"])
                .unwrap_err()
                .to_string()
                .contains("line 56")
        );
    }
}
