//! Splits into training, validation and test rows, and the files that fix them.

use crate::Error;
use crate::folds::FOLDS;
use crate::lines::{End, Lines, excerpt};

/// Row numbers of the three parts of a data set, each in increasing order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to fit to.
    pub train: Vec<usize>,
    /// Rows to choose the epoch by; empty where the protocol has none.
    pub validation: Vec<usize>,
    /// Rows to report on.
    pub test: Vec<usize>,
}

impl Split {
    /// The ten splits of a cross-validation: fold $f$ is the test part, fold $(f + 1) \bmod 10$
    /// the validation part, the other eight are the training part.
    ///
    /// ```
    /// use bochner_datasets::{Split, deal};
    ///
    /// let splits = Split::cross_validation(&deal(&[0; 144]));
    /// assert_eq!(splits[0].validation, splits[1].test);
    /// ```
    pub fn cross_validation(folds: &[usize]) -> Vec<Self> {
        let rows =
            |keep: &dyn Fn(usize) -> bool| (0..folds.len()).filter(|&i| keep(folds[i])).collect();
        let split = |test: usize| {
            let validation = (test + 1) % FOLDS;
            Self {
                train: rows(&|fold| fold != test && fold != validation),
                validation: rows(&|fold| fold == validation),
                test: rows(&|fold| fold == test),
            }
        };
        (0..FOLDS).map(split).collect()
    }

    /// The ten splits of a mask with one column per split, where `true` marks a test row. There
    /// is no validation part.
    pub fn held_out(masks: &[[bool; FOLDS]]) -> Vec<Self> {
        let rows = |split: usize, test: bool| {
            (0..masks.len())
                .filter(|&i| masks[i][split] == test)
                .collect()
        };
        let split = |s| Self {
            train: rows(s, false),
            validation: Vec::new(),
            test: rows(s, true),
        };
        (0..FOLDS).map(split).collect()
    }
}

/// Reads the fold of each row: one digit per line.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse_folds(file: &str, bytes: &[u8], rows: usize) -> Result<Vec<usize>, Error> {
    parse_rows(file, bytes, rows, "a fold from 0 to 9", |line| {
        let digit = line.parse().ok().filter(|_| line.len() == 1);
        digit.filter(|&fold| fold < FOLDS)
    })
}

/// Reads the test masks of ten 90/10 splits: ten comma-separated 0 or 1 per line.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`]; also if a column does not mark the rows that
/// $\lfloor 0.9 n \rfloor$ training rows leave over.
pub fn parse_masks(file: &str, bytes: &[u8], rows: usize) -> Result<Vec<[bool; FOLDS]>, Error> {
    let masks = parse_rows(file, bytes, rows, "ten 0 or 1 with commas between", mask)?;
    let wanted = rows - rows * 9 / 10;
    for split in 0..FOLDS {
        let marked = masks.iter().filter(|mask| mask[split]).count();
        if marked != wanted {
            return Err(Error::Malformed {
                file: file.to_owned(),
                line: rows,
                expected: format!("{wanted} test rows in column {} by now", split + 1),
                found: marked.to_string(),
            });
        }
    }
    Ok(masks)
}

fn mask(line: &str) -> Option<[bool; FOLDS]> {
    let cells: Option<Vec<bool>> = line
        .split(',')
        .map(|cell| match cell {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
        .collect();
    cells?.try_into().ok()
}

fn parse_rows<T>(
    file: &str,
    bytes: &[u8],
    rows: usize,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let mut lines = Lines::new(file, bytes);
    let mut parsed = Vec::with_capacity(rows);
    for row in 0..rows {
        let line = lines.require(|| format!("row {} of {rows}", row + 1))?;
        parsed.push(parse(line).ok_or_else(|| lines.malformed(what, excerpt(line)))?);
    }
    lines.finish(End::LineFeed)?;
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fold_files_are_one_digit_a_line() {
        assert_eq!(parse_folds("f", b"3\n0\n9\n", 3).unwrap(), [3, 0, 9]);
        for (text, line) in [
            ("3\n10\n9\n", 2),
            ("3\n0\n-1\n", 3),
            ("3\n+1\n9\n", 2),
            ("3\n\n9\n", 2),
            ("3\n0\n", 3),
            ("3\n0\n9\n1\n", 4),
            ("3\n0\n9", 3),
        ] {
            let error = parse_folds("f", text.as_bytes(), 3).unwrap_err();
            assert!(
                matches!(error, Error::Malformed { line: l, .. } if l == line),
                "{text:?}"
            );
        }
    }

    #[test]
    fn masks_mark_a_tenth_of_the_rows_in_each_column() {
        let test = "1,1,1,1,1,1,1,1,1,1\n";
        let train = "0,0,0,0,0,0,0,0,0,0\n";
        let masks = parse_masks("f", format!("{train}{test}{train}").as_bytes(), 3).unwrap();
        let splits = Split::held_out(&masks);
        assert_eq!(splits.len(), 10);
        assert_eq!(
            (&splits[9].train[..], &splits[9].test[..]),
            (&[0, 2][..], &[1][..])
        );
        assert!(splits.iter().all(|split| split.validation.is_empty()));
        for (text, line) in [
            (train.repeat(3), 3),
            (format!("{train}0,1,2\n{train}"), 2),
            (format!("{train}{train}1,1,1,1,1,1,1,1,1,2\n"), 3),
        ] {
            let error = parse_masks("f", text.as_bytes(), 3).unwrap_err();
            assert!(
                matches!(error, Error::Malformed { line: l, .. } if l == line),
                "{text:?}"
            );
        }
    }

    #[test]
    fn validation_is_the_fold_after_the_test_fold() {
        let folds = [9, 0, 1, 5, 0];
        let splits = Split::cross_validation(&folds);
        assert_eq!(splits[9].test, [0]);
        assert_eq!(splits[9].validation, [1, 4]);
        assert_eq!(splits[9].train, [2, 3]);
    }
}
