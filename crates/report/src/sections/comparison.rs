//! Models against each other, split by split.

use super::tables::{published, row_of};
use super::{NOT_ADEQUATE, NOTHING};
use crate::document::Document;
use crate::plan::Arm;
use crate::statistics::Paired;
use crate::{Account, Number, Scale};

/// The explanation of the numbers of comparisons.
const DIFFERENCES: &str = "Model less the other model in the same run, which is on the same split and starts from the same \
                           seed: mean ± SE (SE' where folds share training rows), wins of n. What is found rests on the \
                           two-sided 95 % interval of each comparison by itself; the claims above are judged together.";

/// Writes each arm against those that its model names, then the pairs in which one thing is added.
pub fn comparisons(account: &Account<'_>, document: &mut Document) {
    let (card, plan) = (account.card, account.plan);
    let head = card.names.iter().map(|(name, _)| *name);
    let rest = [
        "against",
        "published d",
        "d of V",
        "found in V",
        "d of R",
        "found in R",
    ];
    let head: Vec<&str> = head.chain(rest).collect();
    let model = |arm: &Arm| card.model(arm.model);
    let table = |pairs: Vec<(&Arm, &Arm)>| {
        let rows = pairs
            .into_iter()
            .filter_map(|(arm, other)| row(account, arm, other));
        rows.collect::<Vec<_>>()
    };

    document.heading("Model against model, run by run");
    document.text(match card.published {
        [] => DIFFERENCES.to_owned(),
        _ => format!("{DIFFERENCES} Published differences are unpaired."),
    });
    let pairs = plan.compared().flat_map(|arm| {
        let against = model(arm).map_or(&[][..], |model| model.against).iter();
        against.filter_map(move |other| Some((arm, plan.beside(arm, other)?)))
    });
    document.table(&head, table(pairs.collect()));

    let steps = plan.compared().filter(|arm| arm.tag.is_none());
    let steps = steps.filter_map(|arm| Some((arm, plan.beside(arm, model(arm)?.simpler?.0)?)));
    let steps: Vec<(&Arm, &Arm)> = steps.collect();
    let rows = table(steps.clone());
    if !rows.is_empty() {
        document.heading("One step at a time");
        let added = card.models.iter().filter_map(|model| model.simpler);
        let added: Vec<String> = added
            .map(|(model, thing)| format!("{thing} to {model}"))
            .collect();
        document.text(format!(
            "Pairs named before anything was run, in which one thing is added: {}. Reported, not judged.",
            added.join(", ")
        ));
        document.table(&head, rows);
        document.list(equal(account, &steps));
    }
    if plan.scale != Scale::Smoke {
        let gaps = plan.compared().filter_map(|arm| gap(account, arm));
        document.list(gaps.collect());
    }
}

/// For each step, on how many splits of each set it changes nothing of the V-number; nothing if no step ever does.
fn equal(account: &Account<'_>, steps: &[(&Arm, &Arm)]) -> Vec<String> {
    let mut on: Vec<([&str; 2], Vec<String>)> = Vec::new();
    let mut ties = 0;
    for (arm, other) in steps {
        let Some(v) = account.results.compare(*arm, *other, Number::V) else {
            continue;
        };
        ties += v.ties;
        let (step, found) = (
            [arm.model, other.model],
            format!("{} of {} on {}", v.ties, v.n, arm.set),
        );
        match on.iter_mut().find(|(known, _)| *known == step) {
            Some((_, sets)) => sets.push(found),
            None => on.push((step, vec![found])),
        }
    }
    let say = |([model, other], sets): ([&str; 2], Vec<String>)| {
        format!(
            "{model} and {other} have equal V-numbers on splits: {}.",
            sets.join(", ")
        )
    };
    match ties {
        0 => Vec::new(),
        _ => on.into_iter().map(say).collect(),
    }
}

fn row(account: &Account<'_>, arm: &Arm, other: &Arm) -> Option<Vec<String>> {
    let metric = account.card.metric;
    let on = |number| account.results.compare(arm, other, number);
    let found = |paired: &Paired| match account.plan.scale {
        Scale::Smoke => "not tested".to_owned(),
        _ if !account.is_adequate(arm) => NOT_ADEQUATE.to_owned(),
        _ => paired.finding().to_string(),
    };
    let (v, r) = (on(Number::V), on(Number::R)?);
    let printed = published(account, arm).zip(published(account, other));
    let printed =
        printed.map(|(own, other)| format!("{:+.1$}", own.mean - other.mean, metric.digits));
    let mut row = row_of(account, arm, account.card.names)?;
    row.extend([
        other.model.to_owned(),
        printed.unwrap_or(NOTHING.into()),
        v.map_or(NOTHING.into(), |v| metric.difference(&v)),
        v.map_or(NOTHING.into(), |v| found(&v)),
        metric.difference(&r),
        found(&r),
    ]);
    Some(row)
}

/// Says so if the optimism of an arm differs from the baseline's by as much as the models do.
fn gap(account: &Account<'_>, arm: &Arm) -> Option<String> {
    let (card, metric) = (account.card, account.card.metric);
    let is_compared = card.model(arm.model)?.against.contains(&card.baseline);
    let baseline = account
        .plan
        .beside(arm, card.baseline)
        .filter(|_| is_compared)?;
    let v = account.results.compare(arm, baseline, Number::V)?.mean;
    let gap = account.results.compare(arm, baseline, Number::R)?.mean - v;
    let names = row_of(account, arm, card.names)?;
    let (fine, points) = (metric.fine, metric.step());
    (gap != 0.0 && gap.abs() >= v.abs()).then(|| {
        let reading = match &names[2..] {
            [] => String::new(),
            reading => format!(" ({})", reading.join(", ")),
        };
        format!(
            "{}, {}{reading}: R - V differs from {}'s by {:+.fine$}{points}, as much as the models differ \
             ({:+.fine$}); a comparison of best test {} says nothing here.",
            names[0],
            names[1],
            card.against,
            metric.gain(gap),
            metric.gain(v),
            metric.plural,
        )
    })
}
