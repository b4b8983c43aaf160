//! The runner: numbers of the right epochs, whatever interrupts it.

use crate::toy::{COURSE, EPOCHS, ONE, THREE, Toy, written};
use bochner_report::archive::Archive;
use bochner_report::row::{Curve, Row};
use bochner_reproduce::trial::{Finals, Moment};
use bochner_reproduce::{Error, Store};
use std::fs;
use std::num::NonZeroUsize;
use tempfile::{TempDir, tempdir};

/// A run of one unit in a directory of its own, in which models are inspected.
fn toy(inspected: &'static [Moment]) -> (TempDir, Toy) {
    let directory = tempdir().unwrap();
    let toy = Toy::new(ONE, directory.path());
    (directory, Toy { inspected, ..toy })
}

fn row(toy: &Toy) -> Row {
    toy.rows().remove(0)
}

/// The smallest and the largest measure of the first unit in its epochs.
fn states() -> (Vec<f64>, f64, f64) {
    let step = |state: &mut f64, _| {
        *state *= 3.7 * (1.0 - *state);
        Some(*state)
    };
    let states: Vec<f64> = (0..EPOCHS).scan(0.1, step).collect();
    let least = states.iter().copied().fold(f64::INFINITY, f64::min);
    let most = states.iter().copied().fold(0.0, f64::max);
    (states, least, most)
}

#[test]
fn numbers_are_taken_in_the_right_epochs() {
    let (directory, toy) = toy(&[Moment::OfV]);
    assert_eq!(toy.outcome().computed, 1);
    let ((states, best, validated), row) = (states(), row(&toy));
    assert_eq!((row.r_number, states[row.r_epoch - 1]), (best, best));
    assert_eq!(row.v_number, Some(validated));
    assert_eq!(states[row.v_epoch.unwrap() - 1], validated);
    assert_eq!(row.last, states[EPOCHS - 1]);
    assert_eq!(row.first_mse, states[0] * states[0]);
    assert_eq!((row.validation_loss, row.stopped_after), (None, None));
    let archive = Archive::read(&directory.path().join("smoke/toy")).unwrap();
    let artefacts = &archive.artefacts[&row.id];
    assert_eq!(artefacts.get::<Curve>("test").unwrap().values, states);
    // Inspections and the value on the other test part are of the epoch that validation chose.
    assert_eq!(row.measures["state"], validated);
    assert_eq!(row.measures["other"], 2.0 * validated);
    assert_eq!(row.measures["state, last epoch"], states[EPOCHS - 1]);
    assert_eq!(artefacts.get("state"), Some(validated));
    assert_eq!(artefacts.get("state, last epoch"), states.last().copied());

    // A run that is killed after it has recorded the row leaves the weights to the next.
    let store = Store::open(directory.path()).unwrap();
    let kept = store.checkpoint(&row.unit).weights(Moment::OfV);
    drop(store);
    assert!(!kept.exists());
    fs::write(&kept, "weights").unwrap();
    assert_eq!(toy.outcome().found, 1);
    assert!(!kept.exists());
}

#[test]
fn models_are_inspected_in_several_epochs_whose_final_numbers_replace_those_of_each_epoch() {
    let (_whole, whole) = toy(COURSE);
    whole.run().unwrap();
    let ((states, best, validated), found) = (states(), row(&whole));
    for (name, value) in [
        ("first", states[0]),
        ("last", states[EPOCHS - 1]),
        ("v", validated),
        ("r", best),
        (Finals::REPLACED[0], validated),
        (Finals::REPLACED[1], best),
    ] {
        assert_eq!(found.measures[name], value, "{name}");
    }
    let finals = (Some(10.0 * validated), 10.0 * best);
    assert_eq!((found.v_number, found.r_number), finals);
    assert_eq!(found.validation, Some(1.0 - validated));
    assert!(!found.measures.contains_key(Finals::REPLACED[2]));

    // Interrupted after every epoch, the row is the same.
    let (_parts, parts) = toy(COURSE);
    while parts.hurry().interrupted {}
    assert_eq!(row(&parts), found);

    // An interrupt ends an inspection that asks for it; the next run goes on from the last epoch.
    let (_inspected, inspected) = toy(COURSE);
    let interrupted = Toy {
        interrupts_inspection: true,
        ..inspected.clone()
    };
    assert!(interrupted.outcome().interrupted && inspected.rows().is_empty());
    let store = Store::open(&inspected.config.out).unwrap();
    let (_, history) = store.checkpoint(&found.unit).load().unwrap().unwrap();
    assert_eq!(history.loss.len(), EPOCHS);
    drop(store);
    inspected.run().unwrap();
    assert_eq!(row(&inspected), found);
}

