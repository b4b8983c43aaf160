//! Imports rows and artefacts of another run.

use super::{Artefacts, Row, Store, line};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A line of `artefacts.jsonl`.
#[derive(Serialize, Deserialize)]
struct Left {
    /// The id of the unit.
    id: String,
    artefacts: Artefacts,
}

impl Store {
    /// Takes over the rows in `rows.jsonl` of a directory, such as one of `docs/results`, so that their
    /// units are finished, with the artefacts in `artefacts.jsonl` where there is such a file. A unit that is finished
    /// here keeps its own row and artefacts; the weights of one that was not are removed, since they are of another run.
    /// Returns how many were new.
    ///
    /// # Errors
    /// [`Error::Import`] if a line is no row, or not of the unit that its id names, or holds artefacts of none of the
    /// rows: nothing is taken then. [`Error::Io`].
    pub fn import(&self, directory: &Path) -> Result<usize, Error> {
        let path = directory.join("rows.jsonl");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let rows = lines(&path, &text, imported)?;
        let ids: BTreeSet<&str> = rows.iter().map(|row| &*row.id).collect();
        let path = directory.join("artefacts.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(Error::io("read", &path))?,
        };
        let left = lines(&path, &text, |line| left(line, &ids))?.into_iter();
        let left: BTreeMap<String, Artefacts> = left.collect();
        let mut new = 0;
        for row in &rows {
            if self.row(&row.unit)?.is_none() {
                // The row makes the unit finished, so that it comes last.
                if let Some(artefacts) = left.get(&row.id) {
                    self.leave(&row.unit, artefacts)?;
                }
                self.discard_weights(&row.unit)?;
                self.finish(row)?;
                new += 1;
            }
        }
        Ok(new)
    }

    /// Writes the artefacts of some rows' units, as far as they can be read, to a file of this name: one JSON object per
    /// line, which [`import`](Self::import) reads.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn export_artefacts<'a>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = &'a Row>,
    ) -> Result<PathBuf, Error> {
        let left = rows.into_iter().filter_map(|row| {
            let artefacts = self.artefacts(&row.unit).ok().flatten()?;
            let id = row.id.clone();
            Some(line(&Left { id, artefacts }))
        });
        self.write(name, &left.flatten().collect::<Vec<u8>>())
    }
}

