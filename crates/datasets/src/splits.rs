//! Splits into training, validation and test rows, and the files that define them.

use crate::Error;
use crate::folds::FOLDS;
use crate::lines;

/// Row numbers of the three parts of a data set, each in increasing order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The rows that a model is fitted to.
    pub train: Vec<usize>,
    /// The rows that choose the epoch; empty where the protocol has none.
    pub validation: Vec<usize>,
    /// The rows that the reported error is taken over.
    pub test: Vec<usize>,
}

impl Split {
    /// The ten splits of a cross-validation: fold $f$ is the test part, fold $(f + 1) \bmod 10$
    /// the validation part, and the other eight folds are the training part.
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
/// [`Error::Malformed`].
pub fn parse_folds(file: &str, bytes: &[u8]) -> Result<Vec<usize>, Error> {
    lines::parse(file, bytes, 0, "a fold from 0 to 9", |line| {
        line.parse().ok().filter(|&fold| fold < FOLDS)
    })
}

/// Reads the test masks of ten splits: ten comma-separated 0 or 1 per line.
///
/// # Errors
/// [`Error::Malformed`].
pub fn parse_masks(file: &str, bytes: &[u8]) -> Result<Vec<[bool; FOLDS]>, Error> {
    lines::parse(file, bytes, 0, "ten 0 or 1 with commas between", |line| {
        let cells = line.split(',').map(|cell| match cell {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        });
        cells.collect::<Option<Vec<bool>>>()?.try_into().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(error: Error) -> usize {
        match error {
            Error::Malformed { line, .. } => line,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn fold_files_are_one_digit_a_line() {
        assert_eq!(parse_folds("f", b"3\n0\n9\n").unwrap(), [3, 0, 9]);
        for text in ["3\n10\n9\n", "3\n-1\n9\n", "3\n\n9\n"] {
            assert_eq!(line(parse_folds("f", text.as_bytes()).unwrap_err()), 2);
        }
    }

    #[test]
    fn masks_mark_the_test_rows_of_each_column() {
        let masks = parse_masks("f", b"0,0,0,0,0,0,0,0,0,0\n1,1,1,1,1,1,1,1,1,0\n").unwrap();
        let splits = Split::held_out(&masks);
        assert_eq!(splits.len(), 10);
        let parts = |split: usize| (&splits[split].train[..], &splits[split].test[..]);
        assert_eq!(parts(8), (&[0][..], &[1][..]));
        assert_eq!(parts(9), (&[0, 1][..], &[][..]));
        assert!(splits.iter().all(|split| split.validation.is_empty()));
        for text in ["0,1,2\n", "1,1,1,1,1,1,1,1,1,2\n"] {
            assert_eq!(line(parse_masks("f", text.as_bytes()).unwrap_err()), 1);
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
