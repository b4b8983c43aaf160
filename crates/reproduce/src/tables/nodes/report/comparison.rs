//! Models against each other, seed by seed.

use super::super::{Arm, Model, title};
use super::{Account, NOTHING};
use crate::Scale;
use crate::published;
use crate::report::Document;
use crate::statistics::Paired;
use crate::tables::Number;

const HEAD: [&str; 8] = [
    "set",
    "model",
    "against",
    "published d",
    "d of V",
    "found in V",
    "d of R",
    "found in R",
];

const STEPS: &str = "Pairs named before anything was run, in which one thing is added: a second set \
                     of spectral points to IKA-S, a norm of its own to IKA-NS, the copula to IKAN. \
                     Reported, not judged.";

pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    document.heading("Against GAT, seed by seed");
    document.text(
        "d = accuracy of the model - accuracy of the other on the same seed, in points: mean ± SE, \
         wins of n. A difference counts from 2 SE. Published differences are unpaired. The claims \
         above judge IKAN-direct and MIKAN; what is found for the other models is reported, not \
         judged.",
    );
    let arms = account.plan.arms();
    let others = arms.iter().filter(|arm| arm.model != Model::Gat);
    let rows = others.filter_map(|arm| row(account, arm, Model::Gat));
    document.table(&HEAD, rows.collect());
    let steps = arms.iter();
    let steps = steps.filter_map(|arm| row(account, arm, arm.model.simpler()?));
    let steps: Vec<_> = steps.collect();
    if !steps.is_empty() {
        document.heading("One step at a time");
        document.text(STEPS);
        document.table(&HEAD, steps);
    }
    if account.plan.scale() != Scale::Smoke {
        document.list(arms.iter().filter_map(|arm| gap(account, arm)).collect());
    }
}

fn row(account: &Account<'_>, arm: &Arm, other: Model) -> Option<Vec<String>> {
    let baseline = account.plan.arm(arm.set, other)?;
    let on = |number| account.results.compare(arm, baseline, number);
    let found = |paired: &Paired| match account.plan.scale() {
        Scale::Smoke => "not tested".to_owned(),
        _ => paired.finding().to_string(),
    };
    let (v, r) = (on(Number::V)?, on(Number::R)?);
    let published = |model: Model| published::nodes(model.name(), title(arm.set));
    let published = published(arm.model).zip(published(other));
    let published = published.map(|(model, other)| format!("{:+.1}", model.mean - other.mean));
    Some(vec![
        title(arm.set).to_owned(),
        arm.model.name().to_owned(),
        other.name().to_owned(),
        published.unwrap_or(NOTHING.into()),
        gain(&v),
        found(&v),
        gain(&r),
        found(&r),
    ])
}

/// A difference of errors as one of accuracies, in points.
fn gain(paired: &Paired) -> String {
    let wins = format!("{} of {}", paired.wins, paired.n);
    // Adding zero takes the sign from a negative zero.
    let points = -100.0 * paired.mean + 0.0;
    match paired.error {
        Some(error) => format!("{points:+.2} ± {:.2}, {wins}", 100.0 * error),
        None => format!("{points:+.2}, {wins}"),
    }
}

/// Says so if the optimism of a model differs from GAT's by as much as the models do.
fn gap(account: &Account<'_>, arm: &Arm) -> Option<String> {
    let gat = account.plan.arm(arm.set, Model::Gat)?;
    let on = |number| Some(account.results.compare(arm, gat, number)?.mean);
    let (v, r) = (on(Number::V)?, on(Number::R)?);
    let gap = r - v;
    (arm.model != Model::Gat && gap != 0.0 && gap.abs() >= v.abs()).then(|| {
        format!(
            "{}, {}: R - V differs from GAT's by {:+.2} points, as much as the models differ ({:+.2}); \
             a comparison of best test accuracies says nothing here.",
            title(arm.set),
            arm.model.name(),
            -100.0 * gap,
            -100.0 * v,
        )
    })
}
