//! What the plans of all tables have in common: models over splits or seeds, set by set.

use crate::Unit;

/// The units of arms that stand set by set: within a set one of each arm after another, so that an
/// unfinished run has all models on the splits or seeds it has.
pub(super) fn in_turns<A: AsRef<[Unit]>>(arms: &[A]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let set = |arm: &A| arm.as_ref().first().map(|unit| unit.set.clone());
    for arms in arms.chunk_by(|a, b| set(a) == set(b)) {
        let turns = arms.iter().map(|arm| arm.as_ref().len()).max().unwrap_or(0);
        for turn in 0..turns {
            units.extend(
                arms.iter()
                    .filter_map(|arm| arm.as_ref().get(turn).cloned()),
            );
        }
    }
    units
}

/// Sets another number of epochs.
pub(super) fn set_epochs<'a>(units: impl IntoIterator<Item = &'a mut Unit>, epochs: usize) {
    for unit in units {
        unit.settings = unit.settings.clone().with_epochs(epochs);
    }
}
