//! Archives: published rows and artefacts.

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
    /// The artefacts, by the id of their row.
    pub artefacts: BTreeMap<String, Artefacts>,
    /// Paragraphs and points that stand first on the page, such as what a change of the rule has changed.
    pub preface: Option<String>,
    /// A part of the page, in Markdown, that was written from artefacts which are not in the archive.
    pub appendix: Option<String>,
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
    /// Reads the `rows.jsonl` of a directory, with the `artefacts.jsonl`, the `preface.md` and the
    /// `appendix.md` beside it where there are such.
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
        Ok(Self {
            rows,
            artefacts: left.into_iter().collect(),
            preface: optional(&directory.join("preface.md"))?,
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

/// The row in a line, whose id must be that of its unit.
fn row(line: &str) -> Result<Row, String> {
    let row: Row = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match row.unit.id() {
        id if id == row.id => Ok(row),
        id => Err(format!("it is called {}, but its unit is {id}", row.id)),
    }
}
