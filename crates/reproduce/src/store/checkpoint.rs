//! How far a running unit is, on disk.

use super::{Artefacts, Curve, atomic, line, read_json};
use crate::Error;
use crate::suite::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What was measured in each epoch so far.
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
    /// Resuming with other code would give a mixture that neither version computes.
    code_version: String,
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
        code_version: &str,
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
            code_version: code_version.to_owned(),
            history: history.clone(),
        };
        atomic::write(&self.note(), &line(&note))?;
        self.remove_all_but(&model)
    }

    /// The saved model's file and what was measured; `None` if there is nothing to go on from.
    ///
    /// A damaged checkpoint, or one of another code version, is none: it only costs time.
    pub fn load(&self, code_version: &str) -> Option<(PathBuf, History)> {
        let note: Note = read_json(&self.note()).ok().flatten()?;
        let model = self.directory.join(&note.model);
        (note.code_version == code_version && model.is_file()).then_some((model, note.history))
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

    /// Removes the unit's files, but for the note and one model.
    fn remove_all_but(&self, model: &str) -> Result<(), Error> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Ok(());
        };
        let note = format!("{}.json", self.id);
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for name in names.filter(|name| name.starts_with(&self.id)) {
            if name != note && name != model {
                atomic::remove(&self.directory.join(name))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::unit::tests::unit;

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
        assert!(checkpoint.load("1").is_none());
        for epochs in [1, 2] {
            let content = epochs.to_string();
            checkpoint
                .save(&history(epochs), "1", |path| {
                    fs::write(path, &content).map_err(Error::io("write", path))
                })
                .unwrap();
        }
        let (model, found) = checkpoint.load("1").unwrap();
        assert_eq!(fs::read(model).unwrap(), b"2");
        assert_eq!(found, history(2));
        assert!(
            checkpoint.load("2").is_none(),
            "another version starts again"
        );
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
        checkpoint.save(&history(1), "1", write).unwrap();
        let full = |path: &Path| {
            fs::write(path, "mod").unwrap();
            Err(Error::io("write", path)(
                std::io::ErrorKind::StorageFull.into(),
            ))
        };
        checkpoint.save(&history(2), "1", full).unwrap_err();
        assert_eq!(checkpoint.load("1").unwrap().1, history(1));
        assert_eq!(fs::read_dir(&checkpoint.directory).unwrap().count(), 2);
    }

    #[test]
    fn a_damaged_checkpoint_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let checkpoint = Store::open(directory.path()).unwrap().checkpoint(&unit());
        let write = |path: &Path| fs::write(path, "model").map_err(Error::io("write", path));
        checkpoint.save(&history(1), "1", write).unwrap();
        fs::write(checkpoint.note(), "{").unwrap();
        assert!(checkpoint.load("1").is_none());
    }
}
