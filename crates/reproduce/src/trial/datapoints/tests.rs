use super::*;
use bochner_datasets::{Protocol, RegressionSet, Split, Table as Inputs};
use bochner_models::datapoints::Between;
use bochner_report::{Scale, Settings};
use ndarray::ArrayView1;

fn settings(inputs: usize, learnt: Learnt) -> NptSettings {
    NptSettings {
        model: NptConfig {
            columns: vec![Column::Number; inputs + 1],
            width: 4,
            heads: 2,
            blocks: vec![Between::Datapoints, Between::Attributes],
            attention: None,
            normalised: Default::default(),
            dropout: 0.1,
            epsilon: 1e-12,
        },
        training: TrainingConfig {
            learning_rate: 1e-2,
            ..TrainingConfig::default()
        },
        epochs: 2,
        learnt,
    }
}

fn of_rows() -> NptSettings {
    let learnt = Learnt::Rows {
        target_rate: 0.5,
        feature_rate: 0.3,
    };
    settings(2, learnt)
}

fn unit(settings: &NptSettings, seed: u64) -> Unit {
    Unit {
        suite: "datapoints".into(),
        scale: Scale::Smoke,
        set: "Housing".into(),
        variant: "NPT".into(),
        protocol: Protocol::P10,
        split: 0,
        seed,
        settings: Settings::of(settings),
        versions: None,
    }
}

/// Twelve rows with these targets, the first eight of which are known.
fn data(target: impl Fn(usize) -> f64) -> RegressionData {
    let inputs = (0..12 * 2).map(|i| ((i * 37) % 11) as f64 / 5.0 - 1.0);
    RegressionData {
        set: RegressionSet::Housing,
        inputs: Inputs::new(inputs.collect(), 2).unwrap(),
        target: (0..12).map(target).collect(),
        splits: vec![Split {
            train: (0..8).collect(),
            validation: vec![8, 9],
            test: vec![10, 11],
        }],
        provenance: Vec::new(),
    }
}

/// The targets of a table that are known when it is predicted from.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    /// The targets of the training part are known.
    OfTraining,
    /// All targets are known: this is the planted leak.
    All,
}

fn started(data: &RegressionData) -> ModelTrial<HiddenTargets<'_>> {
    let unit = unit(&of_rows(), 1);
    let task = rows::Task::new(&unit, data).unwrap();
    hidden_targets(&unit, task, &of_rows()).unwrap()
}

/// Losses of two epochs, and the predictions of all rows after them.
fn trained(data: &RegressionData, known: Known) -> [Vec<f64>; 2] {
    let mut trial = started(data);
    let losses = (0..2).map(|_| trial.epoch().unwrap().loss).collect();
    if known == Known::All {
        let [mean, deviation] = trial.probe.scale;
        let mut values = trial.probe.table.values().to_owned();
        let targets = values.column_mut(2).into_iter();
        for (value, target) in targets.zip(&data.target) {
            *value = ((target - mean) / deviation) as f32;
        }
        let (columns, all) = (trial.probe.table.columns().to_vec(), values.mapv(|_| true));
        trial.probe.table = Table::new(columns, values, all).unwrap();
    }
    let seen = trial.evaluate().unwrap();
    assert!(seen.test.is_finite() && seen.validation.is_some());
    [losses, trial.probe.predictions(&trial.model).unwrap()]
}

#[test]
fn targets_that_are_held_out_change_no_prediction() {
    let with = |held_out: f64| data(|i| if i < 8 { i as f64 / 8.0 } else { held_out });
    let [one, other] = [0.3, -7.0].map(with);
    let hidden = [&one, &other].map(|data| trained(data, Known::OfTraining));
    assert_eq!(hidden[0], hidden[1]);
    assert_eq!(hidden[0][1].len(), 12);
    let leaked = [&one, &other].map(|data| trained(data, Known::All));
    let apart = |row: usize| (leaked[0][1][row] - leaked[1][1][row]).abs();
    assert!((8..12).all(|row| apart(row) > 1e-4), "{leaked:?}");
}

/// Four times the targets and two more are the same numbers once they are standardised.
#[test]
fn predictions_and_errors_are_in_the_unit_of_the_targets() {
    let target = |i: usize| i as f64 / 8.0;
    let both = [data(target), data(|i| 4.0 * target(i) + 2.0)];
    let predicted = both.each_ref().map(|data| {
        let mut trial = started(data);
        trial.epoch().unwrap();
        let predicted = trial.probe.predictions(&trial.model).unwrap();
        let seen = trial.evaluate().unwrap();
        let root = |rows: [usize; 2]| {
            let squares = rows.map(|i| (predicted[i] - data.target[i]).powi(2));
            (squares.iter().sum::<f64>() / 2.0).sqrt()
        };
        assert!((seen.validation.unwrap() - root([8, 9])).abs() < 1e-12);
        assert!((seen.test - root([10, 11])).abs() < 1e-12);
        predicted
    });
    for (one, other) in predicted[0].iter().zip(&predicted[1]) {
        assert!((4.0 * one + 2.0 - other).abs() < 1e-9, "{one} {other}");
    }
}

const COPIES: Copies = Copies {
    tables: 16,
    pairs: 5,
    features: 3,
    added: 1.0,
};

#[test]
fn a_model_that_looks_targets_up_has_no_error_follows_shifts_and_fails_without_copies() {
    let probe = LookUp {
        copies: COPIES,
        seed: Seed::new(1),
    };
    for share in [1.0, 0.5] {
        // The target of the visible copy, or a part of it; zero without a copy.
        let predict = |values: Array2<f32>| -> Result<Vec<f32>, AnyError> {
            let target = |row: ArrayView1<'_, f32>| {
                let visible = values.outer_iter().step_by(2);
                let is_copy =
                    |shown: &ArrayView1<'_, f32>| shown.slice(s![..3]) == row.slice(s![..3]);
                let targets = visible
                    .filter(is_copy)
                    .map(|shown| share * (shown[3] + 1.0));
                targets.sum()
            };
            Ok(values.outer_iter().map(target).collect())
        };
        let error = |features| probe.error(&predict, "test", features).unwrap();
        let without = error(Features::Rotated);
        // Its prediction is then no nearer than the mean.
        assert!(without >= 1.0, "{without}");
        let missing = f64::from(1.0 - share);
        assert!((error(Features::AsDrawn) - missing.powi(2) * without).abs() < 1e-6);
        let [followed, still] = probe.intervention(&predict).unwrap();
        assert!((followed - f64::from(share)).abs() < 1e-6 && still == 1.0);
        assert!((agreement(2.0 - followed) - agreement(followed)).abs() < 1e-12);
    }
    assert_ne!(probe.drawn("validation", 0), probe.drawn("test", 0));
}

#[test]
fn tables_hold_copies_until_they_are_rotated() {
    let copies = COPIES;
    let (mut values, wanted) = copies.draw(Seed::new(2));
    let alike = |values: &Array2<f32>, a: usize, b: usize| {
        (0..3).all(|column| values[[a, column]] == values[[b, column]])
    };
    for (pair, (cell, target)) in wanted.iter().enumerate() {
        assert_eq!(*cell, [2 * pair + 1, 3]);
        assert!(alike(&values, 2 * pair, 2 * pair + 1));
        assert_eq!(*target, values[[2 * pair, 3]] + 1.0);
    }
    let table = copies.table(values.clone());
    assert!((0..10).all(|i| table.is_known()[[i, 3]] == (i % 2 == 0)));
    copies.rotate(&mut values);
    assert!((0..5).all(|a| (0..5).all(|b| !alike(&values, 2 * a, 2 * b + 1))));
}