/// Reads a file line by line; an error names the first line that is wrong.
fn lines<T>(
    path: &Path,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let read = |(i, line)| {
        read(line).map_err(|reason| Error::Import {
            path: path.to_owned(),
            line: i + 1,
            reason,
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// The row in a line of another run, or why there is none.
pub(super) fn imported(line: &str) -> Result<Row, String> {
    let row: Row = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match row.unit.id() {
        id if id == row.id => Ok(row),
        id => Err(format!("it is called {}, but its unit is {id}", row.id)),
    }
}

/// The artefacts in a line of another run with their unit's id, or why there are none.
fn left(line: &str, ids: &BTreeSet<&str>) -> Result<(String, Artefacts), String> {
    let left: Left = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match ids.contains(&*left.id) {
        true => Ok((left.id, left.artefacts)),
        false => Err(format!("rows.jsonl has no row of the unit {}", left.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::super::row::tests::row;
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        (directory, store)
    }

    /// Two rows of two units.
    fn rows() -> [Row; 2] {
        let mut rows = [row(), row()];
        rows[1].unit.split += 1;
        rows[1].id = rows[1].unit.id();
        rows
    }

    fn number(value: f64) -> Artefacts {
        Artefacts::default().with("number", &value)
    }

    /// Writes rows and artefacts as a run does, and returns their directory.
    fn exported(rows: &[Row], artefacts: impl Fn(&Row) -> Artefacts) -> tempfile::TempDir {
        let (directory, store) = store();
        for row in rows {
            store.record(row, &artefacts(row)).unwrap();
        }
        store.export("rows.jsonl", rows).unwrap();
        store.export_artefacts("artefacts.jsonl", rows).unwrap();
        directory
    }

    #[test]
    fn imported_units_are_finished_and_keep_what_is_there() {
        let (_directory, store) = store();
        let source = tempfile::tempdir().unwrap();
        let rows = rows();
        let own = Row {
            seconds: 7.0,
            ..row()
        };
        store.record(&own, &Artefacts::default()).unwrap();
        let lines: Vec<u8> = rows.iter().flat_map(line).collect();
        fs::write(source.path().join("rows.jsonl"), &lines).unwrap();
        let checkpoint = store.checkpoint(&rows[1].unit);
        let save = |path: &Path| fs::write(path, "model").map_err(Error::io("write", path));
        checkpoint.save(&History::default(), "0.1.0", save).unwrap();
        for row in &rows {
            store.keep_weights(&row.unit, "v", save).unwrap();
        }
        assert_eq!(store.import(source.path()).unwrap(), 1);
        assert!(
            checkpoint.load("0.1.0").is_none(),
            "there is nothing to go on from"
        );
        assert_eq!(store.row(&own.unit).unwrap(), Some(own));
        assert_eq!(store.row(&rows[1].unit).unwrap().as_ref(), Some(&rows[1]));
        let is_kept = |row: &Row| store.weights(&row.unit, "v").exists();
        assert_eq!([&rows[0], &rows[1]].map(is_kept), [true, false]);
        // There is no file of artefacts.
        assert_eq!(store.artefacts(&rows[1].unit).unwrap(), None);
        assert_eq!(store.import(source.path()).unwrap(), 0);
    }

    #[test]
    fn artefacts_come_with_the_rows_and_a_unit_with_a_row_keeps_its_own() {
        let (_directory, store) = store();
        let rows = rows();
        let source = exported(&rows, |row| number(0.1 + row.unit.split as f64));
        store.record(&rows[0], &number(7.0)).unwrap();
        assert_eq!(store.import(source.path()).unwrap(), 1);
        let found = |row: &Row| store.artefacts(&row.unit).unwrap();
        assert_eq!(found(&rows[0]), Some(number(7.0)));
        let imported = number(0.1 + rows[1].unit.split as f64);
        assert_eq!(found(&rows[1]), Some(imported));
    }

    #[test]
    fn a_unit_without_artefacts_is_left_out_of_their_file() {
        let (directory, store) = store();
        let rows = rows();
        store.finish(&rows[0]).unwrap();
        store.record(&rows[1], &number(0.5)).unwrap();
        store.export_artefacts("artefacts.jsonl", &rows).unwrap();
        let text = fs::read_to_string(directory.path().join("artefacts.jsonl")).unwrap();
        let id = &rows[1].id;
        let expected = format!("{{\"id\":\"{id}\",\"artefacts\":{{\"number\":0.5}}}}\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn an_import_with_a_wrong_line_takes_nothing() {
        let (_directory, store) = store();
        let source = tempfile::tempdir().unwrap();
        let renamed = Row {
            id: "another".into(),
            ..row()
        };
        for (wrong, reason) in [
            (line(&renamed), "it is called another"),
            (b"{\"suite\":\"complexity\"}\n".to_vec(), "missing field"),
        ] {
            fs::write(
                source.path().join("rows.jsonl"),
                [line(&row()), wrong].concat(),
            )
            .unwrap();
            let error = store.import(source.path()).unwrap_err().to_string();
            assert!(
                error.starts_with("cannot import line 2 of") && error.contains(reason),
                "{error}"
            );
            assert_eq!(store.row(&row().unit).unwrap(), None);
        }
        let error = store.import(&source.path().join("nowhere")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
    }

    #[test]
    fn an_import_with_a_wrong_line_of_artefacts_takes_nothing() {
        let (_directory, store) = store();
        let rows = rows();
        let source = exported(&rows, |_| number(0.5));
        let path = source.path().join("artefacts.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        for (wrong, reason) in [
            (
                "{\"id\":\"another\",\"artefacts\":{}}",
                "no row of the unit another",
            ),
            ("{\"id\":\"another\"}", "missing field `artefacts`"),
            (&first[..first.len() / 2], "EOF"),
        ] {
            fs::write(&path, format!("{first}\n{wrong}\n")).unwrap();
            let error = store.import(source.path()).unwrap_err();
            assert!(matches!(&error, Error::Import { path: p, line: 2, .. } if *p == path));
            assert!(error.to_string().contains(reason), "{error}");
            for row in &rows {
                assert_eq!(store.row(&row.unit).unwrap(), None);
                assert_eq!(store.artefacts(&row.unit).unwrap(), None);
            }
        }
    }
}
