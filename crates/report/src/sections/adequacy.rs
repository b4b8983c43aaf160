//! The adequacy of a set-up: good enough to judge a set, and not too good to be true.

use super::NOTHING;
use crate::document::Document;
use crate::judge::passes_gate;
use crate::plan::{Arm, Role};
use crate::suite::Set;
use crate::{Account, Number, Scale};

/// The validation value of the baseline on each set with a gate, its settings, and whether the set counts. Nothing
/// is written at scale `smoke`, or where no set has a gate.
pub(crate) fn gates(account: &Account<'_>, document: &mut Document) {
    let card = account.card;
    if account.plan.scale == Scale::Smoke || card.sets.iter().all(|set| set.gate.is_none()) {
        return;
    }
    let rows = account
        .sets()
        .into_iter()
        .filter_map(|set| gate_row(account, set, set.gate?));
    document.heading(format!("Is the {} good enough?", card.baseline));
    document.text(format!(
        "Mean validation value of the {} in its best epochs, with the settings chosen for all sets and, where these miss the \
         gate, with those chosen anew. A set below its gate is judged nowhere. The gates were named before anything was run.",
        card.baseline
    ));
    document.table(
        &[
            "set",
            "gate",
            "first choice",
            "second grid",
            "settings used",
            "counts",
        ],
        rows.collect(),
    );
}

fn gate_row(account: &Account<'_>, set: &Set, gate: f64) -> Option<Vec<String>> {
    let (card, plan, metric) = (account.card, account.plan, account.card.metric);
    let candidates = plan
        .arms
        .iter()
        .filter(|arm| arm.model == card.baseline && arm.role.is_choice());
    let own: Vec<&Arm> = candidates
        .clone()
        .filter(|arm| arm.role == Role::Choice && arm.set == set.title)
        .collect();
    let first = own.iter().copied().find(|arm| arm.tag.is_none());
    let used = plan.claimed(set.title, card.baseline).or(first)?;
    let first = first.unwrap_or(used);
    let is_anew = own.iter().any(|arm| arm.tag.is_some());
    let reached = |arm: &Arm| match account.results.mean(arm, Number::Validation) {
        Some(value) => format!("{:.1$}", metric.show(value), metric.digits),
        None if account.results.has_failed(arm) => "failed".to_owned(),
        None => "not finished".to_owned(),
    };
    let tag = |arm: &Arm| {
        arm.tag
            .clone()
            .filter(|_| arm.settings() == used.settings())
    };
    // A set's own candidates come before those for all sets together.
    let mut tags = own.iter().copied().chain(candidates).filter_map(tag);
    let reaches_less = |limit: f64| {
        let value = account.results.mean(used, Number::Validation);
        value.is_some_and(|value| metric.show(value) < limit)
    };
    let counts = match passes_gate(card, plan, account.results, set.title) {
        Some(true) => "yes",
        Some(false) if set.poor_below.is_some_and(reaches_less) => "**no: badly trained**",
        Some(false) => "**no: set-up not adequate**",
        None if account.results.has_failed(used) => "failed",
        None => "not finished",
    };
    Some(vec![
        set.title.to_owned(),
        format!("{gate:.0$}", metric.digits),
        reached(first),
        if is_anew {
            reached(used)
        } else {
            NOTHING.to_owned()
        },
        tags.next().unwrap_or(NOTHING.into()),
        counts.to_owned(),
    ])
}

/// Says loudly which models are better on a test part than is believable. Nothing is written at scale `smoke`.
pub(crate) fn alarms(account: &Account<'_>, document: &mut Document) {
    if account.plan.scale != Scale::Smoke {
        let alarms = account
            .plan
            .compared()
            .filter_map(|arm| alarm(account, arm));
        document.list(alarms.collect());
    }
}

fn alarm(account: &Account<'_>, arm: &Arm) -> Option<String> {
    let metric = account.card.metric;
    let limit = account.card.set(arm.set)?.suspect_above?;
    let shown = |number| Some(metric.show(account.results.spread(arm, number)?.0));
    let [v, r] = [shown(Number::V), shown(Number::R)].map(|value| value.unwrap_or(f64::NAN));
    (v > limit || r > limit).then(|| {
        format!(
            "**LOOK FOR A LEAK: {} has {v:.3$}{4} (V) and {r:.3$}{4} (R) on the test part of {1}, above {2}, which is more \
             than is believable. Until the cause is known, no number of {1} counts.**",
            arm.label(),
            arm.set,
            limit,
            metric.digits,
            metric.unit(),
        )
    })
}
