//! Imports rows and artefacts of another run.

use super::{Row, Store, line};
use crate::Error;
use bochner_report::archive::{Archive, Left};
use std::path::{Path, PathBuf};

impl Store {
    /// Takes over the rows in `rows.jsonl` of a directory, so that their units are finished, with the artefacts in
    /// `artefacts.jsonl` where there is such a file. A unit that is finished here keeps its own row and artefacts; the
    /// weights of one that was not are removed, since they are of another run. Returns how many were new.
    ///
    /// Rows that are not described as units are today are left out, and their number is said: nothing can go on from them.
    /// A page is still written from them.
    ///
    /// # Errors
    /// [`Error::Report`] if a line is no row, or not of the unit that its id names, or holds artefacts of none of the
    /// rows: nothing is taken then. [`Error::Io`].
    pub fn import(&self, directory: &Path) -> Result<usize, Error> {
        let archive = Archive::read(directory)?;
        let (rows, others): (Vec<&Row>, Vec<&Row>) =
            archive.rows.iter().partition(|row| row.id == row.unit.id());
        if !others.is_empty() {
            let (n, directory) = (others.len(), directory.display());
            eprintln!(
                "{n} rows of {directory} are described otherwise than units are today: they are left out"
            );
        }
        let mut new = 0;
        for row in rows {
            if self.row(&row.unit)?.is_none() {
                // The row makes the unit finished, so that it comes last.
                if let Some(artefacts) = archive.artefacts.get(&row.id) {
                    self.leave(&row.unit, artefacts)?;
                }
                self.discard_weights(&row.unit)?;
                self.finish(row)?;
                new += 1;
            }
        }
        Ok(new)
    }

    /// Writes the artefacts of some rows' units, to a file of this name: one JSON object per
    /// line, which [`import`](Self::import) reads.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::CorruptResult`] for artefacts that cannot be read.
    pub(crate) fn export_artefacts<'a>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = &'a Row>,
    ) -> Result<PathBuf, Error> {
        let mut lines = Vec::new();
        for row in rows {
            if let Some(artefacts) = self.artefacts(&row.unit)? {
                let id = row.id.clone();
                lines.extend(line(&Left { id, artefacts }));
            }
        }
        self.write(name, &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use crate::fixtures;

    fn row() -> Row {
        fixtures::row(&fixtures::unit(), 0.3)
    }
    use super::*;
    use bochner_report::row::Artefacts;
    use std::fs;

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
        checkpoint.save(&History::default(), save).unwrap();
        for row in &rows {
            store.keep_weights(&row.unit, "v", save).unwrap();
        }
        assert_eq!(store.import(source.path()).unwrap(), 1);
        assert!(
            checkpoint.load().unwrap().is_none(),
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
}
