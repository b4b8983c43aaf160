use super::*;
use crate::{Preset, Scale, Settings};
use bochner_datasets::{Protocol, RegressionSet, Split, Table as Inputs};

fn settings() -> NptSettings {
    NptSettings {
        width: 4,
        heads: 2,
        blocks: vec![Between::Datapoints, Between::Attributes],
        dropout: 0.1,
        epochs: 2,
        learning_rate: 1e-2,
        clip_norm: 1.0,
        learnt: Learnt::Rows {
            target_rate: 0.5,
            feature_rate: 0.3,
        },
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

/// Losses of two epochs, and the predictions of all rows after them.
fn trained(data: &RegressionData, known: Known) -> [Vec<f64>; 2] {
    let unit = Unit {
        suite: "datapoints".into(),
        scale: Scale::Smoke,
        set: "Housing".into(),
        variant: "NPT".into(),
        preset: Preset::Paper,
        protocol: Protocol::P10,
        split: 0,
        seed: 1,
        repeat: 0,
        settings: Settings::of(&settings()),
    };
    let task = rows::Task::of(&unit, data).unwrap();
    let mut trial = regression(task, &settings()).unwrap();
    let losses = (0..2).map(|_| trial.epoch().unwrap().loss).collect();
    if known == Known::All {
        let [mean, deviation] = trial.scale;
        let mut values = trial.table.values().to_owned();
        let targets = values.column_mut(2).into_iter();
        for (value, target) in targets.zip(&data.target) {
            *value = ((target - mean) / deviation) as f32;
        }
        let (columns, all) = (trial.table.columns().to_vec(), values.mapv(|_| true));
        trial.table = Table::new(columns, values, all).unwrap();
    }
    let seen = trial.evaluate().unwrap();
    assert!(seen.test.is_finite() && seen.validation.is_some());
    [losses, trial.predictions().unwrap()]
}

#[test]
fn targets_that_are_held_out_change_no_prediction() {
    let inputs = |rows: usize| {
        let values = (0..rows * 2).map(|i| ((i * 37) % 11) as f64 / 5.0 - 1.0);
        Inputs::new(values.collect(), 2).unwrap()
    };
    let data = |held_out: f64| {
        let target = (0..12).map(|i| if i < 8 { i as f64 / 8.0 } else { held_out });
        RegressionData {
            set: RegressionSet::Housing,
            inputs: inputs(12),
            target: target.collect(),
            splits: vec![Split {
                train: (0..8).collect(),
                validation: vec![8, 9],
                test: vec![10, 11],
            }],
            provenance: Vec::new(),
        }
    };
    let [one, other] = [0.3, -7.0].map(data);
    let hidden = [&one, &other].map(|data| trained(data, Known::OfTraining));
    assert_eq!(hidden[0], hidden[1]);
    assert_eq!(hidden[0][1].len(), 12);
    let leaked = [&one, &other].map(|data| trained(data, Known::All));
    let apart = |row: usize| (leaked[0][1][row] - leaked[1][1][row]).abs();
    assert!((8..12).all(|row| apart(row) > 1e-4), "{leaked:?}");
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

#[test]
fn a_copy_that_moves_too_far_agrees_no_better_than_one_that_stays_behind() {
    assert!(agreement(1.04) >= 0.95 && agreement(0.96) >= 0.95);
    assert!(agreement(1.06) < 0.95 && agreement(0.94) < 0.95 && agreement(3.0) < 0.0);
}
