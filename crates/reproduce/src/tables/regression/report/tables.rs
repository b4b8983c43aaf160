//! The tables of the report.

use super::super::{Arm, Model, Plan, title};
use super::Account;
use crate::report::Document;
use crate::statistics::{mean, population_deviation};
use crate::tables::{Number, Results};
use crate::{Preset, Scale, published};
use bochner_datasets::RegressionSet;

/// What stands in a cell without value.
pub(super) const NOTHING: &str = "-";

pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    let (plan, results) = (account.plan, account.results);
    document.heading("Paper and ours");
    document.text(
        "Mean ± population standard deviation over the splits, R-numbers in both columns. The \
         last column judges each row by itself; the claims above are judged over all sets.",
    );
    if plan.scale() != Scale::Paper {
        document.text(
            "**The difference is no measure of agreement at this scale**: models, training and \
             splits are smaller or other than the paper's.",
        );
    }
    document.table(
        &[
            "set",
            "model",
            "preset",
            "splits",
            "paper (R)",
            "ours (R)",
            "difference",
            "verdict",
        ],
        plan.sets()
            .into_iter()
            .flat_map(|set| against_paper(plan, results, set))
            .collect(),
    );
    document.heading("Our numbers");
    document.text("Every model has its V-number, R-number and last error; R - V is the optimism.");
    document.table(
        &[
            "set",
            "model",
            "preset",
            "splits",
            "p",
            "R",
            "parameters",
            "V",
            "R-number",
            "R - V",
            "last",
            "n",
            "s per split",
        ],
        plan.arms()
            .iter()
            .filter_map(|arm| own(results, arm))
            .collect(),
    );
}

fn against_paper(plan: &Plan, results: &Results, set: RegressionSet) -> Vec<Vec<String>> {
    let arms = plan.arms().iter().filter(|arm| arm.set == set);
    let mut rows: Vec<Vec<String>> = arms
        .filter_map(|arm| {
            let numbers = results.numbers(arm, Number::R)?;
            let ours = mean(&numbers).ok()?;
            let published = comparable(arm);
            Some(cells(
                names(arm),
                [
                    published.map_or(NOTHING.into(), |p| spread(p.mean, p.deviation)),
                    spread(ours, population_deviation(&numbers).ok()?),
                    published.map_or(NOTHING.into(), |p| format!("{:+.3}", ours - p.mean)),
                    row_verdict(plan, results, arm),
                ],
            ))
        })
        .collect();
    if plan.scale() == Scale::Paper || set != RegressionSet::Parkinsons {
        let quoted = Model::ALL.into_iter().filter(|model| {
            let own = plan
                .arms()
                .iter()
                .any(|arm| (arm.set, arm.model) == (set, *model));
            model.is_process() && !own
        });
        rows.extend(quoted.filter_map(|model| {
            let p = published::regression(model.name(), title(set))?;
            let name = [title(set).to_owned(), format!("{}*", model.name())];
            let rest = [
                NOTHING,
                NOTHING,
                &spread(p.mean, p.deviation),
                NOTHING,
                NOTHING,
                "not run",
            ];
            Some(cells(name, rest.map(str::to_owned)))
        }));
    }
    rows
}

/// The published value of an arm's model; none beside a thinned set, which is another set.
pub(super) fn comparable(arm: &Arm) -> Option<published::Published> {
    let published = published::regression(arm.model.name(), title(arm.set))?;
    (arm.every == 1 && arm.candidate.is_none()).then_some(published)
}

fn row_verdict(plan: &Plan, results: &Results, arm: &Arm) -> String {
    match plan.scale() {
        Scale::Smoke => "not tested".into(),
        Scale::Desk | Scale::Paper if arm.model == Model::Transformer => "baseline".into(),
        _ if !arm.model.is_judged() => "reported, not judged".into(),
        _ => plan
            .baseline(arm)
            .and_then(|baseline| {
                let on = |number| Some(results.compare(arm, baseline, number)?.finding());
                let r = on(Number::R)?;
                Some(match on(Number::V) {
                    Some(v) => format!("against the Transformer: {v} (V), {r} (R)"),
                    None => format!("against the Transformer: {r} (R)"),
                })
            })
            .unwrap_or_else(|| "not tested".into()),
    }
}

fn own(results: &Results, arm: &Arm) -> Option<Vec<String>> {
    let rows = results.of(arm);
    let first = rows.first()?;
    let statistics = |number| {
        let numbers = results.numbers(arm, number)?;
        Some((mean(&numbers).ok()?, population_deviation(&numbers).ok()?))
    };
    let (r, v) = (statistics(Number::R)?, statistics(Number::V));
    let (last, deviation) = statistics(Number::Last)?;
    let seconds = rows.iter().map(|row| row.seconds).sum::<f64>() / rows.len() as f64;
    let settings = &first.unit.settings;
    Some(cells(
        names(arm),
        [
            settings.p().map_or(NOTHING.into(), |p| p.to_string()),
            settings.points().map_or(NOTHING.into(), |r| r.to_string()),
            first.parameters.to_string(),
            v.map_or(NOTHING.into(), |(mean, sd)| spread(mean, sd)),
            spread(r.0, r.1),
            v.map_or(NOTHING.into(), |(v, _)| format!("{:+.4}", r.0 - v)),
            spread(last, deviation),
            rows.len().to_string(),
            format!("{seconds:.1}"),
        ],
    ))
}

pub(super) fn names(arm: &Arm) -> [String; 4] {
    let model = match arm.candidate {
        Some(p) => format!("{} (p = {p})", arm.model.name()),
        None => arm.model.name().to_owned(),
    };
    let preset = match arm.model {
        model if model.is_judged() => arm.preset.name(),
        model if model.is_process() => NOTHING,
        Model::Transformer | Model::TransformerEightHeads => "both",
        _ => Preset::Paper.name(),
    };
    [
        title(arm.set).to_owned(),
        model,
        preset.to_owned(),
        arm.protocol.name().to_owned(),
    ]
}

pub(super) fn cells<const A: usize, const B: usize>(
    first: [String; A],
    rest: [String; B],
) -> Vec<String> {
    first.into_iter().chain(rest).collect()
}

pub(super) fn spread(mean: f64, deviation: f64) -> String {
    format!("{mean:.3} ± {deviation:.3}")
}
