//! The names of units.

use bochner_datasets::Protocol;
use bochner_report::{Scale, Settings, Unit, Versions};
use serde_json::json;

fn settings() -> Settings {
    Settings::of(&json!({"width": 64, "p": 2.0, "epochs": 60, "every": 1}))
}

pub(crate) fn unit() -> Unit {
    Unit {
        suite: "regression".into(),
        scale: Scale::Smoke,
        set: "Passenger".into(),
        variant: "Transformer (8 heads)".into(),
        protocol: Protocol::P10,
        split: 3,
        seed: 0,
        settings: settings(),
        versions: None,
    }
}

#[test]
fn an_id_is_readable_and_safe_as_a_file_name() {
    let id = unit().id();
    assert!(
        id.starts_with("smoke.passenger.transformer-8-heads.p10-03.seed-0."),
        "{id}"
    );
    assert!(
        id.chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
    );
}

#[test]
fn every_field_changes_the_id() {
    let mut ids = vec![unit().id()];
    let versions = Versions {
        suite: 1,
        results: 1,
        defaults: "d".into(),
        data: None,
    };
    for versions in [
        versions.clone(),
        Versions {
            results: 2,
            ..versions.clone()
        },
        Versions {
            data: Some("d".into()),
            ..versions
        },
    ] {
        let versions = Some(versions);
        ids.push(Unit { versions, ..unit() }.id());
    }
    let changes: [fn(&mut Unit); 4] = [
        |u| u.split = 4,
        |u| u.seed = 1,
        |u| u.protocol = Protocol::R90,
        |u| u.protocol = Protocol::Fixed,
    ];
    for change in changes {
        let mut other = unit();
        change(&mut other);
        ids.push(other.id());
    }
    let mut settings = settings();
    settings.set_epochs(61);
    ids.push(Unit { settings, ..unit() }.id());
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn runs_on_one_split_are_told_apart_by_their_seeds() {
    let unit = |seed| Unit {
        protocol: Protocol::Fixed,
        split: 0,
        seed,
        ..unit()
    };
    assert_eq!(unit(7).label(), "Passenger Transformer (8 heads) seed 7");
    let id = unit(7).id();
    assert!(id.contains(".fixed-00.seed-7."), "{id}");
    assert_ne!(id, unit(8).id());
}

#[test]
fn an_older_description_agrees_if_all_that_it_says_is_said_today() {
    let today = json!({"model": {"width": 8, "kind": {"heads": 2}}, "epochs": 3});
    let today = Settings::of(&today);
    for (older, agrees) in [
        (json!({"model": {"width": 8}, "epochs": 3}), true),
        (json!({"model": {"kind": {"heads": 2}}}), true),
        (json!({"model": {"kind": {"heads": 3}}}), false),
        (json!({"model": {"depth": 1}}), false),
        (json!({"width": 8}), false),
    ] {
        assert_eq!(today.agree_with(&Settings::of(&older)), agrees, "{older}");
    }
}
