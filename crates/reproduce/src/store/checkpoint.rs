//! The progress of a running unit, on disk.

use super::{atomic, line, read_json};
use crate::Error;
use bochner_report::row::{Artefacts, Curve};
use bochner_report::suite::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The measurements of each epoch so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The training loss.
    pub loss: Vec<f64>,
    /// The mean square training error.
    pub mse: Vec<f64>,
    /// The validation value; empty without validation part.
    pub validation: Vec<f64>,
    /// The loss on the validation part; empty where no rule looks at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_loss: Vec<f64>,
    /// The test value.
    pub test: Vec<f64>,
    /// The values on other test parts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Vec<f64>>,
    /// Time spent, over all attempts.
    pub seconds: f64,
}

impl History {
    /// The epoch with the best validation value, the first of equal ones, counted from zero.
    pub fn best_validation(&self, direction: Direction) -> Option<usize> {
        direction.best(&self.validation)
    }

    /// The epoch with the best test value, the first of equal ones, counted from zero.
    pub fn best_test(&self, direction: Direction) -> Option<usize> {
        direction.best(&self.test)
    }

    /// The curves of a finished unit.
    pub fn artefacts(&self) -> Artefacts {
        Artefacts::default()
            .with("loss", &Curve::thinned(&self.loss))
            .with("validation", &Curve::thinned(&self.validation))
            .with("test", &Curve::thinned(&self.test))
    }
}

/// Two files: the model, written by itself, and the note that names it.
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
        fs::create_dir_all(&self.directory).map_err(Error::io("create", &self.directory))?;
        let model = format!("{}.{}.model", self.id, history.loss.len());
        let path = self.directory.join(&model);
        let unfinished = atomic::beside(&path);
        save(&unfinished).inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })?;
        atomic::put_in_place(&unfinished, &path)?;
        let note = Note {
            model: model.clone(),
            history: history.clone(),
        };
        atomic::write(&self.note(), &line(&note))?;
        self.remove_all_but(&model)
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
        self.remove_all_but("")
    }

    fn note(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.id))
    }

    /// Removes the unit's files except the note and one model.
    fn remove_all_but(&self, model: &str) -> Result<(), Error> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(Error::io("read", &self.directory))?,
        };
        let note = format!("{}.json", self.id);
        for entry in entries {
            let entry = entry.map_err(Error::io("read", &self.directory))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&self.id) && name != note && name != model {
                atomic::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::fixtures::unit;

    fn history(epochs: usize) -> History {
        History {
            loss: vec![0.1; epochs],
            ..History::default()
        }
    }

    #[test]
    fn the_last_checkpoint_is_found_and_the_ones_before_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let checkpoint = store.checkpoint(&unit());
        assert!(checkpoint.load().unwrap().is_none());
        for epochs in [1, 2] {
            let content = epochs.to_string();
            checkpoint
                .save(&history(epochs), |path| {
                    fs::write(path, &content).map_err(Error::io("write", path))
                })
                .unwrap();
        }
        let (model, found) = checkpoint.load().unwrap().unwrap();
        assert_eq!(fs::read(model).unwrap(), b"2");
        assert_eq!(found, history(2));
        // What a process leaves that is killed while it writes a model.
        let part = format!("{}.3.model.unfinished.77.partial", checkpoint.id);
        fs::write(checkpoint.directory.join(part), "").unwrap();
        assert_eq!(fs::read_dir(&checkpoint.directory).unwrap().count(), 3);
        checkpoint.remove().unwrap();
        assert_eq!(fs::read_dir(&checkpoint.directory).unwrap().count(), 0);
    }

    #[test]
    fn a_loss_that_was_not_measured_is_not_written_down() {
        let text = serde_json::to_string(&history(2)).unwrap();
        assert!(!text.contains("validation_loss"), "{text}");
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history(2));
    }

    #[test]
    fn a_failed_save_keeps_the_checkpoint_before() {
        let directory = tempfile::tempdir().unwrap();
        let checkpoint = Store::open(directory.path()).unwrap().checkpoint(&unit());
        let write = |path: &Path| fs::write(path, "model").map_err(Error::io("write", path));
        checkpoint.save(&history(1), write).unwrap();
        let full = |path: &Path| {
            fs::write(path, "mod").unwrap();
            Err(Error::io("write", path)(
                std::io::ErrorKind::StorageFull.into(),
            ))
        };
        checkpoint.save(&history(2), full).unwrap_err();
        assert_eq!(checkpoint.load().unwrap().unwrap().1, history(1));
        assert_eq!(fs::read_dir(&checkpoint.directory).unwrap().count(), 2);
    }

    #[test]
    fn a_damaged_checkpoint_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let checkpoint = Store::open(directory.path()).unwrap().checkpoint(&unit());
        let write = |path: &Path| fs::write(path, "model").map_err(Error::io("write", path));
        checkpoint.save(&history(1), write).unwrap();
        fs::write(checkpoint.note(), "{").unwrap();
        let error = checkpoint.load().unwrap_err();
        assert!(matches!(error, Error::CorruptResult { path, .. } if path == checkpoint.note()));
        // A note that cannot be read is no missing one.
        fs::remove_file(checkpoint.note()).unwrap();
        fs::create_dir(checkpoint.note()).unwrap();
        assert!(matches!(checkpoint.load(), Err(Error::Io { .. })));
    }
}
