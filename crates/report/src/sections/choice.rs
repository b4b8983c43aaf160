//! The settings and norms that validation chose.

use super::NOTHING;
use crate::document::Document;
use crate::plan::{Arm, ChosenBy, Role};
use crate::statistics::mean;
use crate::{Account, Number};

/// For each model that arms of [`Role::OwnChoice`] or [`Role::Choice`] stand for, what validation saw of each norm
/// and which one it chose, with the loss that the choice looks at in brackets. Nothing is written unless there was a
/// choice.
pub fn chosen_norms(account: &Account<'_>, document: &mut Document, by: ChosenBy, text: &str) {
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
                let loss = by.loss(account.results, arm);
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

/// Writes the validation of each of the settings among which a choice for the baseline was made: once for all sets together,
/// then once more on each set of its own. Nothing is written unless there was a choice.
pub fn chosen_settings(account: &Account<'_>, document: &mut Document, by: ChosenBy) {
    let (plan, model) = (account.plan, account.card.baseline);
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
        settings_seen(account, document, &common, by);
    }
    for set in plan.sets() {
        let own = of(Some(set));
        if !own.is_empty() {
            document.heading(format!("The settings chosen anew on {set}"));
            document.text(format!(
                "With the settings chosen for all sets, the {model} missed the gate on {set}. {seen_on}; the settings \
                 with the {best} one hold for all models on {set}."
            ));
            settings_seen(account, document, &own, by);
        }
    }
}

/// A row for each of the settings, a column for each set, and the mean over the sets if there are several.
fn settings_seen(account: &Account<'_>, document: &mut Document, arms: &[&Arm], by: ChosenBy) {
    let metric = account.card.metric;
    let on: Vec<&[&Arm]> = arms.chunk_by(|a, b| a.set == b.set).collect();
    let seen = |arm: &Arm| match by {
        ChosenBy::Value => account.results.mean(arm, Number::Validation),
        _ if account.results.is_complete(arm) => by.loss(account.results, arm),
        _ => None,
    };
    let shown = |value: Option<f64>| match (by, value) {
        (_, None) => NOTHING.to_owned(),
        (ChosenBy::Value, Some(value)) => format!("{:.1$}", metric.show(value), metric.fine),
        (_, Some(loss)) => format!("{loss:.3}"),
    };
    let rows = on[0].iter().enumerate().map(|(place, arm)| {
        let seen = on.iter().map(|arms| seen(arms.get(place)?));
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
pub(crate) fn waiting(account: &Account<'_>, document: &mut Document) {
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
