//! Rows and artefacts, and the runs that they pair.

use crate::unit::unit;
use bochner_report::row::{Curve, Row, Shades};
use bochner_report::suite::Direction;
use bochner_report::{Number, Results, Settings, Unit};
use std::collections::BTreeMap;

/// Points that a stored curve has at most.
const CURVE_POINTS: usize = 200;

/// Rows and columns that a stored picture of weights has at most.
const PICTURE_SIDE: usize = 144;

pub(crate) fn row() -> Row {
    Row {
        id: unit().id(),
        table: "Table 4".into(),
        unit: unit(),
        parameters: 10,
        train_rows: 100,
        validation_rows: 20,
        test_rows: 24,
        r_number: 0.1 + 0.2,
        r_epoch: 3,
        v_number: Some(1.0 / 3.0),
        v_epoch: Some(2),
        validation: Some(0.3),
        validation_loss: None,
        stopped_after: None,
        last: 0.7,
        first_mse: 1.0,
        last_mse: 0.25,
        measures: BTreeMap::new(),
        seconds: 1.5,
        code_version: "0.1.0".into(),
    }
}

#[test]
fn what_a_suite_does_not_have_is_not_written_down() {
    let bare = serde_json::to_string(&row()).unwrap();
    assert!(!bare.contains("validation_loss") && !bare.contains("stopped_after"));
    let stopped = Row {
        validation_loss: Some(0.75),
        stopped_after: Some(140),
        ..row()
    };
    for row in [row(), stopped] {
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }
}

#[test]
fn a_curve_keeps_its_ends_and_at_most_200_points() {
    for n in [0, 1, 199, 200, 201, 1000] {
        let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let curve = Curve::thinned(&values);
        assert_eq!(curve.epochs.len(), n.min(CURVE_POINTS));
        assert_eq!(curve.epochs.last().copied().unwrap_or(0), n);
        assert!(curve.epochs.windows(2).all(|w| w[0] < w[1]));
        assert!(
            curve
                .epochs
                .iter()
                .zip(&curve.values)
                .all(|(&e, &v)| v == (e - 1) as f64)
        );
    }
}

/// Averages of two columns each, of which the last is the largest.
#[test]
fn shrinking_keeps_the_mean() {
    let n = 2 * PICTURE_SIDE;
    let matrix: Vec<f32> = (0..n * n).map(|i| (i % n) as f32).collect();
    let shades = Shades::draw(&matrix, n);
    assert_eq!((shades.side, shades.largest), (PICTURE_SIDE, 286.5));
    let level = |column: usize| ((2.0 * column as f32 + 0.5) / 286.5 * 255.0).round() as u8;
    let levels = (0..PICTURE_SIDE).map(level).collect::<Vec<u8>>();
    assert_eq!(shades.levels().unwrap()[..PICTURE_SIDE], levels);
}

#[test]
fn shades_are_relative_to_the_largest_weight() {
    let shades = Shades::draw(&[0.0, 0.5, 1.0, 0.25], 2);
    assert_eq!(shades.largest, 1.0);
    assert_eq!(shades.levels().unwrap(), [0, 128, 255, 64]);
    assert_eq!(Shades::draw(&[0.0; 4], 2).levels().unwrap(), [0; 4]);
    let damaged = Shades {
        levels: "AA".into(),
        ..shades
    };
    assert!(damaged.levels().is_none());
}

/// A unit with this split and seed, and its row.
fn run(split: usize, seed: u64, value: f64) -> (Unit, Row) {
    let mut row = row();
    (row.unit.split, row.unit.seed) = (split, seed);
    row.v_number = Some(value);
    (row.unit.clone(), row)
}

#[test]
fn runs_are_paired_by_split_and_seed_and_refused_without_a_partner() {
    let own: Vec<_> = [3, 1, 2].map(|split| run(split, 7, split as f64)).to_vec();
    let mut results = Results::new(Direction::Smaller);
    let units: Vec<Unit> = own.iter().map(|run| run.0.clone()).collect();
    let others: Vec<Unit> = (0..4)
        .map(|split| Unit {
            variant: "other".into(),
            ..run(split, 7, 0.0).0
        })
        .collect();
    results.extend(own.into_iter().map(|run| run.1));
    results.extend(others.iter().map(|unit| Row {
        id: unit.id(),
        unit: unit.clone(),
        v_number: Some(10.0 * unit.split as f64),
        ..row()
    }));
    let paired = results.compare(&units, &others, Number::V).unwrap();
    // -27, -9 and -18.
    assert_eq!((paired.n, paired.mean), (3, -18.0));
    let refused = results.pairs(&units, &others[..2].to_vec()).unwrap_err();
    assert!(refused.contains("split 3"), "{refused}");
    assert!(
        results
            .compare(&units, &others[..2].to_vec(), Number::V)
            .is_none()
    );
}

#[test]
fn a_row_that_says_less_answers_a_unit_and_one_that_says_otherwise_does_not() {
    let row = row();
    let mut results = Results::new(Direction::Smaller);
    results.extend([row.clone()]);
    let with = |name: &str, value: u64| {
        let mut settings: serde_json::Value = row.unit.settings.read().unwrap();
        settings[name] = value.into();
        let settings = Settings::of(&settings);
        Unit {
            settings,
            ..row.unit.clone()
        }
    };
    assert_eq!(results.row(&with("beam", 5)), Some(&row));
    assert_eq!(results.row(&with("epochs", 5)), None);
}
