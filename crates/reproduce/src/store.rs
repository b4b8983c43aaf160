//! The results of finished units, on disk.

pub(crate) mod atomic;
mod checkpoint;
mod import;
mod sharing;

use bochner_report::row::{Artefacts, Row};
pub use checkpoint::Checkpoint;
pub(crate) use import::Imports;
use sharing::{Place, Turn};

use crate::{Error, Shard};
use bochner_report::document::Document;
use bochner_report::{Scale, Unit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory of results.
///
/// | path | holds |
/// |---|---|
/// | `units/<suite>/<id>.json` | one line: the [`Row`] of a finished unit |
/// | `artefacts/<suite>/<id>.json` | one line: its [`Artefacts`], curves and pictures |
/// | `checkpoints/<suite>/` | how far the running units are, and their weights in epochs that are to be inspected |
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
const PARTS: [&str; 6] = [
    "units",
    "artefacts",
    "checkpoints",
    "smoke",
    "desk",
    "paper",
];

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

    /// The result of a unit; `None` if it is not finished.
    ///
    /// # Errors
    /// [`Error::CorruptResult`] and [`Error::ForeignResult`], naming the file: results are never
    /// dropped silently.
    pub fn row(&self, unit: &Unit) -> Result<Option<Row>, Error> {
        let path = self.path_of("units", unit);
        let Some(row) = read_row(&path)? else {
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

    /// Records a finished unit and removes its checkpoint.
    ///
    /// # Errors
    /// [`Error::Io`]; the units recorded before stay as they are.
    pub fn record(&self, row: &Row, artefacts: Option<&Artefacts>) -> Result<(), Error> {
        if let Some(artefacts) = artefacts {
            atomic::write(&self.path_of("artefacts", &row.unit), &line(artefacts))?;
        }
        // The row makes the unit finished, so that it comes last.
        atomic::write(&self.path_of("units", &row.unit), &line(row))?;
        self.checkpoint(&row.unit).remove()
    }

    /// The ids of the finished and the unfinished units of a suite.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn ids(&self, suite: &str) -> Result<Vec<String>, Error> {
        let parts = ["units", "checkpoints"].map(|part| self.root.join(part).join(suite));
        Ok([ids(&parts[0])?, ids(&parts[1])?].concat())
    }

    /// The checkpoint of a unit that runs.
    pub fn checkpoint(&self, unit: &Unit) -> Checkpoint {
        Checkpoint::new(self.root.join("checkpoints").join(&unit.suite), unit.id())
    }

    /// Writes a report with its pictures, and its rows, one JSON object a line, into the scale's directory of a suite.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish(
        &self,
        scale: Scale,
        suite: &str,
        document: &Document,
        rows: &[impl Serialize],
    ) -> Result<Vec<PathBuf>, Error> {
        let file = |name: &str| format!("{scale}/{suite}/{name}");
        for (name, text) in document.files() {
            self.write(&file(&name), text.as_bytes())?;
        }
        Ok(vec![
            self.write(&file("report.md"), document.to_markdown().as_bytes())?,
            self.write(&file("report.html"), document.to_html().as_bytes())?,
            self.write_lines(&file("rows.jsonl"), rows)?,
        ])
    }

    /// Writes one JSON object a line to a file of the directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write_lines(
        &self,
        name: &str,
        lines: impl IntoIterator<Item = impl Serialize>,
    ) -> Result<PathBuf, Error> {
        let lines = lines.into_iter().flat_map(|value| line(&value));
        self.write(name, &lines.collect::<Vec<u8>>())
    }

    /// Writes a file of the directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
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

/// The names of the files of a directory that end in `.json`, in any order, without this ending; none if it does not exist.
fn ids(directory: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(Error::io("read", directory))?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(Error::io("read", directory))?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        ids.extend(id.map(str::to_owned));
    }
    Ok(ids)
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("rows have string keys only");
    line.push(b'\n');
    line
}

/// Reads a JSON file; `None` if it is not there.
/// Reads the row of a unit.
///
/// # Errors
/// [`Error::CorruptResult`], and [`Error::NewerResult`] for a field that [`Row`] does not have: it would be lost where rows
/// are written again.
pub(crate) fn read_row(path: &Path) -> Result<Option<Row>, Error> {
    let Some(row) = read_json::<Row>(path)? else {
        return Ok(None);
    };
    let given: Map<String, Value> = read_json(path)?.unwrap_or_default();
    let known = serde_json::to_value(&row).unwrap_or_default();
    let is_lost = |field: &&String| known.get(field.as_str()).is_none() && !given[*field].is_null();
    match given.keys().find(is_lost) {
        Some(field) => Err(Error::NewerResult {
            path: path.to_owned(),
            field: field.clone(),
        }),
        None => Ok(Some(row)),
    }
}

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
