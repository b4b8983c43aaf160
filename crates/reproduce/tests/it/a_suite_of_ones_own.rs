//! A suite outside of the crate: the squared exponential kernel against the softmax, on a table of the suite's own.

use bochner_attention::Preset;
use bochner_datasets::table::parse;
use bochner_datasets::{MinMax, Policy, Protocol, Split, TableConfig, deal};
use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::{Seed, fingerprint};
use bochner_report::check::{Check, falls_below};
use bochner_report::claim::{Claim, Hypothesis};
use bochner_report::plan::Arm;
use bochner_report::sections::{Column, OWN, Section, comparisons};
use bochner_report::suite::{At, Card, Model, Set};
use bochner_report::{Scale, Unit};
use bochner_reproduce::mechanisms::{TRANSFORMER, mechanism};
use bochner_reproduce::suite::Source;
use bochner_reproduce::suites::Entry;
use bochner_reproduce::trial::model::{AnyError, Training};
use bochner_reproduce::trial::{Evaluation, read_settings, sizes, split_of};
use bochner_reproduce::{
    Config, Error, Reproduction, Suite, Trial, report, report_suites, reproduce_suites,
};
use ndarray::{Array1, Array2};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::AtomicBool;

static WAVES: Suite = Suite::new(
    &CARD,
    |_, _, _| Ok(Box::new(Table::read()?)),
    &[Check::Rows(
        "the training error falls",
        |_| true,
        |row| falls_below(row, 1.0),
    )],
);

const RBF: &str = "RBF-only";

static CARD: Card = Card {
    name: "waves",
    table: "Waves",
    title: "Waves, regression on a drawn table",
    sets: &[Set::new("waves", "Waves", 120, Scale::Smoke)],
    models: &[
        Model::new(TRANSFORMER, &[]),
        Model::new(RBF, &[TRANSFORMER]).judged(),
    ],
    baseline: TRANSFORMER,
    against: "the Transformer",
    opening: "Root mean square errors of the target scaled to [-1, 1]; smaller is better.",
    scopes: [
        "Scale smoke tests the machinery on two folds.",
        "Scale desk has ten folds and 200 epochs.",
        "Scale paper is scale desk with 500 epochs.",
    ],
    smoke: "Two folds, 20 epochs.",
    decided: &["The rows are drawn: y = sin(4 x1) + x2 x3 and noise."],
    arms,
    claims: || {
        let better = Hypothesis::better(RBF, TRANSFORMER, "Waves");
        let text = "RBF-only has smaller errors than the Transformer";
        vec![Claim::all("W1", text, vec![better])]
    },
    tables: &[
        Section::Numbers("Errors", "", &[OWN, &[("n", Column::N)]]),
        Section::Written(comparisons),
    ],
    ..Card::EMPTY
};

/// The settings of a unit: all that decides its result.
#[derive(Serialize, Deserialize)]
struct Settings {
    model: RegressorConfig,
    training: TrainingConfig,
    epochs: usize,
    /// The fingerprint of the file, which no manifest pins.
    file: u64,
}

fn arms(at: &At<'_>) -> Vec<Arm> {
    let (splits, epochs) = at.of_scale([(2, 20), (10, 200), (10, 500)]);
    let arm = |model| {
        let attention = mechanism(model, Preset::Paper, None, 16);
        let settings = Settings {
            model: RegressorConfig::new(3, attention),
            training: TrainingConfig::regression(),
            epochs,
            file: fingerprint(csv().into_bytes()),
        };
        let folds = (0..splits).map(|fold| (fold, fold as u64));
        Arm::new(at, model, Protocol::P10, folds, &settings)
    };
    vec![arm(TRANSFORMER), arm(RBF)]
}

/// The file, as the `include_str!` of a suite would hold it.
fn csv() -> String {
    let mut stream = Seed::new(7).stream("waves");
    let mut line = || {
        let [a, b, c, noise] = [(); 4].map(|()| stream.gen_range(-1.0..1.0_f64));
        let y = (4.0 * a).sin() + b * c + 0.1 * noise;
        format!("{a:.5},{b:.5},{c:.5},{y:.5}\n")
    };
    let lines: String = (0..120).map(|_| line()).collect();
    format!("x1,x2,x3,y\n{lines}")
}

