//! The results of finished units, on disk.

pub(crate) mod atomic;
mod checkpoint;
mod import;
mod sharing;

use bochner_report::archive::Left;
use bochner_report::row::{Artefacts, Row};
pub use checkpoint::{Checkpoint, History};
pub(crate) use import::Imports;
use sharing::{Place, Turn};

use crate::{Error, Shard};
use bochner_report::Unit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory of results.
///
/// | path | holds |
/// |---|---|
/// | `units/<suite>/<id>.json` | one line: the [`Row`] of a finished unit |
/// | `artefacts/<suite>/<id>.json` | one line: its [`Artefacts`], curves and pictures |
/// | `checkpoints/<suite>/` | how far the running units are |
/// | `weights/<suite>/<id>.v`, `.r`, `.first` | a model in the epochs of V- and R-number and the first, where kept |
/// | `weights/<suite>/<id>.look` | a model in the epoch of the V-number that is to be looked at, until it is |
/// | `<scale>/<suite>/rows.jsonl` | the rows of a suite, one per line |
/// | `<scale>/<suite>/artefacts.jsonl` | the artefacts of these rows, one line a unit |
/// | `<scale>/<suite>/report.md`, `report.html` | what they say |
///
/// Files are written next to their place, synchronised, and renamed into it: a file that exists
/// is whole, whenever the machine stops. A unit is finished when its row exists; its artefacts
/// are written before. The option `--import` takes over the rows of another directory.
///
/// One run at a time writes to a directory: one process, or the shards of the run, which share the units that all of them
/// need. A place is given up when its process ends, however it ends.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    place: Place,
}

/// The directories of a store; other files of its root are never touched.
const PARTS: [&str; 7] = [
    "units",
    "artefacts",
    "checkpoints",
    "weights",
    "smoke",
    "desk",
    "paper",
];

/// The ending of files of weights that are deleted once they have been inspected.
pub(crate) const LOOK: &str = "look";

/// The endings of kept weights' files.
const KINDS: [&str; 4] = ["v", "r", "first", LOOK];

