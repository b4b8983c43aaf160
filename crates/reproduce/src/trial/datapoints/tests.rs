use super::*;
use bochner_datasets::{Protocol, RegressionSet, Split, Table as Inputs};
use bochner_models::datapoints::Between;
use bochner_report::statistics::population_deviation;
use bochner_report::{Preset, Scale, Settings};

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
        preset: Preset::Paper,
        protocol: Protocol::P10,
        split: 0,
        seed,
        repeat: 0,
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

/// Which targets of a table are known when it is predicted from.
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

/// A model of tables of copies before its first epoch.
fn looking_up(seed: u64) -> ModelTrial<LookUp> {
    let copies = Copies {
        tables: 16,
        pairs: 5,
        features: 3,
        added: 1.0,
    };
    look_up(&unit(&settings(3, Learnt::Copies(copies)), seed)).unwrap()
}

#[test]
fn errors_and_moves_are_those_of_hidden_targets_in_the_part_that_they_name() {
    for seed in 0..6 {
        let trial = looking_up(seed);
        let (probe, model) = (&trial.probe, &trial.model);
        let predicted = |values: Array2<f32>| -> Vec<f64> {
            let predicted = probe.predict(model, values).unwrap();
            predicted.into_iter().map(f64::from).collect()
        };
        let error = |part: &str, rotated: bool| {
            let (mut squares, mut truths) = (Vec::new(), Vec::new());
            for number in 0..2 {
                let (mut values, wanted) = probe.drawn(part, number);
                if rotated {
                    probe.copies.rotate(&mut values);
                }
                let predicted = predicted(values);
                for ([row, _], truth) in wanted {
                    squares.push((predicted[row] - f64::from(truth)).powi(2));
                    truths.push(f64::from(truth));
                }
            }
            let mean = squares.iter().sum::<f64>() / squares.len() as f64;
            mean / population_deviation(&truths).unwrap().powi(2)
        };
        let (mut followed, mut moved) = (0.0, 0.0);
        for number in 0..2 {
            let (values, _) = probe.drawn("test", number);
            let mut shifted = values.clone();
            shifted[[0, 3]] += SHIFT;
            let (before, after) = (predicted(values), predicted(shifted));
            let of = |row: usize| (after[row] - before[row]) / f64::from(SHIFT);
            followed += of(1) / 2.0;
            moved += [3, 5, 7, 9].map(|row| of(row).abs()).iter().sum::<f64>() / 8.0;
        }
        let seen = trial.evaluate().unwrap();
        let found = trial.findings(Moment::Last, &|| false).unwrap().measures;
        assert_ne!(error("test", false), error("test", true));
        for (got, want) in [
            (seen.validation.unwrap(), error("validation", false)),
            (seen.test, error("test", false)),
            (found[CORRUPTED], error("test", true)),
            (found[FOLLOWED], followed),
            (found[STILL], 1.0 - moved),
        ] {
            assert!((got - want).abs() < 1e-6, "{seed}: {got} {want}");
        }
    }
}

#[test]
fn tables_hold_copies_until_they_are_rotated() {
    let copies = Copies {
        tables: 8,
        pairs: 5,
        features: 3,
        added: 1.0,
    };
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
