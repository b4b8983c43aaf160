//! The norm p that validation chose.

use super::NOTHING;
use crate::document::Document;
use crate::plan::{Arm, Role};
use crate::row::Row;
use crate::statistics::{mean, population_deviation};
use crate::suite::Metric;
use crate::{Account, Number};
use bochner_datasets::Protocol;
use std::collections::BTreeMap;

/// The criterion of a choice among arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The best mean validation value; among equal ones the smaller loss beside it.
    Value,
    /// The smallest mean loss on the validation part, in the epoch that validation chose.
    Loss,
    /// The smallest mean of a measure that is a loss on the validation part.
    Measure(&'static str),
}

impl ChosenBy {
    /// The loss that is recorded beside a validation value, or in its place.
    fn loss(self, account: &Account<'_>, arm: &Arm) -> Option<f64> {
        match self {
            Self::Measure(name) => account.results.measure(arm, name),
            Self::Value | Self::Loss => {
                let losses = account.results.of(arm).into_iter();
                let losses = losses.map(|row| row.validation_loss);
                mean(&losses.collect::<Option<Vec<f64>>>()?).ok()
            }
        }
    }

    /// The value by which a complete arm is chosen.
    fn seen(self, account: &Account<'_>, arm: &Arm) -> Option<f64> {
        let value = account.results.mean(arm, Number::Validation);
        match self {
            Self::Value => value,
            Self::Loss | Self::Measure(_) => value.and_then(|_| self.loss(account, arm)),
        }
    }

    fn show(self, metric: &Metric, seen: f64) -> String {
        match self {
            Self::Value => format!("{:.1$}", metric.show(seen), metric.fine),
            Self::Loss | Self::Measure(_) => format!("{seen:.3}"),
        }
    }
}

/// For each model that arms of [`Role::OwnChoice`] or [`Role::Choice`] stand for, what validation saw of each norm
/// and which one it chose, with the loss that the choice looks at in brackets. Nothing is written unless there was a
/// choice.
pub fn chosen_norms(document: &mut Document, account: &Account<'_>, by: ChosenBy, text: &str) {
    let (plan, metric) = (account.plan, account.card.metric);
    let arms = plan
        .arms
        .iter()
        .filter(|arm| arm.role.is_choice() && arm.settings().p().is_some());
    let arms: Vec<&Arm> = arms.collect();
    let rows = arms
        .chunk_by(|a, b| (a.set, a.model) == (b.set, b.model))
        .filter_map(|arms| {
            let first = arms[0];
            let chosen = plan.claimed(first.set, first.model)?.settings().p()?;
            let seen = arms.iter().map(|arm| {
                let (p, digits) = (arm.settings().p()?, metric.digits);
                let found = metric.show(account.results.mean(*arm, Number::Validation)?);
                let loss = by.loss(account, arm);
                let loss = loss.map_or(String::new(), |loss| format!(" ({loss:.3})"));
                Some(format!("{p}: {found:.digits$}{}{loss}", metric.unit()))
            });
            let seen: Vec<String> = seen.map(|seen| seen.unwrap_or(NOTHING.into())).collect();
            let names = [first.set.to_owned(), first.model.to_owned()];
            Some([&names[..], &[seen.join(", "), chosen.to_string()]].concat())
        });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        document.heading("The norm p chosen by validation");
        document.text(text);
        document.table(&["set", "model", "p: validation", "chosen"], rows);
    }
}

/// Writes the validation of each of the settings among which a choice for a model was made: once for all sets together,
/// then once more on each set of its own. Nothing is written unless there was a choice.
pub fn chosen_settings(document: &mut Document, account: &Account<'_>, model: &str, by: ChosenBy) {
    let plan = account.plan;
    let (seen_on, best) = match by {
        ChosenBy::Value => ("Validation values on the first fold", "best"),
        ChosenBy::Loss => (
            "Losses on the validation part in the best epochs of the first seed",
            "least",
        ),
        ChosenBy::Measure(_) => ("Losses on the validation part with the first seed", "least"),
    };
    let of = |set: Option<&str>| {
        let arms = plan
            .arms
            .iter()
            .filter(|arm| arm.model == model && arm.tag.is_some());
        let arms = arms.filter(|arm| match set {
            None => arm.role == Role::Common,
            Some(set) => (arm.role, arm.set) == (Role::Choice, set),
        });
        arms.collect::<Vec<&Arm>>()
    };
    let common = of(None);
    if !common.is_empty() {
        document.heading(format!(
            "The settings chosen by validation, for the {model} alone"
        ));
        document.text(format!(
            "{seen_on}; the settings with the {best} mean hold for all models."
        ));
        settings_seen(document, account, &common, by);
    }
    for set in plan.sets() {
        let own = of(Some(set));
        if !own.is_empty() {
            document.heading(format!("The settings chosen anew on {set}"));
            document.text(format!(
                "With the settings chosen for all sets, the {model} missed the gate on {set}. {seen_on}; the settings \
                 with the {best} one hold for all models on {set}."
            ));
            settings_seen(document, account, &own, by);
        }
    }
}

/// A row for each of the settings, a column for each set, and the mean over the sets if there are several.
fn settings_seen(document: &mut Document, account: &Account<'_>, arms: &[&Arm], by: ChosenBy) {
    let metric = account.card.metric;
    let on: Vec<&[&Arm]> = arms.chunk_by(|a, b| a.set == b.set).collect();
    let shown = |value: Option<f64>| match value {
        Some(value) => by.show(&metric, value),
        None => NOTHING.to_owned(),
    };
    let rows = on[0].iter().enumerate().map(|(place, arm)| {
        let seen = on.iter().map(|arms| by.seen(account, arms.get(place)?));
        let seen: Vec<Option<f64>> = seen.collect();
        let all: Option<Vec<f64>> = seen.iter().copied().collect();
        let average = all.and_then(|all| mean(&all).ok());
        let average = (on.len() > 1).then_some(average);
        let tag = arm.tag.clone().unwrap_or_default();
        let values = seen.into_iter().chain(average).map(shown);
        std::iter::once(tag).chain(values).collect()
    });
    let head = on.iter().map(|arms| arms[0].set);
    let head = std::iter::once("settings").chain(head);
    let head: Vec<&str> = head.chain((on.len() > 1).then_some("mean")).collect();
    document.table(&head, rows.collect());
}

/// Names the choices that are not made, for which models wait.
pub fn waiting(document: &mut Document, account: &Account<'_>) {
    let choosing = account.plan.arms.iter().filter(|arm| arm.role.is_choice());
    let open = choosing.filter(|arm| !account.results.is_complete(*arm));
    let say = |arm: &Arm| {
        format!(
            "**A choice by {} on {} is not made**: models that wait for it have not run.",
            arm.model, arm.set
        )
    };
    let mut waiting: Vec<String> = open.map(say).collect();
    waiting.dedup();
    document.list(waiting);
}

/// Writes the results of each model if validation chooses its norm on each split, among its own arm and those of
/// [`Role::Candidate`]. Nothing is written without candidates.
pub fn chosen_on_each_split(document: &mut Document, account: &Account<'_>) {
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
        (other.set, other.model, other.preset, other.protocol)
            == (arm.set, arm.model, arm.preset, arm.protocol)
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
