//! The tables of the report.

use super::super::{Arm, Model, accuracy, title};
use super::{Account, NOTHING, spread};
use crate::Scale;
use crate::published::{self, Accuracy, NODES};
use crate::report::Document;
use crate::statistics::{mean, population_deviation};
use crate::tables::{Number, Results};
use bochner_datasets::PlanetoidSet;

pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    document.heading("Paper and ours");
    document.text(
        "Mean ± standard deviation over the seeds. With an asterisk: quoted from the paper, which \
         quotes them itself; nothing was run.",
    );
    let head = [
        "set",
        "model",
        "paper",
        "ours (V)",
        "V - paper",
        "ours (R)",
        "verdict",
    ];
    let sets = account.plan.graphs();
    let rows = sets.into_iter().flat_map(|set| against_paper(account, set));
    document.table(&head, rows.collect());
    document.heading("Our numbers");
    document.text("R - V is the optimism; epochs are those that were trained.");
    document.table(
        &[
            "set",
            "model",
            "p",
            "R",
            "parameters",
            "V",
            "R-number",
            "R - V",
            "last",
            "epochs",
            "n",
            "s per run",
        ],
        account
            .plan
            .arms()
            .iter()
            .filter_map(|arm| own(account.results, arm))
            .collect(),
    );
}

fn against_paper(account: &Account<'_>, set: PlanetoidSet) -> Vec<Vec<String>> {
    let arms = account.plan.arms().iter().filter(|arm| arm.set == set);
    let ours = arms.filter_map(|arm| compared(account, arm));
    let run = |name: &str| Model::ALL.iter().any(|model| model.name() == name);
    let quoted = NODES.iter().filter(|line| !run(line.model));
    let quoted = quoted.filter_map(|line| {
        let paper = published::nodes(line.model, title(set))?;
        let cells = [
            title(set),
            &format!("{}*", line.model),
            &printed(paper),
            NOTHING,
            NOTHING,
            NOTHING,
            "not run",
        ];
        Some(cells.map(str::to_owned).to_vec())
    });
    ours.chain(quoted).collect()
}

fn compared(account: &Account<'_>, arm: &Arm) -> Option<Vec<String>> {
    let (v, deviation) = statistics(account.results, arm, Number::V)?;
    let r = statistics(account.results, arm, Number::R)?;
    let paper = published::nodes(arm.model.name(), title(arm.set));
    let comparable = paper.filter(|_| account.plan.scale() != Scale::Smoke);
    Some(vec![
        title(arm.set).to_owned(),
        arm.model.name().to_owned(),
        paper.map_or(NOTHING.into(), printed),
        spread(v, deviation),
        comparable.map_or(NOTHING.into(), |paper| format!("{:+.1}", v - paper.mean)),
        spread(r.0, r.1),
        verdict(account, arm),
    ])
}

fn verdict(account: &Account<'_>, arm: &Arm) -> String {
    if account.plan.scale() == Scale::Smoke {
        return "not tested".into();
    }
    let against = || {
        let gat = account.plan.arm(arm.set, Model::Gat)?;
        let on = |number| Some(account.results.compare(arm, gat, number)?.finding());
        let (v, r) = (on(Number::V)?, on(Number::R)?);
        Some(format!("against GAT: {v} (V), {r} (R)"))
    };
    match arm.model {
        Model::Gat => "baseline".into(),
        model if !model.is_judged() => "reported, not judged".into(),
        _ => against().unwrap_or_else(|| "not tested".into()),
    }
}

fn printed(accuracy: Accuracy) -> String {
    match accuracy.deviation {
        Some(deviation) => spread(accuracy.mean, deviation),
        None => format!("{:.1}", accuracy.mean),
    }
}

/// The mean and the standard deviation of an arm's accuracies, in per cent.
pub(super) fn statistics(results: &Results, arm: &Arm, number: Number) -> Option<(f64, f64)> {
    let errors = results.numbers(arm, number)?;
    let deviation = population_deviation(&errors).ok()?;
    Some((accuracy(mean(&errors).ok()?), 100.0 * deviation))
}

fn own(results: &Results, arm: &Arm) -> Option<Vec<String>> {
    let rows = results.of(arm);
    let first = rows.first()?;
    let on = |number| statistics(results, arm, number);
    let (v, r, last) = (on(Number::V)?, on(Number::R)?, on(Number::Last)?);
    let settings = &first.unit.settings;
    let average = |of: &dyn Fn(&crate::store::Row) -> f64| {
        rows.iter().map(|row| of(row)).sum::<f64>() / rows.len() as f64
    };
    let epochs = average(&|row| row.stopped_after.unwrap_or(row.unit.settings.epochs()) as f64);
    let seconds = average(&|row| row.seconds);
    Some(vec![
        title(arm.set).to_owned(),
        arm.model.name().to_owned(),
        settings.p().map_or(NOTHING.into(), |p| p.to_string()),
        settings.points().map_or(NOTHING.into(), |r| r.to_string()),
        first.parameters.to_string(),
        spread(v.0, v.1),
        spread(r.0, r.1),
        format!("{:+.2}", r.0 - v.0),
        spread(last.0, last.1),
        format!("{epochs:.0}"),
        rows.len().to_string(),
        format!("{seconds:.1}"),
    ])
}
