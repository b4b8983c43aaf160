//! Archives: published rows and artefacts, read back in whatever spelling they were written.

use crate::Error;
use crate::row::{Artefacts, Row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The rows of an archive, with the artefacts beside them.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    /// The artefacts, by the id of their row as it was written.
    pub artefacts: BTreeMap<String, Artefacts>,
    /// The verdicts of the rows by the rule of before, where there was one.
    pub earlier: Option<Earlier>,
    /// A part of the page, in Markdown, that was written from artefacts which are not in the archive.
    pub appendix: Option<String>,
}

/// Verdicts by a rule that no longer holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// The rule, in a sentence.
    pub rule: String,
    /// The verdicts, by the names of their claims.
    pub verdicts: BTreeMap<String, String>,
}

/// A line of `artefacts.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Left {
    /// The id of the unit.
    pub id: String,
    /// Its artefacts.
    pub artefacts: Artefacts,
}

impl Archive {
    /// Reads the `rows.jsonl` of a directory, with the `artefacts.jsonl`, the `earlier.json` (one
    /// line) and the `appendix.md` beside it where there are such.
    ///
    /// # Errors
    /// [`Error::Io`]. [`Error::Archive`] if a line is no row, or holds artefacts of none of the rows.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("rows.jsonl");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let rows = lines(&path, &text, row)?;
        let path = directory.join("artefacts.jsonl");
        let text = optional(&path)?.unwrap_or_default();
        let left = lines(&path, &text, |line| {
            let left: Left = serde_json::from_str(line).map_err(|error| error.to_string())?;
            match rows.iter().any(|row: &Row| row.id == left.id) {
                true => Ok((left.id, left.artefacts)),
                false => Err(format!("rows.jsonl has no row of the unit {}", left.id)),
            }
        })?;
        let path = directory.join("earlier.json");
        let earlier = match optional(&path)? {
            None => None,
            Some(text) => {
                let read = |line: &str| serde_json::from_str(line).map_err(|e| e.to_string());
                lines(&path, &text, read)?.pop()
            }
        };
        Ok(Self {
            rows,
            artefacts: left.into_iter().collect(),
            earlier,
            appendix: optional(&directory.join("appendix.md"))?,
        })
    }

    /// Adds another archive; of two rows with one id the first one stays.
    pub fn extend(&mut self, other: Self) {
        let is_known = |row: &Row| self.rows.iter().any(|known| known.id == row.id);
        let new: Vec<Row> = other
            .rows
            .into_iter()
            .filter(|row| !is_known(row))
            .collect();
        self.rows.extend(new);
        for (id, artefacts) in other.artefacts {
            self.artefacts.entry(id).or_insert(artefacts);
        }
    }
}

/// The text of a file, or `None` if there is none.
fn optional(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => Ok(Some(read.map_err(Error::io("read", path))?)),
    }
}

/// Reads a file line by line; an error names the first line that is wrong.
fn lines<T>(
    path: &Path,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let read = |(i, line)| {
        read(line).map_err(|reason| Error::Archive {
            path: path.to_owned(),
            line: i + 1,
            reason,
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// The row in a line. Its id must be that of its unit as it was written; its settings are spelt as they are today.
fn row(line: &str) -> Result<Row, String> {
    let row: Row = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match row.unit.id() {
        id if id == row.id => {}
        id => return Err(format!("it is called {}, but its unit is {id}", row.id)),
    }
    let today = SPELLINGS
        .iter()
        .fold(line.to_owned(), |text, [old, new]| text.replace(old, new));
    serde_json::from_str(&today).map_err(|error| error.to_string())
}

/// Spellings of settings in rows that were written before 2026-11, and those of today.
const SPELLINGS: [[&str; 2]; 15] = [
    [r#""mechanism":"Softmax""#, r#""mechanism":"softmax""#],
    [r#""mechanism":"RbfOnly""#, r#""mechanism":"rbf-only""#],
    [r#""mechanism":"Expsin""#, r#""mechanism":"expsin""#],
    [r#""mechanism":"Linear""#, r#""mechanism":"linear""#],
    [
        r#""mechanism":"IkanDirect""#,
        r#""mechanism":"ikan-direct""#,
    ],
    [r#""mechanism":"Mikan""#, r#""mechanism":"mikan""#],
    [r#""mechanism":"Performer""#, r#""mechanism":"performer""#],
    [r#""mechanism":"Cat""#, r#""mechanism":"cat""#],
    [r#""mechanism":"Bipolar""#, r#""mechanism":"bipolar""#],
    [r#""mechanism":"Primal""#, r#""mechanism":"primal""#],
    [r#""prior_std""#, r#""prior-std""#],
    [r#""linear_time""#, r#""linear-time""#],
    [r#""NearSoftmax""#, r#""near-softmax""#],
    [r#""KaimingUniform""#, r#""kaiming-uniform""#],
    // Performer's settings held the step of training.
    [r#","step":0}"#, "}"],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row as example;
    use std::slice::from_ref;

    /// Writes rows and artefacts into a directory.
    fn written(rows: &[Row], left: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap());
        let text = lines.map(|line| line + "\n").collect::<String>();
        fs::write(directory.path().join("rows.jsonl"), text).unwrap();
        fs::write(directory.path().join("artefacts.jsonl"), left).unwrap();
        directory
    }

    #[test]
    fn rows_and_artefacts_are_read_back() {
        let row = example();
        let left = format!(r#"{{"id":"{}","artefacts":{{"number":0.5}}}}"#, row.id);
        let archive = Archive::read(written(from_ref(&row), &left).path()).unwrap();
        assert_eq!(archive.rows, from_ref(&row));
        let number: Option<f64> = archive.artefacts[&row.id].get("number");
        assert_eq!(number, Some(0.5));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let renamed = Row {
            id: "another".into(),
            ..example()
        };
        let row = example();
        for (rows, left, reason) in [
            (vec![row.clone(), renamed], "", "it is called another"),
            (
                vec![row.clone()],
                r#"{"id":"another","artefacts":{}}"#,
                "no row of the unit another",
            ),
            (
                vec![row],
                r#"{"id":"another"}"#,
                "missing field `artefacts`",
            ),
        ] {
            let error = Archive::read(written(&rows, left).path()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        let nowhere = Path::new("nowhere");
        assert!(matches!(Archive::read(nowhere), Err(Error::Io { .. })));
    }

    #[test]
    fn an_old_spelling_is_read_as_that_of_today() {
        let mut row = example();
        let old: serde_json::Value =
            serde_json::from_str(r#"{"attention":{"mechanism":"RbfOnly"},"epochs":60}"#).unwrap();
        row.unit.settings = crate::Settings::of(&old);
        row.id = row.unit.id();
        let archive = Archive::read(written(from_ref(&row), "").path()).unwrap();
        assert_eq!(archive.rows[0].id, row.id);
        let settings: serde_json::Value = archive.rows[0].unit.settings.read().unwrap();
        assert_eq!(settings["attention"]["mechanism"], "rbf-only");
    }
}
