//! The tables that Table 4 alone has, and its check of the two readings.

use crate::mechanisms::RELEASED;
use crate::trial::regressor::PERMUTED;
use bochner_datasets::Protocol;
use bochner_report::check::{Mark, bits};
use bochner_report::document::Document;
use bochner_report::plan::Arm;
use bochner_report::row::Row;
use bochner_report::sections::{Column, Columns, row_of};
use bochner_report::statistics::{mean, population_deviation};
use bochner_report::{Account, Number};
use std::collections::BTreeMap;

/// The error of each model that sees the order of rows, beside its error with the rows permuted. Nothing is written
/// where no model does.
pub(super) fn order_of_rows(account: &Account<'_>, document: &mut Document) {
    const COLUMNS: Columns<'static> = &[
        ("set", Column::Set),
        ("model", Column::Model),
        ("last", Column::Ours(Number::Last)),
        (PERMUTED, Column::Measure(PERMUTED)),
        ("n", Column::N),
    ];
    let arms = account.plan.compared();
    let arms = arms.filter(|arm| account.results.measure(*arm, PERMUTED).is_some());
    let rows = arms.filter_map(|arm| row_of(account, arm, COLUMNS));
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("Models that see the order of rows");
    document.text(
        "These models see the order of the rows, and are run on series alone. The control is the test error of the model \
         after the last epoch when it reads the rows in an order that is drawn for each split.",
    );
    document.table(
        &COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        rows,
    );
}

/// Writes the results of each model if validation chooses its norm on each split, among those of all of its arms.
/// A model with one norm alone has no lines.
pub(super) fn norms_of_each_split(account: &Account<'_>, document: &mut Document) {
    let arms = account.plan.compared().filter(|arm| arm.tag.is_none());
    let rows: Vec<Vec<String>> = arms.filter_map(|arm| chosen_row(account, arm)).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("The norm p chosen by validation");
    document.text(
        "On each split, the p of {1, 1.5, 1.8, 2, 3} with the smallest validation error; V is the test error of that \
         model in the epoch that validation chose.",
    );
    document.table(
        &["set", "model", "V, p chosen", "V, p released", "chosen p"],
        rows,
    );
}

fn chosen_row(account: &Account<'_>, arm: &Arm) -> Option<Vec<String>> {
    let (results, metric) = (account.results, account.card.metric);
    let alike = |other: &&Arm| {
        let own = (arm.set, arm.model, arm.protocol);
        (other.set, other.model, other.protocol) == own && other.tag.as_deref() != Some(RELEASED)
    };
    let among: Vec<&Arm> = account.plan.compared().filter(alike).collect();
    let complete = among.iter().all(|arm| results.is_complete(*arm));
    if arm.protocol == Protocol::R90 || among.len() < 2 || !complete {
        return None;
    }
    // The candidate with the best validation value on a split.
    let best = |split: usize| -> Option<&Row> {
        let rows = among
            .iter()
            .filter_map(|arm| results.row(arm.units.get(split)?));
        let judged = rows.filter_map(|row| Some((metric.direction.loss(row.validation?), row)));
        judged
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, row)| row)
    };
    let chosen: Vec<&Row> = (0..arm.units.len()).filter_map(best).collect();
    let shown = |rows: &[&Row]| {
        let values: Vec<f64> = rows.iter().filter_map(|row| row.v_number).collect();
        let deviation = metric.factor() * population_deviation(&values).ok()?;
        Some(metric.spread(metric.show(mean(&values).ok()?), deviation))
    };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for p in chosen.iter().filter_map(|row| row.unit.settings.p()) {
        *times.entry(p.to_string()).or_default() += 1;
    }
    let times = times
        .iter()
        .map(|(p, times)| format!("{p} ({times} times)"));
    Some(vec![
        arm.set.to_owned(),
        arm.model.to_owned(),
        shown(&chosen)?,
        shown(&results.of(arm))?,
        times.collect::<Vec<_>>().join(", "),
    ])
}

/// Compares the numbers of the two readings of a method.
pub(super) fn presets_differ(account: &Account<'_>) -> Mark {
    let (plan, results) = (account.plan, account.results);
    let released = plan
        .arms
        .iter()
        .filter(|arm| arm.tag.as_deref() == Some(RELEASED));
    let pairs = released.flat_map(|arm| {
        let paper = plan.beside(arm, arm.model).map(|paper| results.of(paper));
        results.of(arm).into_iter().zip(paper.unwrap_or_default())
    });
    let pairs: Vec<(&Row, &Row)> = pairs.collect();
    let same = pairs.iter().filter(|(a, b)| bits(a) == bits(b));
    let defects: Vec<String> = same.map(|(a, _)| a.unit.label()).collect();
    Mark::new(&defects, pairs.len(), "pairs of units")
}