impl Store {
    /// Opens a directory for one process alone.
    ///
    /// # Errors
    /// As [`share`](Self::share).
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::share(root, Shard::WHOLE, "a run")
    }

    /// Opens a directory for a shard of a run of this description, making it where needed. The first one there removes
    /// what interrupted runs left half written.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written. [`Error::Locked`], [`Error::OtherRun`] and [`Error::NoLocks`] if another
    /// process writes to it with which it cannot be shared.
    pub fn share(root: impl Into<PathBuf>, shard: Shard, run: &str) -> Result<Self, Error> {
        let root = root.into();
        fs::create_dir_all(&root).map_err(Error::io("create", &root))?;
        let place = Place::take(&root, shard, run, || {
            let parts = PARTS.iter().map(|part| root.join(part));
            let mut there = parts.filter(|part| part.is_dir());
            there.try_for_each(|part| atomic::clean(&part))
        })?;
        for part in ["units", "artefacts", "checkpoints"] {
            let directory = root.join(part);
            fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
        }
        Ok(Self { root, place })
    }

    /// Waits until no other shard runs a unit; `None` if `is_over` comes true before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn claim(
        &self,
        unit: &Unit,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<Turn>, Error> {
        self.place.unit(&unit.id(), is_over)
    }

    /// Waits until no other shard writes reports: the last one to do so sees the rows of all.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn reporting(&self) -> Result<Turn, Error> {
        self.place.report()
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The result of a unit; `None` if it is not finished.
    ///
    /// # Errors
    /// [`Error::CorruptResult`] and [`Error::ForeignResult`], naming the file: results are never
    /// dropped silently.
    pub fn row(&self, unit: &Unit) -> Result<Option<Row>, Error> {
        let path = self.path_of("units", unit);
        let Some(row) = read_json::<Row>(&path)? else {
            return Ok(None);
        };
        if row.unit != *unit || row.id != unit.id() {
            return Err(Error::ForeignResult {
                path,
                found: row.unit.id(),
            });
        }
        Ok(Some(row))
    }

    /// The curves and pictures of a finished unit; `None` where they were not copied along.
    ///
    /// # Errors
    /// [`Error::CorruptResult`], naming the file.
    pub fn artefacts(&self, unit: &Unit) -> Result<Option<Artefacts>, Error> {
        read_json(&self.path_of("artefacts", unit))
    }

    /// Records a finished unit and removes what only an unfinished one needs.
    ///
    /// # Errors
    /// [`Error::Io`]; the units recorded before stay as they are.
    pub fn record(&self, row: &Row, artefacts: &Artefacts) -> Result<(), Error> {
        // The row makes the unit finished, so that it comes last.
        atomic::write(&self.path_of("artefacts", &row.unit), &line(artefacts))?;
        atomic::write(&self.path_of("units", &row.unit), &line(row))?;
        self.clear(&row.unit)
    }

    /// Removes what only an unfinished unit needs: its checkpoint, and the weights that were to be looked at.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn clear(&self, unit: &Unit) -> Result<(), Error> {
        self.checkpoint(unit).remove()?;
        atomic::remove(&self.weights(unit, LOOK))
    }

    /// Keeps a model as it is now under a unit's name and `kind`, in the place of what was kept before.
    ///
    /// # Errors
    /// The errors of `save`, and [`Error::Io`].
    pub(crate) fn keep_weights(
        &self,
        unit: &Unit,
        kind: &str,
        save: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = self.weights(unit, kind);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
        }
        let unfinished = atomic::beside(&path);
        save(&unfinished).inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })?;
        atomic::put_in_place(&unfinished, &path)
    }

    /// Removes all weights of a unit: those of a run that is not continued. A unit without any is fine.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn discard_weights(&self, unit: &Unit) -> Result<(), Error> {
        let mut kept = KINDS.iter().map(|kind| self.weights(unit, kind));
        kept.try_for_each(|path| atomic::remove(&path))
    }

    /// The path of the weights of a unit: `kind` is `v`, `r`, `first` or `look`.
    pub fn weights(&self, unit: &Unit, kind: &str) -> PathBuf {
        let name = format!("{}.{kind}", unit.id());
        self.root.join("weights").join(&unit.suite).join(name)
    }

    /// The ids of the finished and the unfinished units of a suite, in any order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn ids(&self, suite: &str) -> Result<Vec<String>, Error> {
        let mut ids = Vec::new();
        for part in ["units", "checkpoints"] {
            let directory = self.root.join(part).join(suite);
            let entries = match fs::read_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                read => read.map_err(Error::io("read", &directory))?,
            };
            for entry in entries {
                let name = entry.map_err(Error::io("read", &directory))?.file_name();
                let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
                ids.extend(id.map(str::to_owned));
            }
        }
        Ok(ids)
    }

    /// The checkpoint of a unit that runs.
    pub fn checkpoint(&self, unit: &Unit) -> Checkpoint {
        Checkpoint::new(self.root.join("checkpoints").join(&unit.suite), unit.id())
    }

    /// Writes rows, one JSON object per line, to a file of this name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn export<'a>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = &'a (impl Serialize + 'a)>,
    ) -> Result<PathBuf, Error> {
        let lines: Vec<u8> = rows.into_iter().flat_map(line).collect();
        self.write(name, &lines)
    }

    /// Writes the artefacts of some rows' units to a file of this name, one JSON object a line.
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

    /// Writes a file of the directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        atomic::write(&path, bytes)?;
        Ok(path)
    }

    fn path_of(&self, part: &str, unit: &Unit) -> PathBuf {
        self.root
            .join(part)
            .join(&unit.suite)
            .join(format!("{}.json", unit.id()))
    }
}

/// Writes a file so that a reader sees the old content or the new, never a part.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    atomic::write(path, bytes)
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("rows have string keys only");
    line.push(b'\n');
    line
}