/// Error and loss are both as good as ever in epochs 1 and 2, the error once more in epoch 4.
#[test]
fn a_trial_ends_early_in_one_run_as_in_several_and_chooses_its_epoch() {
    let stopping = || {
        let (directory, toy) = toy(&[]);
        let patience = NonZeroUsize::new(5);
        (directory, Toy { patience, ..toy })
    };
    let (_whole, whole) = stopping();
    assert_eq!(whole.outcome().computed, 1);
    let ((states, ..), found) = (states(), row(&whole));
    assert_eq!(found.stopped_after, Some(9));
    assert_eq!((found.v_epoch, found.v_number), (Some(2), Some(states[1])));
    assert_eq!(found.validation, Some(1.0 - states[1]));
    assert_eq!(found.validation_loss, Some((states[1] - 0.8).powi(2)));
    assert_eq!((found.r_epoch, found.r_number), (5, states[4]));
    assert_eq!(found.last, states[8]);

    let (_parts, parts) = stopping();
    for epoch in 1..=9 {
        assert_eq!(parts.hurry().interrupted, epoch < 9, "one epoch a run");
    }
    assert_eq!(row(&parts), found);
}

#[test]
fn damaged_models_end_the_run_and_without_its_checkpoint_a_unit_starts_again() {
    let (_whole, whole) = toy(&[Moment::OfV]);
    whole.run().unwrap();
    let (_parts, parts) = toy(&[Moment::OfV]);
    // One epoch in each run, up to the last but one.
    (1..EPOCHS).for_each(|_| drop(parts.hurry()));
    let store = Store::open(&parts.config.out).unwrap();
    let checkpoint = store.checkpoint(&row(&whole).unit);
    drop(store);
    let (model, _) = checkpoint.load().unwrap().unwrap();
    for damaged in [model, checkpoint.weights(Moment::OfV)] {
        let kept = fs::read_to_string(&damaged).unwrap();
        let foreign = written(0.5, 3);
        for (content, reason) in [(&*foreign, "of epoch 3"), ("", "one number")] {
            fs::write(&damaged, content).unwrap();
            let error = parts.run().unwrap_err();
            let is_named = matches!(&error, Error::Checkpoint { path, .. } if *path == damaged);
            assert!(is_named && error.to_string().contains(reason), "{error}");
        }
        fs::write(&damaged, kept).unwrap();
    }
    assert!(parts.rows().is_empty());
    checkpoint.remove().unwrap();
    parts.run().unwrap();
    assert_eq!(row(&parts), row(&whole));
}

#[test]
fn a_unit_that_diverges_does_not_stop_the_others() {
    let directory = tempdir().unwrap();
    let toy = Toy {
        broken: Some(1),
        ..Toy::new(THREE, directory.path())
    };
    let outcome = toy.outcome();
    assert_eq!((outcome.computed, outcome.interrupted), (2, false));
    let (unit, error) = &outcome.failed[0];
    assert_eq!(unit.split, 1);
    assert!(matches!(error, Error::NotFinite { epoch: 2, .. }));
    let splits: Vec<usize> = toy.rows().iter().map(|row| row.unit.split).collect();
    assert_eq!(splits, [0, 2]);
}

#[test]
fn a_unit_names_the_files_of_its_set_and_nothing_where_it_is_drawn() {
    let directory = tempdir().unwrap();
    let versions = [ONE, THREE].map(|set| {
        let toy = Toy::new(set, directory.path());
        toy.run().unwrap();
        let is_own = |row: &Row| row.unit.set == set;
        let row = toy.rows().into_iter().find(is_own).unwrap();
        row.unit.versions.unwrap()
    });
    let [pinned, drawn] = versions;
    assert!(pinned.data.is_some() && drawn.data.is_none());
    assert_eq!(pinned.defaults, drawn.defaults);
}
