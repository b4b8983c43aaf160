//! Monthly means of atmospheric CO2 at Mauna Loa, in parts per million.
//!
//! The experiments use the scaled months from 1973-05 on; the raw file, from 1965 on, gives the
//! numbers their units back.

use crate::Error;
use crate::lines::{End, Lines, excerpt, number};

/// The raw file of the set.
pub const FILE: &str = "mauna-loa-c02-1965-2016.csv";

const MONTHS: usize = 627;
const HEADER_LINES: usize = 54;
const COLUMNS: &str = "year,month,date [decimal],CO2 [ppm],seasonally adjusted [ppm],fit [ppm],\
                       seasonally adjusted fit [ppm],C02 filled [ppm],\
                       seasonally adjusted filled [ppm]";
/// What the source writes where there was no measurement.
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
    /// Mole fraction of CO2 in dry air, in parts per million.
    pub ppm: f64,
}

/// Reads the raw file: 627 months without gaps, 1965-01 to 2017-03.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Month>, Error> {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut lines = Lines::new(file, text);
    for line in 1..=HEADER_LINES {
        lines.require(|| format!("header line {line} of {HEADER_LINES}"))?;
    }
    lines.header(COLUMNS)?;
    let mut months = Vec::with_capacity(MONTHS);
    for i in 0..MONTHS {
        let line = lines.require(|| format!("month {} of {MONTHS}", i + 1))?;
        let (year, month) = (1965 + i / 12, i % 12 + 1);
        months.push(parse_month(line, year as u32, month as u32).ok_or_else(|| {
            let expected = format!("{year},{month} and seven numbers, none of them missing");
            lines.malformed(expected, excerpt(line))
        })?);
    }
    lines.finish(End::LineFeed)?;
    Ok(months)
}

fn parse_month(line: &str, year: u32, month: u32) -> Option<Month> {
    let cells: Vec<f64> = line.split(',').map(number).collect::<Option<_>>()?;
    let in_order = cells.len() == 9 && cells[..2] == [f64::from(year), f64::from(month)];
    if !in_order || cells.contains(&MISSING) {
        return None;
    }
    Some(Month {
        year,
        month,
        date: cells[2],
        ppm: cells[3],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synthetic() -> Vec<String> {
        let mut lines = vec!["\u{feff}19.5°N,,".to_owned()];
        lines.resize(HEADER_LINES, ",,".to_owned());
        lines.push(COLUMNS.to_owned());
        lines.extend((0..MONTHS).map(|i| {
            let (year, month) = (1965 + i / 12, i % 12 + 1);
            format!("{year},{month},{year}.5,{i}.25,0,0,0,0,0")
        }));
        lines
    }

    fn read(lines: &[String]) -> Result<Vec<Month>, Error> {
        parse("f", (lines.join("\n") + "\n").as_bytes())
    }

    #[test]
    fn months_are_read_after_the_header() {
        let months = read(&synthetic()).unwrap();
        let last = months[626];
        assert_eq!(
            (last.year, last.month, last.date, last.ppm),
            (2017, 3, 2017.5, 626.25)
        );
    }

    #[test]
    fn gaps_and_missing_values_are_named() {
        for (line, text) in [
            (54, "year,month"),
            (60, "1965,7,1965.5,1,2,3,4,5,6"),
            (60, "1965,6,1965.5,-99.99,2,3,4,5,6"),
            (60, "1965,6,1965.5,1,2,3,4,5"),
            (60, "1965,6,1965.5,nan,2,3,4,5,6"),
        ] {
            let mut lines = synthetic();
            lines[line] = text.to_owned();
            let error = read(&lines).unwrap_err();
            assert!(
                matches!(error, Error::Malformed { line: l, .. } if l == line + 1),
                "{error}"
            );
        }
        assert!(read(&synthetic()[..600]).is_err());
    }
}