/// Reads a JSON file; `None` if it is not there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(Error::io("read", path))?,
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::CorruptResult {
            path: path.to_owned(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::fixtures;

    fn row() -> Row {
        fixtures::row(&fixtures::unit(), 1.0 / 3.0)
    }
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        (directory, store)
    }

    #[test]
    fn a_recorded_row_is_found_again_bit_for_bit() {
        let (_directory, store) = store();
        let row = row();
        assert!(store.row(&row.unit).unwrap().is_none());
        store.record(&row, &Artefacts::default()).unwrap();
        let found = store.row(&row.unit).unwrap().unwrap();
        assert_eq!(found, row);
        assert_eq!(found.r_number.to_bits(), row.r_number.to_bits());
        let mut other = row.unit.clone();
        other.settings.set_epochs(61);
        assert!(
            store.row(&other).unwrap().is_none(),
            "other epochs, other unit"
        );
    }

    #[test]
    fn a_damaged_result_is_named() {
        let (_directory, store) = store();
        let row = row();
        store.record(&row, &Artefacts::default()).unwrap();
        let path = store.path_of("units", &row.unit);
        let text = fs::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() / 2], "", "{}", "\u{0}\u{0}"] {
            fs::write(&path, damaged).unwrap();
            let error = store.row(&row.unit).unwrap_err();
            assert!(matches!(&error, Error::CorruptResult { path: p, .. } if *p == path));
        }
    }

    #[test]
    fn a_result_under_another_name_is_foreign() {
        let (_directory, store) = store();
        let row = row();
        store.record(&row, &Artefacts::default()).unwrap();
        let mut other = row.unit.clone();
        other.split += 1;
        fs::rename(
            store.path_of("units", &row.unit),
            store.path_of("units", &other),
        )
        .unwrap();
        let error = store.row(&other).unwrap_err();
        assert!(matches!(error, Error::ForeignResult { found, .. } if found == row.id));
    }

    #[test]
    fn half_written_files_are_swept_away_and_results_stay() {
        let (directory, store) = store();
        let row = row();
        store.record(&row, &Artefacts::default()).unwrap();
        let half = atomic::beside(&store.path_of("units", &row.unit));
        fs::write(&half, "{\"id\":").unwrap();
        // What a process leaves that is killed while a model writes itself.
        let mut model = atomic::beside(&store.weights(&row.unit, "v")).into_os_string();
        model.push(".77.partial");
        let write = |path: &Path| fs::write(path, "weights").map_err(Error::io("write", path));
        store.keep_weights(&row.unit, "v", write).unwrap();
        fs::write(&model, "wei").unwrap();
        drop(store);
        let store = Store::open(directory.path()).unwrap();
        assert!(!half.exists() && !Path::new(&model).exists());
        assert!(store.weights(&row.unit, "v").exists());
        assert_eq!(store.row(&row.unit).unwrap(), Some(row));
    }

    #[test]
    fn shards_of_one_run_share_a_directory_and_others_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let share = |shard: &str, run| Store::share(directory.path(), shard.parse().unwrap(), run);
        let first = share("1/2", "a run").unwrap();
        assert!(matches!(share("1/2", "a run"), Err(Error::Locked { .. })));
        for (shard, run) in [("1/3", "a run"), ("1/1", "a run"), ("2/2", "another run")] {
            let error = share(shard, run).unwrap_err();
            let is_refused = matches!(&error, Error::OtherRun { running, .. } if running == "shard 1/2 of a run");
            assert!(is_refused, "{error}");
        }
        let second = share("2/2", "a run").unwrap();
        // A unit that both need is run by one at a time.
        let unit = fixtures::unit();
        let claimed = first.claim(&unit, || false).unwrap();
        assert!(second.claim(&unit, || true).unwrap().is_none());
        drop(claimed);
        assert!(second.claim(&unit, || true).unwrap().is_some());
        drop((first, second));
        share("1/1", "another run").unwrap();
    }

    #[test]
    fn a_shard_leaves_the_unfinished_files_of_the_others_alone() {
        let directory = tempfile::tempdir().unwrap();
        let share = |shard: &str| Store::share(directory.path(), shard.parse().unwrap(), "a run");
        let first = share("1/2").unwrap();
        let half = atomic::beside(&first.path_of("units", &fixtures::unit()));
        fs::create_dir_all(half.parent().unwrap()).unwrap();
        fs::write(&half, "{").unwrap();
        drop(share("2/2").unwrap());
        assert!(half.exists());
        drop(first);
        share("1/2").unwrap();
        assert!(!half.exists());
    }

    #[test]
    fn exported_rows_are_one_json_object_per_line() {
        let (directory, store) = store();
        store.export("rows.jsonl", [&row(), &row()]).unwrap();
        let text = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
        let rows: Vec<Row> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(rows, [row(), row()]);
    }
}
