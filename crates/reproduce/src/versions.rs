//! The versions that a unit's description holds besides its settings.

use bochner_datasets::manifest;
use bochner_models::RESULTS;
use bochner_models::encoder::EncoderLayerConfig;
use bochner_models::training::TrainingConfig;
use bochner_numerics::fingerprint;
use bochner_ops::AdamConfig;
use bochner_report::Versions;
use bochner_report::plan::Plan;
use bochner_report::suite::{Card, Set};
use bochner_text::{BeamConfig, BleuConfig, SubwordConfig, VocabularyConfig};
use std::fmt::Debug;

/// The versions of the units of a set.
fn versions(card: &Card, set: &Set) -> Versions {
    let files = manifest::entries().iter();
    let pins = files.filter(|entry| entry.set == set.name);
    let pins: Vec<String> = pins
        .map(|file| format!("{} {}", file.file, file.pin))
        .collect();
    Versions {
        suite: card.version,
        results: RESULTS,
        defaults: digits(&(
            TrainingConfig::default(),
            EncoderLayerConfig::default(),
            AdamConfig::default(),
            BeamConfig::default(),
            BleuConfig::default(),
            SubwordConfig::default(),
            VocabularyConfig::default(),
        )),
        data: (!pins.is_empty()).then(|| digits(&pins)),
    }
}

fn digits(value: &impl Debug) -> String {
    format!("{:016x}", fingerprint(format!("{value:?}").into_bytes()))
}

/// Writes the versions into the units of a plan.
pub(crate) fn stamp(card: &Card, plan: &mut Plan) {
    for unit in plan.arms.iter_mut().flat_map(|arm| &mut arm.units) {
        unit.versions = card.set(&unit.set).map(|set| versions(card, set));
    }
}
