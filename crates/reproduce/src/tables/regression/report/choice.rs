//! The norm p, chosen by validation instead of taken from the released code.

use super::super::{Arm, title};
use super::Account;
use super::tables::spread;
use crate::Preset;
use crate::report::Document;
use crate::statistics::{mean, population_deviation};
use crate::store::Row;
use crate::tables::Results;
use bochner_datasets::Protocol;
use std::collections::BTreeMap;

/// Nothing unless the plan has candidates.
pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    let arms = account.plan.arms();
    let rows: Vec<Vec<String>> = arms
        .iter()
        .filter(|arm| arm.candidate.is_none())
        .filter_map(|arm| row(account.results, arm, &candidates(arms, arm)))
        .collect();
    if rows.is_empty() {
        return;
    }
    document.heading("The norm p chosen by validation");
    document.text(
        "On each split, the p of {1, 1.5, 1.8, 2, 3} with the smallest validation error; V is \
         the test error of that model in the epoch that validation chose.",
    );
    document.table(
        &["set", "model", "V, p chosen", "V, p released", "chosen p"],
        rows,
    );
}

/// All arms that differ from one in p alone, itself included.
fn candidates<'a>(arms: &'a [Arm], of: &Arm) -> Vec<&'a Arm> {
    let same = |arm: &&Arm| {
        (arm.set, arm.model) == (of.set, of.model)
            && arm.preset == Preset::Paper
            && arm.protocol == Protocol::P10
    };
    match (of.preset, of.protocol) {
        (Preset::Paper, Protocol::P10) => arms.iter().filter(same).collect(),
        _ => Vec::new(),
    }
}

fn row(results: &Results, arm: &Arm, candidates: &[&Arm]) -> Option<Vec<String>> {
    if candidates.len() < 2 || !candidates.iter().all(|arm| results.is_complete(arm)) {
        return None;
    }
    let chosen: Vec<&Row> = (0..arm.units.len())
        .filter_map(|split| best(results, candidates, split))
        .collect();
    let chosen_v: Vec<f64> = chosen.iter().filter_map(|row| row.v_number).collect();
    let released_v: Vec<f64> = results
        .of(arm)
        .iter()
        .filter_map(|row| row.v_number)
        .collect();
    let shown = |values: &[f64]| {
        Some(spread(
            mean(values).ok()?,
            population_deviation(values).ok()?,
        ))
    };
    Some(vec![
        title(arm.set).to_owned(),
        arm.model.name().to_owned(),
        shown(&chosen_v)?,
        shown(&released_v)?,
        counted(&chosen),
    ])
}

/// The candidate with the smallest validation error on a split.
fn best<'a>(results: &'a Results, candidates: &[&Arm], split: usize) -> Option<&'a Row> {
    let rows = candidates
        .iter()
        .filter_map(|arm| results.row(arm.units.get(split)?));
    let judged = rows.filter_map(|row| Some((row.validation?, row)));
    judged
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, row)| row)
}

/// How often each p was chosen.
fn counted(rows: &[&Row]) -> String {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for p in rows.iter().filter_map(|row| row.unit.settings.p()) {
        *times.entry(p.to_string()).or_default() += 1;
    }
    let shown = times
        .iter()
        .map(|(p, times)| format!("{p} ({times} times)"));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::results;
    use super::super::super::{Cut, Model, Plan};
    use super::*;
    use crate::Scale;
    use bochner_datasets::RegressionSet;

    #[test]
    fn validation_chooses_on_each_split() {
        let plan = Plan::new(Scale::Paper, &[RegressionSet::Co2], Cut::None);
        // Released is 3; 1.5 is better on three splits.
        let results = results(&plan, |arm, split| {
            let better = arm.candidate == Some(1.5) && split < 3;
            Some(if better { 0.1 } else { 0.2 })
        });
        let arms = plan.arms();
        let arm = arms
            .iter()
            .find(|arm| arm.model == Model::Mikan && arm.candidate.is_none())
            .unwrap();
        let row = row(&results, arm, &candidates(arms, arm)).unwrap();
        assert_eq!(row[2], "0.170 ± 0.046");
        assert_eq!(row[3], "0.200 ± 0.000");
        assert_eq!(row[4], "1.5 (3 times), 3 (7 times)");
    }
}
