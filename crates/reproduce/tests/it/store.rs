//! Results and checkpoints on disk: whole or not there, and named where they are damaged.

use crate::fixtures;
use crate::toy::{ONE, THREE, Toy};
use bochner_report::row::Row;
use bochner_reproduce::store::Checkpoint;
use bochner_reproduce::trial::{History, Moment};
use bochner_reproduce::{Error, Store};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};

fn row() -> Row {
    fixtures::row(&fixtures::unit(), 1.0 / 3.0)
}

fn store() -> (TempDir, Store) {
    let directory = tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    (directory, store)
}

/// The file of a row in a directory of results.
fn file(out: &Path, row: &Row) -> PathBuf {
    let name = format!("units/{}/{}.json", row.unit.suite, row.id);
    out.join(name)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    |source| Error::Io {
        action: "write",
        path: path.to_owned(),
        source,
    }
}

fn write(path: &Path) -> Result<(), Error> {
    fs::write(path, "model").map_err(io(path))
}

#[test]
fn a_recorded_row_is_found_again_bit_for_bit() {
    let (directory, store) = store();
    let row = row();
    assert!(store.row(&row.unit).unwrap().is_none());
    for _ in 0..2 {
        store.record(&row, None).unwrap();
        let found = store.row(&row.unit).unwrap().unwrap();
        assert_eq!(found, row);
        assert_eq!(found.r_number.to_bits(), row.r_number.to_bits());
        let folder = file(directory.path(), &row);
        let folder = folder.parent().unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }
    let mut other = row.unit.clone();
    other.settings.set_epochs(61);
    let is_found = store.row(&other).unwrap().is_some();
    assert!(!is_found, "other epochs, other unit");
}

#[test]
fn a_damaged_or_newer_result_is_named_and_one_under_another_name_is_foreign() {
    let (directory, store) = store();
    let row = row();
    store.record(&row, None).unwrap();
    let path = file(directory.path(), &row);
    let text = fs::read_to_string(&path).unwrap();
    for damaged in [&text[..text.len() / 2], "", "{}", "\u{0}\u{0}"] {
        fs::write(&path, damaged).unwrap();
        let error = store.row(&row.unit).unwrap_err();
        assert!(matches!(&error, Error::CorruptResult { path: p, .. } if *p == path));
    }
    let newer = text.replacen('{', "{\"novel\":1,", 1);
    fs::write(&path, &newer).unwrap();
    let error = store.row(&row.unit).unwrap_err();
    assert!(matches!(error, Error::NewerResult { field, .. } if field == "novel"));
    let mut other = row.clone();
    other.unit.split += 1;
    other.id = other.unit.id();
    fs::write(file(directory.path(), &other), text).unwrap();
    let error = store.row(&other.unit).unwrap_err();
    assert!(matches!(error, Error::ForeignResult { found, .. } if found == row.id));
}

/// A shard leaves the unfinished files of the others alone; the first one there sweeps them away.
#[test]
fn half_written_files_are_swept_away_and_results_stay() {
    let (directory, store) = store();
    let row = row();
    store.record(&row, None).unwrap();
    let half = file(directory.path(), &row).with_extension("json.unfinished-7-7");
    fs::write(&half, "{\"id\":").unwrap();
    let checkpoint = store.checkpoint(&row.unit);
    let weights = checkpoint.weights(Moment::OfV);
    checkpoint.write(&weights, write).unwrap();
    // A process that is killed while a model writes itself leaves this.
    let model = weights.with_extension("weights.unfinished-7-7.77.partial");
    fs::write(&model, "wei").unwrap();
    drop(store);
    let share = |shard: &str| Store::share(directory.path(), shard.parse().unwrap(), "a run");
    let first = share("1/2").unwrap();
    assert!(!half.exists() && !model.exists());
    assert!(weights.exists());
    assert_eq!(first.row(&row.unit).unwrap(), Some(row));
    fs::write(&half, "{").unwrap();
    drop(share("2/2").unwrap());
    assert!(half.exists());
    drop(first);
    share("1/2").unwrap();
    assert!(!half.exists());
}

fn checkpoint() -> (TempDir, Checkpoint) {
    let (directory, store) = store();
    let checkpoint = store.checkpoint(&fixtures::unit());
    (directory, checkpoint)
}

fn history(epochs: usize) -> History {
    History {
        loss: vec![0.1; epochs],
        ..History::default()
    }
}

