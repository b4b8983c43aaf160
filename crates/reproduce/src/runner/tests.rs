//! The runner, with a model small enough to be checked by hand.

use super::*;
use crate::fixtures::unit;
use crate::suites::REGRESSION;
use crate::trial::{Evaluation, Finals, Step};
use bochner_report::row::Curve;
use std::fs;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Epochs of each unit.
const EPOCHS: usize = 20;

/// A run of [`Logistic`] models that can be interrupted, in which models can break.
#[derive(Default)]
struct Toy {
    interrupt: AtomicBool,
    /// Whether units are interrupted after their first epoch.
    is_hasty: bool,
    /// The split whose model breaks.
    broken: Option<usize>,
    patience: Option<NonZeroUsize>,
    inspected: &'static [Moment],
    /// Whether the inspection of the V-epoch is interrupted.
    interrupts_inspection: bool,
}

/// `state <- 3.7 state (1 - state)`: chaotic, so that one lost bit shows.
struct Logistic<'a> {
    state: f64,
    epochs: usize,
    is_broken: bool,
    toy: &'a Toy,
}

impl Trial for Logistic<'_> {
    fn rows(&self) -> [usize; 3] {
        [8, 1, 1]
    }

    fn parameters(&self) -> usize {
        1
    }

    fn epoch(&mut self) -> Result<Step, AnyError> {
        self.state *= 3.7 * (1.0 - self.state);
        self.epochs += 1;
        let is_nan = self.is_broken && self.epochs > 1;
        Ok(Step {
            loss: if is_nan { f64::NAN } else { self.state },
            mse: self.state * self.state,
        })
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        Ok(Evaluation {
            validation: Some(1.0 - self.state),
            validation_loss: self.toy.patience.map(|_| (self.state - 0.8).powi(2)),
            test: self.state,
            others: vec![("other", 2.0 * self.state)],
        })
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        Ok(fs::write(path, written(self.state, self.epochs))?)
    }

    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        let text = fs::read_to_string(path)?;
        let (bits, epochs) = text.split_once(' ').ok_or("one number")?;
        (self.state, self.epochs) = (f64::from_bits(bits.parse()?), epochs.parse()?);
        Ok(())
    }

    fn patience(&self) -> Option<NonZeroUsize> {
        self.toy.patience
    }

    fn inspected(&self) -> &'static [Moment] {
        self.toy.inspected
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        if self.toy.interrupts_inspection && moment == Moment::OfV {
            self.toy.interrupt.store(true, Ordering::Relaxed);
            assert!(stopped());
            return Err(Error::Interrupted.into());
        }
        if self.toy.inspected != COURSE {
            return Ok(Findings::of([("state", self.state)]).with("state", &self.state));
        }
        let of = |other| (moment == other).then_some(10.0 * self.state);
        let finals = Finals {
            v: of(Moment::OfV),
            r: of(Moment::OfR),
            ..Finals::default()
        };
        let found = Findings::of([(moment.name(), self.state)]);
        Ok(Findings { finals, ..found })
    }
}

const COURSE: &[Moment] = &[Moment::First, Moment::OfR, Moment::OfV];

/// The file of a model.
fn written(state: f64, epochs: usize) -> String {
    format!("{} {epochs}", state.to_bits())
}

impl Source for Toy {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        if self.is_hasty {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        Ok(Box::new(Logistic {
            state: 0.1 + 0.01 * unit.split as f64,
            epochs: 0,
            is_broken: self.broken == Some(unit.split),
            toy: self,
        }))
    }
}

impl Toy {
    fn new(inspected: &'static [Moment]) -> Self {
        Self {
            inspected,
            ..Self::default()
        }
    }

    fn run(&self, units: &[Unit], store: &Store) -> Result<Outcome, Error> {
        let config = Config {
            threads: 2,
            checkpoint_every: Duration::ZERO,
            ..Config::default()
        };
        let card = REGRESSION.card;
        run(units, card, self, store, &config, &self.interrupt)
    }

    /// Runs one epoch, or the inspections.
    fn hurry(self, units: &[Unit], store: &Store) -> Outcome {
        let toy = Self {
            is_hasty: true,
            ..self
        };
        toy.run(units, store).unwrap()
    }
}

fn units(n: usize) -> Vec<Unit> {
    let unit = |split| {
        let mut unit = Unit { split, ..unit() };
        unit.settings.set_epochs(EPOCHS);
        unit
    };
    (0..n).map(unit).collect()
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    (directory, store)
}