struct Table {
    inputs: Array2<f32>,
    target: Array1<f32>,
    splits: Vec<Split>,
}

impl Table {
    fn read() -> Result<Self, Error> {
        let read = parse("waves.csv", csv().as_bytes(), &TableConfig::default())?.table;
        let table = MinMax::fit(&read).transform(&read)?;
        Ok(Self {
            inputs: Array2::from_shape_fn((table.rows(), 3), |(i, j)| table.row(i)[j] as f32),
            target: table.column(3).map(|y| y as f32).collect(),
            splits: Split::cross_validation(&deal(&vec![0; table.rows()])),
        })
    }
}

impl Source for Table {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let settings: Settings = read_settings(unit)?;
        let split = split_of(unit, &self.splits)?;
        let (inputs, target) = (self.inputs.clone(), self.target.clone());
        let task = Task::new(inputs, target, split.train.clone())?;
        let seed = Seed::new(unit.seed);
        Ok(Box::new(Errors {
            trainer: Trainer::new(&settings.model, &settings.training, task, seed)?,
            table: self,
            split,
        }))
    }
}

/// A model, and its errors on the parts of a split.
struct Errors<'a> {
    trainer: Trainer,
    table: &'a Table,
    split: &'a Split,
}

impl Trial for Errors<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        sizes(self.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let predicted = self.trainer.predict()?;
        let error = |rows: &[usize]| {
            let square = |&i: &usize| f64::from(predicted[i] - self.table.target[i]).powi(2);
            (rows.iter().map(square).sum::<f64>() / rows.len() as f64).sqrt()
        };
        Ok(Evaluation {
            validation: Some(error(&self.split.validation)),
            test: error(&self.split.test),
            ..Evaluation::default()
        })
    }
}

const SUITES: &[Entry] = &[Entry::Trained(&WAVES)];

fn config(out: &Path, epochs: Option<usize>) -> Config {
    Config {
        downloads: Policy::Offline,
        out: out.into(),
        epochs,
        ..Config::default()
    }
}

fn run(out: &Path, epochs: Option<usize>) -> Reproduction {
    reproduce_suites(SUITES, &config(out, epochs), &AtomicBool::new(false)).unwrap()
}

#[test]
fn it_is_checked_reported_and_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let done = run(directory.path(), None);
    assert!(done.is_good(), "{}", done.summary());
    let page = directory.path().join("smoke/waves/report.md");
    let page = std::fs::read_to_string(page).unwrap();
    for text in [
        "| the training error falls | passed | 4 units |",
        "| W1 |",
        "| Waves | RBF-only |",
    ] {
        assert!(page.contains(text), "{text} in {page}");
    }
    let again = |epochs| {
        let outcome = run(directory.path(), epochs).runs.remove(0).outcome;
        (outcome.computed, outcome.found)
    };
    // Two units of each model.
    assert_eq!([again(None), again(Some(1))], [(0, 4), (4, 0)]);
    let rows = directory.path().join("smoke/waves");
    report_suites(SUITES, &rows, &[], false).unwrap();
    let error = report(&rows, &[], false).unwrap_err().to_string();
    assert!(error.contains("holds rows of \"waves\""), "{error}");
}

#[test]
fn what_it_does_not_have_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), None);
    let unknown = || vec!["ripples".to_owned()];
    for (config, option) in [
        (
            Config {
                sets: unknown(),
                ..config.clone()
            },
            "--set",
        ),
        (
            Config {
                models: unknown(),
                ..config.clone()
            },
            "--model",
        ),
        (
            Config {
                epochs: Some(0),
                ..config.clone()
            },
            "--epochs",
        ),
    ] {
        let error = reproduce_suites(SUITES, &config, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{option} was given as")),
            "{text}"
        );
    }
}
