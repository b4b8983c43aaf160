//! A unit and its row, for tests.

use bochner_datasets::Protocol;
use bochner_report::row::Row;
use bochner_report::{Scale, Settings, Unit};
use serde_json::json;
use std::collections::BTreeMap;

/// A unit of Table 4.
pub(crate) fn unit() -> Unit {
    Unit {
        suite: "regression".into(),
        scale: Scale::Smoke,
        set: "Passenger".into(),
        variant: "Transformer (8 heads)".into(),
        protocol: Protocol::P10,
        split: 3,
        seed: 0,
        settings: Settings::of(&json!({"p": 2.0, "epochs": 60, "every": 1})),
        versions: None,
    }
}

/// A row with this V-number, and an R-number 0.01 below.
pub(crate) fn row(unit: &Unit, v: f64) -> Row {
    Row {
        id: unit.id(),
        table: "Table 0".into(),
        unit: unit.clone(),
        parameters: 1,
        train_rows: 80,
        validation_rows: 10,
        test_rows: 10,
        r_number: v - 0.01,
        r_epoch: 1,
        v_number: Some(v),
        v_epoch: Some(1),
        validation: Some(v),
        validation_loss: None,
        stopped_after: None,
        last: v,
        first_mse: 1.0,
        last_mse: 0.1,
        measures: BTreeMap::new(),
        seconds: 1.0,
        code_version: "test".into(),
    }
}