/// The row of a unit without the time it took.
fn row(unit: &Unit, store: &Store) -> Row {
    let row = store.row(unit).unwrap().unwrap();
    Row {
        seconds: 0.0,
        ..row
    }
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
    let ((_directory, store), unit) = (store(), &units(1)[0]);
    let toy = || Toy::new(&[Moment::OfV]);
    toy().run(&units(1), &store).unwrap();
    let ((states, best, validated), row) = (states(), row(unit, &store));
    assert_eq!((row.r_number, states[row.r_epoch - 1]), (best, best));
    assert_eq!(row.v_number, Some(validated));
    assert_eq!(states[row.v_epoch.unwrap() - 1], validated);
    assert_eq!(row.last, states[EPOCHS - 1]);
    assert_eq!(row.first_mse, states[0] * states[0]);
    assert_eq!((row.validation_loss, row.stopped_after), (None, None));
    let artefacts = store.artefacts(unit).unwrap().unwrap();
    assert_eq!(artefacts.get::<Curve>("test").unwrap().values, states);
    // What is looked at, and the value on the other test part, are of the epoch that validation chose.
    assert_eq!(row.measures["state"], validated);
    assert_eq!(row.measures["other"], 2.0 * validated);
    assert_eq!(row.measures["state, last epoch"], states[EPOCHS - 1]);
    assert_eq!(artefacts.get("state"), Some(validated));
    assert_eq!(artefacts.get("state, last epoch"), states.last().copied());

    // A run that is killed after it has recorded the row leaves the weights to the next.
    let kept = store.checkpoint(unit).weights(Moment::OfV);
    assert!(!kept.exists());
    fs::write(&kept, "weights").unwrap();
    assert_eq!(toy().run(&units(1), &store).unwrap().found, 1);
    assert!(!kept.exists());
}

#[test]
fn models_are_inspected_in_several_epochs_whose_final_numbers_replace_those_of_each_epoch() {
    let ((_whole, whole), units) = (store(), units(1));
    Toy::new(COURSE).run(&units, &whole).unwrap();
    let ((states, best, validated), found) = (states(), row(&units[0], &whole));
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
    let (_parts, parts) = store();
    while parts.row(&units[0]).unwrap().is_none() {
        Toy::new(COURSE).hurry(&units, &parts);
    }
    assert_eq!(row(&units[0], &parts), found);

    // An interrupt ends an inspection that asks for it; the next run goes on from the last epoch.
    let (_inspected, inspected) = store();
    let interrupted = Toy {
        interrupts_inspection: true,
        ..Toy::new(COURSE)
    };
    let outcome = interrupted.run(&units, &inspected).unwrap();
    assert!(outcome.interrupted && inspected.row(&units[0]).unwrap().is_none());
    let (_, history) = inspected.checkpoint(&units[0]).load().unwrap().unwrap();
    assert_eq!(history.loss.len(), EPOCHS);
    Toy::new(COURSE).run(&units, &inspected).unwrap();
    assert_eq!(row(&units[0], &inspected), found);
}

/// Error and loss are both as good as ever in epochs 1 and 2, the error once more in epoch 4.
#[test]
fn a_trial_ends_early_in_one_run_as_in_several_and_chooses_its_epoch() {
    let stopping = || Toy {
        patience: NonZeroUsize::new(5),
        ..Toy::default()
    };
    let ((_whole, whole), units) = (store(), units(1));
    assert_eq!(stopping().run(&units, &whole).unwrap().computed, 1);
    let ((states, ..), found) = (states(), row(&units[0], &whole));
    assert_eq!(found.stopped_after, Some(9));
    assert_eq!((found.v_epoch, found.v_number), (Some(2), Some(states[1])));
    assert_eq!(found.validation, Some(1.0 - states[1]));
    assert_eq!(found.validation_loss, Some((states[1] - 0.8).powi(2)));
    assert_eq!((found.r_epoch, found.r_number), (5, states[4]));
    assert_eq!(found.last, states[8]);

    let (_parts, parts) = store();
    for epoch in 1..=9 {
        let outcome = stopping().hurry(&units, &parts);
        assert_eq!(outcome.interrupted, epoch < 9, "one epoch a run");
    }
    assert_eq!(row(&units[0], &parts), found);
}

#[test]
fn damaged_models_end_the_run_and_without_its_checkpoint_a_unit_starts_again() {
    let ((_whole, whole), units) = (store(), units(1));
    let toy = || Toy::new(&[Moment::OfV]);
    toy().run(&units, &whole).unwrap();
    let (_parts, parts) = store();
    // One epoch in each run, up to the last but one.
    (1..EPOCHS).for_each(|_| drop(toy().hurry(&units, &parts)));
    let checkpoint = parts.checkpoint(&units[0]);
    let (model, _) = checkpoint.load().unwrap().unwrap();
    for damaged in [model, checkpoint.weights(Moment::OfV)] {
        let kept = fs::read_to_string(&damaged).unwrap();
        let foreign = written(0.5, 3);
        for (content, reason) in [(&*foreign, "of epoch 3"), ("", "one number")] {
            fs::write(&damaged, content).unwrap();
            let error = toy().run(&units, &parts).unwrap_err();
            let is_named = matches!(&error, Error::Checkpoint { path, .. } if *path == damaged);
            assert!(is_named && error.to_string().contains(reason), "{error}");
        }
        fs::write(&damaged, kept).unwrap();
    }
    assert!(parts.row(&units[0]).unwrap().is_none());
    checkpoint.remove().unwrap();
    toy().run(&units, &parts).unwrap();
    assert_eq!(row(&units[0], &parts), row(&units[0], &whole));
}

#[test]
fn a_unit_that_diverges_does_not_stop_the_others() {
    let ((_directory, store), units) = (store(), units(3));
    let toy = Toy {
        broken: Some(1),
        ..Toy::default()
    };
    let outcome = toy.run(&units, &store).unwrap();
    assert_eq!((outcome.computed, outcome.interrupted), (2, false));
    let (unit, error) = &outcome.failed[0];
    assert_eq!(unit, &units[1]);
    assert!(matches!(error, Error::NotFinite { epoch: 2, .. }));
    assert!(store.row(unit).unwrap().is_none());
}
