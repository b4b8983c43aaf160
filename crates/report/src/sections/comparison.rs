//! Models against each other, split by split.

use super::tables::{Columns, cells, published};
use super::{NOT_ADEQUATE, NOTHING};
use crate::document::Document;
use crate::plan::Arm;
use crate::statistics::Paired;
use crate::{Account, Number, Preset, Scale};

/// The texts of a section of comparisons.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The heading.
    pub heading: &'static str,
    /// The explanation of its numbers.
    pub text: &'static str,
    /// The explanation of pairs in which one thing is added.
    pub steps: &'static str,
    /// The columns that name an arm.
    pub names: Columns<'a>,
}

/// Each arm against those that its model names, then the pairs in which one thing is added.
pub fn against_baseline(document: &mut Document, account: &Account<'_>, section: &Comparison<'_>) {
    let plan = account.plan;
    let head = section.names.iter().map(|(name, _)| *name);
    let rest = [
        "against",
        "published d",
        "d of V",
        "found in V",
        "d of R",
        "found in R",
    ];
    let head: Vec<&str> = head.chain(rest).collect();
    let model = |arm: &Arm| account.card.model(arm.model);
    let table = |pairs: Vec<(&Arm, &Arm)>| {
        let rows = pairs
            .into_iter()
            .filter_map(|(arm, other)| row(account, section.names, arm, other));
        rows.collect::<Vec<_>>()
    };

    document.heading(section.heading);
    document.text(section.text);
    let pairs = plan.compared().flat_map(|arm| {
        let against = model(arm).map_or(&[][..], |model| model.against).iter();
        against.filter_map(move |other| Some((arm, plan.beside(arm, other)?)))
    });
    document.table(&head, table(pairs.collect()));

    let steps = plan
        .compared()
        .filter(|arm| arm.preset == Preset::Paper && arm.tag.is_none());
    let steps = steps.filter_map(|arm| Some((arm, plan.beside(arm, model(arm)?.simpler?)?)));
    let steps: Vec<(&Arm, &Arm)> = steps.collect();
    let rows = table(steps.clone());
    if !rows.is_empty() {
        document.heading("One step at a time");
        document.text(section.steps);
        document.table(&head, rows);
        document.list(equal(account, &steps));
    }
    if plan.scale != Scale::Smoke {
        let gaps = plan
            .compared()
            .filter_map(|arm| gap(account, section.names, arm));
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

fn row(account: &Account<'_>, names: Columns<'_>, arm: &Arm, other: &Arm) -> Option<Vec<String>> {
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
    let mut row = cells(account, arm, names)?;
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
fn gap(account: &Account<'_>, names: Columns<'_>, arm: &Arm) -> Option<String> {
    let (card, metric) = (account.card, account.card.metric);
    let is_compared = card.model(arm.model)?.against.contains(&card.baseline);
    let baseline = account
        .plan
        .beside(arm, card.baseline)
        .filter(|_| is_compared)?;
    let v = account.results.compare(arm, baseline, Number::V)?.mean;
    let gap = account.results.compare(arm, baseline, Number::R)?.mean - v;
    let names = cells(account, arm, names)?;
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