/// The files of checkpoints.
fn kept(directory: &TempDir) -> Vec<PathBuf> {
    let checkpoints = directory.path().join("checkpoints/regression");
    let entries = fs::read_dir(checkpoints).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_last_checkpoint_is_found_and_the_ones_before_are_gone() {
    let (directory, checkpoint) = checkpoint();
    assert!(checkpoint.load().unwrap().is_none());
    for epochs in [1, 2] {
        let content = epochs.to_string();
        let save = |path: &Path| fs::write(path, &content).map_err(io(path));
        checkpoint.save(&history(epochs), save).unwrap();
    }
    let (model, found) = checkpoint.load().unwrap().unwrap();
    assert_eq!(fs::read(&model).unwrap(), b"2");
    assert_eq!(found, history(2));
    // A process that is killed while it writes a model leaves this.
    fs::write(model.with_extension("model.unfinished-7-7.partial"), "").unwrap();
    assert_eq!(kept(&directory).len(), 3);
    checkpoint.remove().unwrap();
    assert!(kept(&directory).is_empty());
}

#[test]
fn a_failed_save_keeps_the_checkpoint_before_and_a_damaged_one_is_named() {
    let (directory, checkpoint) = checkpoint();
    checkpoint.save(&history(1), write).unwrap();
    let full = |path: &Path| {
        fs::write(path, "mod").unwrap();
        Err(io(path)(ErrorKind::StorageFull.into()))
    };
    checkpoint.save(&history(2), full).unwrap_err();
    assert_eq!(checkpoint.load().unwrap().unwrap().1, history(1));
    let files = kept(&directory);
    assert_eq!(files.len(), 2);

    let is_note = |path: &&PathBuf| path.extension().is_some_and(|is| is == "json");
    let note = files.iter().find(is_note).unwrap();
    fs::write(note, "{").unwrap();
    let error = checkpoint.load().unwrap_err();
    assert!(matches!(error, Error::CorruptResult { path, .. } if path == *note));
    // A note that cannot be read is no missing one.
    fs::remove_file(note).unwrap();
    fs::create_dir(note).unwrap();
    assert!(matches!(checkpoint.load(), Err(Error::Io { .. })));
}

#[test]
fn a_full_disk_is_told_from_a_missing_permission() {
    let said = |kind: ErrorKind| io(Path::new("a/b"))(kind.into()).to_string();
    let full = said(ErrorKind::StorageFull);
    assert!(full.contains("a/b") && full.contains("free some space"));
    let denied = said(ErrorKind::PermissionDenied);
    assert!(denied.contains("--out") && !denied.contains("free some space"));
}

/// A run that takes over the rows of another directory.
fn importing(set: &str, out: &Path, other: &Path) -> Toy {
    let mut toy = Toy::new(set, out);
    toy.config.import = vec![other.to_owned()];
    toy
}

#[test]
fn an_imported_unit_is_finished_and_its_weights_are_gone() {
    let (other, directory) = (tempdir().unwrap(), tempdir().unwrap());
    let there = Toy::new(ONE, other.path());
    there.run().unwrap();
    let mut here = importing(ONE, directory.path(), other.path());
    assert!(Toy::new(ONE, directory.path()).hurry().interrupted);
    let store = Store::open(directory.path()).unwrap();
    let weights = store.checkpoint(&there.rows()[0].unit).weights(Moment::OfV);
    drop(store);
    fs::write(&weights, "weights").unwrap();
    let run = here.run().unwrap();
    assert_eq!((run.outcome.computed, run.outcome.found), (0, 1));
    assert!(
        run.summary.iter().any(|line| line == "imported  1 rows"),
        "{:?}",
        run.summary
    );
    assert_eq!(here.rows(), there.rows());
    assert!(!weights.exists());
    let artefacts = |out: &Path| fs::read(out.join("smoke/toy/artefacts.jsonl")).unwrap();
    assert_eq!(artefacts(directory.path()), artefacts(other.path()));

    here.config.import = vec![tempdir().unwrap().path().to_owned()];
    assert!(matches!(here.run(), Err(Error::NoResults { .. })));
}

#[test]
fn imported_rows_of_other_units_are_left_out_with_the_reason_and_damaged_ones_are_named() {
    let (other, directory) = (tempdir().unwrap(), tempdir().unwrap());
    let there = Toy::new(THREE, other.path());
    there.run().unwrap();
    let left_out = |row: &Row| {
        for old in fs::read_dir(other.path().join("units/toy")).unwrap() {
            fs::remove_file(old.unwrap().path()).unwrap();
        }
        let row = Row {
            id: row.unit.id(),
            ..row.clone()
        };
        let path = file(other.path(), &row);
        fs::write(path, serde_json::to_string(&row).unwrap()).unwrap();
        let run = importing(THREE, directory.path(), other.path())
            .run()
            .unwrap();
        let mut said = run.summary.into_iter();
        let line = format!("left out  {}: ", row.id);
        said.find_map(|said| Some(said.strip_prefix(&line)?.to_owned()))
            .unwrap()
    };
    let row = there.rows().remove(0);
    let [mut older, mut elsewhere, mut longer] = [(); 3].map(|()| row.clone());
    older.unit.versions = None;
    elsewhere.unit.seed = 7;
    longer.unit.settings.set_epochs(61);
    assert!(left_out(&older).ends_with("its version of suite is absent, here 1"));
    let none = "this run has no unit of this scale, set, model, split and seed";
    assert_eq!(left_out(&elsewhere), none);
    assert_eq!(left_out(&longer), "its epochs is 61, here 20");

    let path = file(other.path(), &row);
    fs::write(&path, "{\"id\":\n7}").unwrap();
    let error = importing(THREE, directory.path(), other.path())
        .run()
        .unwrap_err();
    let error = error.to_string();
    let is_named = error.contains(path.to_str().unwrap()) && error.contains("line 2");
    assert!(is_named, "{error}");
}
