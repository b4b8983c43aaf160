//! The progress of a running unit, on disk.

use super::{atomic, line, read_json};
use crate::Error;
use crate::trial::{History, Moment};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Two files: the model, written by itself, and the note that names it. Beside them are the weights of the epochs that are to
/// be inspected.
///
/// The note is renamed into its place last, so it always names a whole model of the same epoch;
/// a model without note, or a part of one, is a leftover.
#[derive(Debug)]
pub struct Checkpoint {
    directory: PathBuf,
    id: String,
}

#[derive(Serialize, Deserialize)]
struct Note {
    model: String,
    history: History,
}

impl Checkpoint {
    pub(super) fn new(directory: PathBuf, id: String) -> Self {
        Self { directory, id }
    }

    /// Saves the model and what was measured.
    ///
    /// # Errors
    /// The errors of `save`, and [`Error::Io`].
    pub fn save(
        &self,
        history: &History,
        save: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let model = format!("{}.{}.model", self.id, history.loss.len());
        self.write(&self.directory.join(&model), save)?;
        let note = Note {
            model: model.clone(),
            history: history.clone(),
        };
        atomic::write(&self.note(), &line(&note))?;
        self.remove_models_but(&model)
    }

    /// The file of the weights of an epoch that is to be inspected.
    pub fn weights(&self, moment: Moment) -> PathBuf {
        self.directory
            .join(format!("{}.{}.weights", self.id, moment.name()))
    }

    /// Writes a model to a file of the checkpoint, so that it is whole or as it was before.
    ///
    /// # Errors
    /// The errors of `save`, and [`Error::Io`].
    pub fn write(
        &self,
        path: &Path,
        save: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        fs::create_dir_all(&self.directory).map_err(Error::io("create", &self.directory))?;
        let unfinished = atomic::beside(path);
        save(&unfinished).inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })?;
        atomic::put_in_place(&unfinished, path)
    }

    /// The saved model's file and what was measured; `None` if there is nothing to go on from.
    ///
    /// A unit's id holds all of its description, so that a checkpoint under its name is one of the same computation,
    /// whatever commit has made it.
    ///
    /// # Errors
    /// [`Error::Io`]. [`Error::CorruptResult`] for a damaged note.
    pub fn load(&self) -> Result<Option<(PathBuf, History)>, Error> {
        let note: Option<Note> = read_json(&self.note())?;
        let found = note.map(|note| (self.directory.join(&note.model), note.history));
        Ok(found)
    }

    /// Removes it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(&self) -> Result<(), Error> {
        atomic::remove(&self.note())?;
        self.remove_files(|_| true)
    }

    fn note(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.id))
    }

    /// Removes all models but one, and what is left of others.
    fn remove_models_but(&self, model: &str) -> Result<(), Error> {
        self.remove_files(|name| name.contains(".model") && name != model)
    }

    /// Removes files of the unit.
    fn remove_files(&self, is_due: impl Fn(&str) -> bool) -> Result<(), Error> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(Error::io("read", &self.directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::io("read", &self.directory))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&self.id) && is_due(&name) {
                atomic::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}
