//! Suites that are measured in one go, without units of training.

use crate::{Config, Error, Store};
use bochner_report::document::Document;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The outcome of a suite without units.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The suite.
    pub suite: &'static str,
    /// The table for the terminal: head and rows.
    pub table: Vec<Vec<String>>,
    /// Whether everything that is judged came out as it must.
    pub passed: bool,
    /// Whether the suite was interrupted before its end.
    pub interrupted: bool,
    /// The report, in both forms, and the rows.
    pub files: Vec<PathBuf>,
}

impl Assessment {
    /// The table in columns, and the files.
    pub fn summary(&self) -> String {
        let mut text = columns(&self.table);
        if self.interrupted {
            text.push_str("interrupted; run it again\n");
        }
        for file in &self.files {
            let _ = writeln!(text, " written  {}", file.display());
        }
        text
    }
}

/// Writes a report and its rows into the scale's directory, in a part of the suite's own.
pub(crate) fn keep<T: Serialize>(
    config: &Config,
    store: &Store,
    suite: &str,
    document: &Document,
    rows: &[T],
) -> Result<Vec<PathBuf>, Error> {
    let file = |name: &str| format!("{}/{suite}/{name}", config.scale);
    for (name, text) in document.files() {
        store.write(&file(&name), text.as_bytes())?;
    }
    Ok(vec![
        store.write(&file("report.md"), document.to_markdown().as_bytes())?,
        store.write(&file("report.html"), document.to_html().as_bytes())?,
        store.export(&file("rows.jsonl"), rows)?,
    ])
}

/// Cells below each other, the last column as it is.
fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(line, "{cell:<width$}  ", width = width(column));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["a", "bb", "c"], ["long", "b", "d"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "a     bb  c\nlong  b   d\n");
    }
}
