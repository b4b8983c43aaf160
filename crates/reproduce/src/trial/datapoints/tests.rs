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

/// Losses and predictions of all rows after two epochs.
fn trained(data: &RegressionData) -> (Vec<f64>, Vec<f32>) {
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
    let (table, _) = standardised(data, &data.splits[0].train);
    let task = rows::Task::of(&unit, data).unwrap();
    let mut trial = start(task, &settings()).unwrap();
    let losses = (0..2).map(|_| trial.epoch().unwrap().loss).collect();
    let seen = trial.evaluate().unwrap();
    assert!(seen.test.is_finite() && seen.validation.is_some());
    (losses, table.values().iter().copied().collect())
}

#[test]
fn targets_that_are_held_out_change_nothing() {
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
    assert_eq!(trained(&data(0.3)), trained(&data(-7.0)));
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
