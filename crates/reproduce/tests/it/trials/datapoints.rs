//! Attention between datapoints.

use super::of_smoke;
use bochner_datasets::{Protocol, RegressionData, RegressionSet, Split, Table};
use bochner_models::datapoints::{Between, Column, NptConfig};
use bochner_models::training::TrainingConfig;
use bochner_report::{Scale, Settings, Unit};
use bochner_reproduce::suite::Source;
use bochner_reproduce::suites::DATAPOINTS;
use bochner_reproduce::trial::Moment;
use bochner_reproduce::trial::datapoints::{
    AGREES, CORRUPTED, FOLLOWED, Learnt, NptSettings, STILL,
};

/// Twelve rows with these targets, the first eight of which are known.
fn data(target: impl Fn(usize) -> f64) -> RegressionData {
    let inputs = (0..12 * 2).map(|i| ((i * 37) % 11) as f64 / 5.0 - 1.0);
    RegressionData {
        set: RegressionSet::Housing,
        inputs: Table::new(inputs.collect(), 2).unwrap(),
        target: (0..12).map(target).collect(),
        splits: vec![Split {
            train: (0..8).collect(),
            validation: vec![8, 9],
            test: vec![10],
        }],
        provenance: Vec::new(),
    }
}

/// Losses of two epochs, and the errors on validation and test after them.
fn trained(data: &RegressionData) -> ([f64; 2], [f64; 2]) {
    let settings = NptSettings {
        model: NptConfig {
            columns: vec![Column::Number; 3],
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
        learnt: Learnt::Rows {
            target_rate: 0.5,
            feature_rate: 0.3,
        },
    };
    let unit = Unit {
        suite: "datapoints".into(),
        scale: Scale::Smoke,
        set: "Housing".into(),
        variant: "NPT".into(),
        protocol: Protocol::P10,
        split: 0,
        seed: 1,
        settings: Settings::of(&settings),
        versions: None,
    };
    let mut trial = data.start(&unit).unwrap();
    let losses = [(); 2].map(|()| trial.model_mut().epoch().unwrap().loss);
    let seen = trial.evaluate().unwrap();
    (losses, [seen.validation.unwrap(), seen.test])
}

/// One prediction lies between two targets of the test row: its distances from both add up, unless a target leaks.
#[test]
fn targets_that_are_held_out_change_no_prediction() {
    let with = |held_out: f64| data(|i| if i < 8 { i as f64 / 8.0 } else { held_out });
    let [(losses, [_, above]), (same, [_, below])] = [50.0, -50.0].map(|held| trained(&with(held)));
    assert_eq!(losses, same);
    assert!((above + below - 100.0).abs() < 1e-9, "{above} {below}");
}

/// Four times the targets and two more are the same numbers once they are standardised.
#[test]
fn errors_are_in_the_unit_of_the_targets() {
    let target = |i: usize| i as f64 / 8.0;
    let [(losses, one), (same, other)] = [
        trained(&data(target)),
        trained(&data(|i| 4.0 * target(i) + 2.0)),
    ];
    assert_eq!(losses, same);
    for (one, other) in one.into_iter().zip(other) {
        assert!((4.0 * one - other).abs() < 1e-9, "{one} {other}");
    }
}

#[test]
fn without_attention_between_rows_nothing_follows_moves_or_is_corrupted() {
    let measured = |model| {
        let (source, unit) = of_smoke(&DATAPOINTS, "look-up", model);
        let mut trial = source.start(&unit).unwrap();
        for _ in 0..3 {
            trial.model_mut().epoch().unwrap();
        }
        let found = trial.findings(Moment::Last, &|| false).unwrap().measures;
        let error = trial.evaluate().unwrap().test;
        (
            error,
            [FOLLOWED, AGREES, STILL, CORRUPTED].map(|name| found[name]),
        )
    };
    let (error, per_row) = measured("per row");
    assert_eq!(per_row, [0.0, 0.0, 1.0, error]);
    let (error, [followed, agrees, still, corrupted]) = measured("NPT");
    assert!(followed != 0.0 && still < 1.0 && corrupted != error);
    assert!((agrees - (1.0 - (1.0 - followed).abs())).abs() < 1e-12);
}
