//! A suite of models small enough to be checked by hand, which can be interrupted and can break.

use crate::smoke::lines;
use bochner_datasets::{Policy, Protocol};
use bochner_models::training::EpochReport;
use bochner_report::Scale;
use bochner_report::Unit;
use bochner_report::plan::Arm;
use bochner_report::row::Row;
use bochner_report::suite::{Card, Model, Set};
use bochner_reproduce::runner::Outcome;
use bochner_reproduce::suite::Source;
use bochner_reproduce::suites::Entry;
use bochner_reproduce::trial::model::{AnyError, Training};
use bochner_reproduce::trial::{Evaluation, Finals, Findings, Moment};
use bochner_reproduce::{Config, Error, Suite, SuiteRun, Trial, reproduce_suites};
use serde_json::json;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Epochs of each unit.
pub(crate) const EPOCHS: usize = 20;

/// A set whose files are pinned, with one unit, and a set that is drawn, with three.
pub(crate) const ONE: &str = "Housing";
pub(crate) const THREE: &str = "drawn";

pub(crate) const COURSE: &[Moment] = &[Moment::First, Moment::OfR, Moment::OfV];

static SUITE: Suite = Suite::new(&CARD, |_, _, _| Ok(Box::new(Logistics)), &[]);

static CARD: Card = Card {
    name: "toy",
    sets: &[
        Set::new("housing", ONE, 1, Scale::Smoke),
        Set::new("drawn", THREE, 3, Scale::Smoke),
    ],
    models: &[Model::new("logistic", &[])],
    baseline: "logistic",
    arms: |at| {
        let runs = (0..at.set.size).map(|split| (split, 0));
        let settings = json!({"epochs": EPOCHS});
        vec![Arm::new(at, "logistic", Protocol::P10, runs, &settings)]
    },
    ..Card::EMPTY
};

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct Toy {
    pub(crate) config: Config,
    /// Whether units are interrupted after their first epoch.
    pub(crate) is_hasty: bool,
    /// The split whose model breaks.
    pub(crate) broken: Option<usize>,
    pub(crate) patience: Option<NonZeroUsize>,
    pub(crate) inspected: &'static [Moment],
    /// Whether the inspection of the V-epoch is interrupted.
    pub(crate) interrupts_inspection: bool,
}

/// One run at a time has its options here.
static TURN: Mutex<()> = Mutex::new(());
static RUN: Mutex<Option<Toy>> = Mutex::new(None);
static INTERRUPT: AtomicBool = AtomicBool::new(false);

impl Toy {
    /// A run of a set in a directory.
    pub(crate) fn new(set: &str, out: &Path) -> Self {
        let config = Config {
            sets: vec![set.to_lowercase()],
            downloads: Policy::Offline,
            out: out.into(),
            threads: 2,
            checkpoint_every: Duration::ZERO,
            ..Config::default()
        };
        Self {
            config,
            is_hasty: false,
            broken: None,
            patience: None,
            inspected: &[],
            interrupts_inspection: false,
        }
    }

    pub(crate) fn run(&self) -> Result<SuiteRun, Error> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        *RUN.lock().unwrap() = Some(self.clone());
        INTERRUPT.store(false, Ordering::Relaxed);
        let done = reproduce_suites(&[Entry::Trained(&SUITE)], &self.config, &INTERRUPT);
        done.map(|mut done| done.runs.remove(0))
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.run().unwrap().outcome
    }

    /// Runs one epoch, or the inspections.
    pub(crate) fn hurry(&self) -> Outcome {
        let toy = Self {
            is_hasty: true,
            ..self.clone()
        };
        toy.outcome()
    }

    /// The rows of the finished units, without the time they took.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let rows: Vec<Row> = lines(&self.config.out.join("smoke/toy/rows.jsonl"));
        let timeless = |row| Row {
            seconds: 0.0,
            ..row
        };
        rows.into_iter().map(timeless).collect()
    }
}

struct Logistics;

impl Source for Logistics {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let toy = RUN.lock().unwrap().clone().ok_or("no run")?;
        if toy.is_hasty {
            INTERRUPT.store(true, Ordering::Relaxed);
        }
        Ok(Box::new(Logistic {
            state: 0.1 + 0.01 * unit.split as f64,
            epochs: 0,
            is_broken: toy.broken == Some(unit.split),
            toy,
        }))
    }
}

/// `state <- 3.7 state (1 - state)`: chaotic, so that one lost bit shows.
struct Logistic {
    state: f64,
    epochs: usize,
    is_broken: bool,
    toy: Toy,
}

/// The file of a model.
pub(crate) fn written(state: f64, epochs: usize) -> String {
    format!("{} {epochs}", state.to_bits())
}

impl Training for Logistic {
    fn epoch(&mut self) -> Result<EpochReport, AnyError> {
        self.state *= 3.7 * (1.0 - self.state);
        self.epochs += 1;
        let is_nan = self.is_broken && self.epochs > 1;
        Ok(EpochReport {
            loss: if is_nan { f64::NAN } else { self.state },
            squared_error: self.state * self.state,
            ..EpochReport::default()
        })
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn parameters(&self) -> usize {
        1
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
}

impl Trial for Logistic {
    fn model(&self) -> &dyn Training {
        self
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        self
    }

    fn rows(&self) -> [usize; 3] {
        [8, 1, 1]
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        Ok(Evaluation {
            validation: Some(1.0 - self.state),
            validation_loss: self.toy.patience.map(|_| (self.state - 0.8).powi(2)),
            test: self.state,
            others: vec![("other", 2.0 * self.state)],
        })
    }

    fn patience(&self) -> Option<NonZeroUsize> {
        self.toy.patience
    }

    fn inspected(&self) -> &'static [Moment] {
        self.toy.inspected
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        if self.toy.interrupts_inspection && moment == Moment::OfV {
            INTERRUPT.store(true, Ordering::Relaxed);
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
