//! The runner, with a model small enough to be checked by hand.

use super::*;
use crate::fixtures::unit;
use crate::store::atomic::beside;
use crate::trial::{EarlyStopping, Evaluation, Facts, Finals, Findings, Rule, Step};
use bochner_report::row::Curve;
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;

/// `state <- 3.7 state (1 - state)`: chaotic, so that one lost bit shows.
struct Logistic<'a> {
    state: f64,
    epochs: usize,
    breaks_in: Option<usize>,
    rule: Option<EarlyStopping>,
    keeps: Keep,
    /// Set by the inspection of the V-epoch, which is then stopped.
    interrupt: Option<&'a AtomicBool>,
}

impl Trial for Logistic<'_> {
    fn facts(&self) -> Facts {
        Facts {
            parameters: 1,
            train_rows: 8,
            validation_rows: 1,
            test_rows: 1,
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        self.state *= 3.7 * (1.0 - self.state);
        self.epochs += 1;
        let broken = self.breaks_in.is_some_and(|epoch| self.epochs >= epoch);
        let loss = if broken { f64::NAN } else { self.state };
        Ok(Step {
            loss,
            mse: self.state * self.state,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        Ok(Evaluation {
            validation: Some(1.0 - self.state),
            validation_loss: self.rule.map(|_| (self.state - 0.8).powi(2)),
            test: self.state,
            others: vec![("other", 2.0 * self.state)],
        })
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{} {}", self.state.to_bits(), self.epochs);
        fs::write(path, text).map_err(Error::io("write", path))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        let (bits, epochs) = text.split_once(' ').unwrap();
        self.state = f64::from_bits(bits.parse().unwrap());
        self.epochs = epochs.parse().unwrap();
        Ok(())
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn rule(&self) -> Rule {
        self.rule.map_or(Rule::BestValidation, Rule::EarlyStopping)
    }

    fn keeps(&self) -> Keep {
        self.keeps
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, Error> {
        if let (Some(interrupt), Moment::OfV) = (self.interrupt, moment) {
            interrupt.store(true, Ordering::Relaxed);
            assert!(stopped());
            return Err(Error::Interrupted);
        }
        if self.keeps != Keep::Course {
            return Ok(Findings::of([("state", self.state)]).with("state", &self.state));
        }
        let (name, value) = match moment {
            Moment::First => ("first", None),
            Moment::Last => ("last", None),
            Moment::OfV => ("of V", Some(10.0 * self.state)),
            Moment::OfR => ("of R", Some(10.0 * self.state)),
        };
        let finals = Finals {
            v: value.filter(|_| moment == Moment::OfV),
            r: value.filter(|_| moment == Moment::OfR),
            ..Finals::default()
        };
        let found = Findings::of([(name, self.state)]);
        Ok(Findings { finals, ..found })
    }
}

/// Runs [`Logistic`], counts the units started, and can interrupt or break.
#[derive(Default)]
struct Toy {
    started: AtomicUsize,
    interrupt: AtomicBool,
    interrupt_at_start: Option<usize>,
    breaks: Option<usize>,
    rule: Option<EarlyStopping>,
    keep: Option<Keep>,
    interrupt_inspection: bool,
}

impl Units for Toy {
    fn card(&self) -> &'static Card {
        crate::suites::REGRESSION.card
    }

    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error> {
        let started = self.started.fetch_add(1, Ordering::Relaxed);
        if self.interrupt_at_start == Some(started) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        Ok(Box::new(Logistic {
            state: 0.1 + 0.01 * unit.split as f64,
            epochs: 0,
            breaks_in: (self.breaks == Some(unit.split)).then_some(2),
            rule: self.rule,
            keeps: self.keep.unwrap_or(Keep::UntilLookedAt),
            interrupt: self.interrupt_inspection.then_some(&self.interrupt),
        }))
    }
}

impl Toy {
    fn run(&self, units: &[Unit], store: &Store, jobs: usize) -> Result<Outcome, Error> {
        let options = Options {
            jobs,
            threads: 2,
            checkpoint_every: Duration::ZERO,
            code_version: "test",
            interrupt: &self.interrupt,
        };
        run(units, self, store, &options)
    }
}

fn units(n: usize) -> Vec<Unit> {
    let unit = |split| {
        let mut unit = Unit { split, ..unit() };
        unit.settings.set_epochs(20);
        unit
    };
    (0..n).map(unit).collect()
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    (directory, store)
}

/// All rows, but for the time they took.
fn rows(units: &[Unit], store: &Store) -> Vec<Row> {
    let row = |unit: &Unit| Row {
        seconds: 0.0,
        ..store.row(unit).unwrap().unwrap()
    };
    units.iter().map(row).collect()
}

/// What the first unit measures in its 20 epochs.
fn states() -> Vec<f64> {
    let step = |state: &mut f64, _| {
        *state *= 3.7 * (1.0 - *state);
        Some(*state)
    };
    (0..20).scan(0.1, step).collect()
}

#[test]
fn numbers_are_taken_in_the_right_epochs() {
    let (_directory, store) = store();
    let units = units(1);
    Toy::default().run(&units, &store, 1).unwrap();
    let states = states();
    let row = &rows(&units, &store)[0];
    let best = states.iter().copied().fold(f64::INFINITY, f64::min);
    let validated = states.iter().copied().fold(0.0, f64::max);
    assert_eq!(row.r_number, best);
    assert_eq!(states[row.r_epoch - 1], best);
    assert_eq!(row.v_number, Some(validated));
    assert_eq!(states[row.v_epoch.unwrap() - 1], validated);
    assert_eq!(row.last, states[19]);
    assert_eq!(row.first_mse, states[0] * states[0]);
    assert_eq!((row.validation_loss, row.stopped_after), (None, None));
    let artefacts = store.artefacts(&units[0]).unwrap().unwrap();
    assert_eq!(artefacts.get::<Curve>("test").unwrap().values, states);
    // What is looked at, and the value on the other test part, are of the epoch that validation chose.
    assert_eq!(row.measures["state"], validated);
    assert_eq!(row.measures["other"], 2.0 * validated);
    assert_eq!(row.measures["state, last epoch"], states[19]);
    assert_eq!(artefacts.get("state"), Some(validated));
    assert_eq!(artefacts.get("state, last epoch"), Some(states[19]));
}

#[test]
fn a_course_is_looked_at_in_four_epochs_whose_final_numbers_replace_those_of_each_epoch() {
    let units = units(1);
    let (_whole, whole) = store();
    let course = || Toy {
        keep: Some(Keep::Course),
        ..Toy::default()
    };
    course().run(&units, &whole, 1).unwrap();
    let states = states();
    let row = &rows(&units, &whole)[0];
    let best = states.iter().copied().fold(f64::INFINITY, f64::min);
    let validated = states.iter().copied().fold(0.0, f64::max);
    for (name, value) in [
        ("first", states[0]),
        ("last", states[19]),
        ("of V", validated),
        ("of R", best),
        (Finals::REPLACED[0], validated),
        (Finals::REPLACED[1], best),
    ] {
        assert_eq!(row.measures[name], value, "{name}");
    }
    assert_eq!(
        (row.v_number, row.r_number),
        (Some(10.0 * validated), 10.0 * best)
    );
    assert_eq!(row.validation, Some(1.0 - validated));
    assert!(!row.measures.contains_key(Finals::REPLACED[2]));

    let kept = |kind: &str| fs::read_to_string(whole.weights(&units[0], kind)).unwrap();
    assert_eq!(kept("r"), format!("{} {}", best.to_bits(), row.r_epoch));
    assert_eq!(
        kept("v"),
        format!("{} {}", validated.to_bits(), row.v_epoch.unwrap())
    );

    // Interrupted after every epoch, the row is the same.
    let (_parts, parts) = store();
    while parts.row(&units[0]).unwrap().is_none() {
        let interrupted = Toy {
            interrupt_at_start: Some(0),
            ..course()
        };
        interrupted.run(&units, &parts, 1).unwrap();
    }
    assert_eq!(rows(&units, &parts), rows(&units, &whole));

    // An interrupt ends an inspection that asks for it; the next run goes on from the last epoch.
    let (_inspected, inspected) = store();
    let interrupted = Toy {
        interrupt_inspection: true,
        ..course()
    };
    let outcome = interrupted.run(&units, &inspected, 1).unwrap();
    assert!(outcome.interrupted && inspected.row(&units[0]).unwrap().is_none());
    let (_, history) = inspected.checkpoint(&units[0]).load().unwrap().unwrap();
    assert_eq!(history.loss.len(), 20);
    course().run(&units, &inspected, 1).unwrap();
    assert_eq!(rows(&units, &inspected), rows(&units, &whole));
}

#[test]
fn weights_that_are_kept_until_they_are_looked_at_go_with_the_row() {
    let (_directory, store) = store();
    let units = units(2);
    let toy = |interrupt_at_start| Toy {
        interrupt_at_start,
        ..Toy::default()
    };
    let is_kept = |unit: &Unit| [LOOK, "v", "r"].map(|kind| store.weights(unit, kind).exists());
    toy(Some(0)).run(&units[..1], &store, 1).unwrap();
    assert_eq!(is_kept(&units[0]), [true, false, false]);
    toy(None).run(&units, &store, 1).unwrap();
    assert_eq!([&units[0], &units[1]].map(is_kept), [[false; 3]; 2]);
    let validated = states().into_iter().fold(0.0, f64::max);
    assert_eq!(rows(&units, &store)[0].measures["state"], validated);
    // A run that is killed after it has recorded the row leaves them to the next.
    fs::write(store.weights(&units[0], LOOK), "weights").unwrap();
    assert_eq!(toy(None).run(&units, &store, 1).unwrap().found, 2);
    assert_eq!(is_kept(&units[0]), [false; 3]);
}

#[test]
fn weights_of_a_run_that_nobody_goes_on_with_are_removed() {
    let (_directory, store) = store();
    let units = units(1);
    let toy = |keep, interrupt_at_start| Toy {
        keep: Some(keep),
        interrupt_at_start,
        ..Toy::default()
    };
    let is_kept = || ["first", "v", "r"].map(|kind| store.weights(&units[0], kind).exists());
    toy(Keep::Course, Some(0)).run(&units, &store, 1).unwrap();
    assert_eq!(is_kept(), [true; 3]);
    // Without its checkpoint the unit begins anew, with another program that keeps nothing.
    store.checkpoint(&units[0]).remove().unwrap();
    toy(Keep::Nothing, None).run(&units, &store, 1).unwrap();
    assert_eq!(is_kept(), [false; 3]);
}

/// Error and loss are both as good as ever in epochs 1 and 2, the error once more in epoch 4.
fn stopping() -> Toy {
    Toy {
        rule: NonZeroUsize::new(5).map(|patience| EarlyStopping { patience }),
        ..Toy::default()
    }
}

#[test]
fn a_trial_may_end_early_and_choose_its_epoch() {
    let (_directory, store) = store();
    let units = units(1);
    assert_eq!(stopping().run(&units, &store, 1).unwrap().computed, 1);
    let (row, states) = (&rows(&units, &store)[0], states());
    assert_eq!(row.stopped_after, Some(9));
    assert_eq!((row.v_epoch, row.v_number), (Some(2), Some(states[1])));
    assert_eq!(row.validation, Some(1.0 - states[1]));
    assert_eq!(row.validation_loss, Some((states[1] - 0.8).powi(2)));
    assert_eq!((row.r_epoch, row.r_number), (5, states[4]));
    assert_eq!(row.last, states[8]);
}

#[test]
fn an_interrupted_run_ends_early_where_a_whole_one_does() {
    let units = units(1);
    let (_whole, whole) = store();
    stopping().run(&units, &whole, 1).unwrap();
    let (_parts, parts) = store();
    let mut runs = 0;
    while parts.row(&units[0]).unwrap().is_none() {
        let interrupted = Toy {
            interrupt_at_start: Some(0),
            ..stopping()
        };
        let outcome = interrupted.run(&units, &parts, 1).unwrap();
        runs += 1;
        assert_eq!(outcome.interrupted, runs < 9);
    }
    assert_eq!(runs, 9, "one epoch a run");
    assert_eq!(rows(&units, &parts), rows(&units, &whole));
}

#[test]
fn finished_units_are_not_run_again() {
    let (_directory, store) = store();
    let toy = Toy::default();
    let units = units(5);
    assert_eq!(toy.run(&units[..3], &store, 2).unwrap().computed, 3);
    let outcome = toy.run(&units, &store, 2).unwrap();
    assert_eq!((outcome.computed, outcome.found), (2, 3));
    assert_eq!(toy.started.load(Ordering::Relaxed), 5);
}

#[test]
fn a_damaged_model_file_ends_the_run_and_a_deleted_checkpoint_starts_again() {
    let units = units(1);
    let (_whole, whole) = store();
    Toy::default().run(&units, &whole, 1).unwrap();
    let (_parts, parts) = store();
    let interrupted = Toy {
        interrupt_at_start: Some(0),
        ..Toy::default()
    };
    interrupted.run(&units, &parts, 1).unwrap();
    let (model, _) = parts.checkpoint(&units[0]).load().unwrap().unwrap();
    fs::write(&model, format!("{} 7", 0.5_f64.to_bits())).unwrap();
    let error = Toy::default().run(&units, &parts, 1).unwrap_err();
    assert!(matches!(&error, Error::Checkpoint { path, .. } if *path == model));
    fs::remove_file(&model).unwrap();
    let error = Toy::default().run(&units, &parts, 1).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if *path == model));
    parts.checkpoint(&units[0]).remove().unwrap();
    Toy::default().run(&units, &parts, 1).unwrap();
    assert_eq!(rows(&units, &parts), rows(&units, &whole));
}

#[test]
fn another_commit_goes_on_from_a_checkpoint_and_another_description_does_not() {
    let units = units(1);
    let (_directory, store) = store();
    let interrupted = Toy {
        interrupt_at_start: Some(0),
        ..Toy::default()
    };
    interrupted.run(&units, &store, 1).unwrap();
    let versions = bochner_report::Versions {
        suite: 2,
        results: 1,
        defaults: String::new(),
        data: None,
    };
    let other = Unit {
        versions: Some(versions),
        ..units[0].clone()
    };
    assert!(store.checkpoint(&units[0]).load().unwrap().is_some());
    assert!(store.checkpoint(&other).load().unwrap().is_none());
}

/// What happens to a file, and what the error says of it.
type Damage<'a> = (&'a dyn Fn(&Path), &'a str);

#[test]
fn a_unit_whose_kept_weights_are_lost_or_of_another_epoch_is_not_recorded() {
    let units = units(2);
    let states = states();
    let best = (0..20).max_by(|&a, &b| states[a].total_cmp(&states[b]));
    assert!(best < Some(19), "what is damaged is not written once more");
    let lose = |path: &Path| fs::remove_file(path).unwrap();
    let exchange = |path: &Path| fs::write(path, format!("{} 3", 0.5_f64.to_bits())).unwrap();
    let damages: [Damage<'_>; 2] = [(&lose, "cannot read"), (&exchange, "of epoch 3")];
    for (damage, reason) in damages {
        let (_directory, store) = store();
        // One epoch in each run, up to the last but one.
        for _ in 0..19 {
            let interrupted = Toy {
                interrupt_at_start: Some(0),
                ..Toy::default()
            };
            interrupted.run(&units[..1], &store, 1).unwrap();
        }
        damage(&store.weights(&units[0], LOOK));
        let outcome = Toy::default().run(&units, &store, 1).unwrap();
        assert_eq!((outcome.computed, outcome.failed.len()), (1, 1));
        let (unit, error) = &outcome.failed[0];
        assert_eq!(unit, &units[0]);
        assert!(matches!(error, Error::KeptWeights { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(store.row(&units[0]).unwrap().is_none());
    }
}

#[test]
fn a_unit_that_diverges_does_not_stop_the_others() {
    let units = units(3);
    let (_directory, store) = store();
    let toy = Toy {
        breaks: Some(1),
        ..Toy::default()
    };
    let outcome = toy.run(&units, &store, 1).unwrap();
    assert_eq!(outcome.computed, 2);
    assert!(!outcome.interrupted);
    let (unit, error) = &outcome.failed[0];
    assert_eq!(unit, &units[1]);
    assert!(matches!(error, Error::NotFinite { epoch: 2, .. }));
    assert!(store.row(&units[1]).unwrap().is_none());
}

/// The kernel's own answer for a device without space, in the middle of a run.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_keeps_what_is_finished() {
    let units = units(4);
    let (directory, store) = store();
    Toy::default().run(&units[..1], &store, 1).unwrap();
    let row = format!("units/regression/{}.json", units[2].id());
    let unfinished = beside(&directory.path().join(row));
    std::os::unix::fs::symlink("/dev/full", &unfinished).unwrap();
    let error = Toy::default().run(&units, &store, 1).unwrap_err();
    let Error::Io { path, source, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(source.kind(), ErrorKind::StorageFull);
    assert!(path.to_string_lossy().contains(&units[2].id()));
    assert!(store.row(&units[1]).unwrap().is_some());
    assert!(store.row(&units[2]).unwrap().is_none());

    let outcome = Toy::default().run(&units, &store, 1).unwrap();
    assert_eq!((outcome.computed, outcome.found), (2, 2));
}
