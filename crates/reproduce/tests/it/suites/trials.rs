//! Properties of the trial of every model.

use super::*;
use bochner_datasets::{DataStore, Policy};
use bochner_report::Settings;
use bochner_reproduce::trial::sentences::BayesSettings;
use serde_json::json;

/// A resumed trial goes on with the same bits; settings and checkpoints of another unit are refused.
#[test]
fn trials_go_on_from_their_own_checkpoints_alone() {
    let files = DataStore::new(Policy::Offline);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checkpoint");
    let mut models = 0;
    for suite in trained() {
        let (card, plan) = (suite.card, plan(suite, Scale::Smoke));
        for set in plan.sets() {
            let arms = plan.of_set(set);
            let Ok(source) = (suite.load)(card.set(set).unwrap(), &arms, &files) else {
                continue;
            };
            let is_judged = |arm: &&Arm| card.model(arm.model).is_some_and(|model| model.judged);
            let judged = arms.iter().rfind(is_judged);
            let looked_at = [card.baseline, BayesSettings::MODEL, "GP (RBF)", "GP (SM)"];
            let is_looked_at = |arm: &&Arm| looked_at.contains(&arm.model) || judged == Some(*arm);
            let mut before: Option<Unit> = None;
            for arm in arms.iter().filter(is_looked_at) {
                let unit = &arm.units[0];
                let start = || source.start(unit).unwrap();
                if let Some(other) = &before {
                    let is_refused = start().model_mut().resume(&path).is_err();
                    assert!(is_refused, "{} from {}", unit.id(), other.id());
                }
                let (mut whole, mut resumed) = (start(), start());
                whole.model_mut().epoch().unwrap();
                whole.model().save(&path).unwrap();
                resumed.model_mut().resume(&path).unwrap();
                assert_eq!(resumed.model().epochs_done(), 1);
                // The second of these epochs depends on all of the optimiser's state.
                for _ in 0..2 {
                    assert_eq!(
                        whole.model_mut().epoch().unwrap(),
                        resumed.model_mut().epoch().unwrap()
                    );
                }
                assert_eq!(whole.model().parameters(), resumed.model().parameters());
                let foreign = Unit {
                    settings: Settings::of(&json!({"epochs": 1})),
                    ..unit.clone()
                };
                let error = source.start(&foreign).err().unwrap().to_string();
                assert!(error.contains("settings"), "{error}");
                models += 1;
                before = Some(unit.clone());
            }
        }
    }
    assert!(models > 15, "{models}");
}
