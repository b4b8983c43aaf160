//! Models against each other in the mean over the sets.

use super::NOTHING;
use crate::account::p_value;
use crate::document::Document;
use crate::judge::average_over;
use crate::statistics::Estimate;
use crate::{Account, Number, Scale};

/// The explanation of averages over sets.
const AVERAGE: &str = "Mean over the sets of the model's mean differences ± the standard error of that mean, from those of \
                       the sets (SE' where folds share training rows). A positive d favours the model.";

/// The explanation of differences.
const DIFFERENCE: &str = "d is in favour of the claim, in the units of the tables: mean ± standard error (SE' where folds \
                          share training rows), or the number of runs that reach the value. In brackets stand the \
                          one-sided p-values of d and of its opposite, before any correction.";

/// The explanation of published effects, where there are any.
const POWER: &str = "Published d is the paper's, on the same sets. Power is the chance that this comparison by itself, before any \
                     correction, would be found with this many runs if published d were true and the error is the one seen. \
                     Without any effect the chance is";

/// The comparisons that verdicts rest on, claim by claim.
pub(crate) fn behind_verdicts(account: &Account<'_>, document: &mut Document) {
    let fine = account.card.metric.fine;
    let claims = account.claims.iter();
    let rows = claims.flat_map(|claim| {
        let evidence = claim.evidence.iter();
        evidence.map(|found| {
            let [own, opposite] = found.p_values.map(p_value);
            vec![
                claim.name.to_owned(),
                found.quantity.clone(),
                found.model.clone(),
                found.other.clone(),
                found.sets.join(", "),
                format!("{} ({own}, {opposite})", found.shown),
                found.in_r.clone().unwrap_or(NOTHING.into()),
                published(found.published.map(|effect| effect.gain), fine),
                match found.published {
                    Some(effect) => format!("{:.2}", effect.power),
                    None => NOTHING.to_owned(),
                },
            ]
        })
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("What the verdicts rest on");
    document.text(DIFFERENCE);
    let mut head = vec![
        "claim",
        "quantity",
        "model",
        "against",
        "sets",
        "d",
        "d of R, shown only",
        "published d",
        "power",
    ];
    let mut effects = account.claims.iter().flat_map(|claim| &claim.evidence);
    match effects.find_map(|found| found.published) {
        Some(effect) => document.text(format!("{POWER} {:.3}.", effect.level)),
        None => {
            // Columns without any content.
            rows.iter_mut().for_each(|row| row.truncate(row.len() - 2));
            head.truncate(head.len() - 2);
        }
    }
    document.table(&head, rows);
}

/// A gain of the paper's with its sign, or nothing.
fn published(gain: Option<f64>, fine: usize) -> String {
    gain.map_or(NOTHING.into(), |gain| format!("{gain:+.fine$}"))
}

/// Every model against the baseline in the mean over the sets that count, beside the paper's. Nothing is written at scale
/// `smoke`.
pub fn averaged_over_sets(account: &Account<'_>, document: &mut Document) {
    let (card, plan) = (account.card, account.plan);
    if plan.scale == Scale::Smoke {
        return;
    }
    let sets: Vec<&str> = account.sets().iter().map(|set| set.title).collect();
    // A model on request is in the plan only where it was asked for.
    let planned = |name| plan.arms.iter().any(|arm| arm.model == name);
    let others = card.models.iter();
    let others = others.filter(|model| model.name != card.baseline && planned(model.name));
    let rows = others.map(|model| {
        let pair = [model.name, card.baseline];
        let on = |number| average_over((card, plan, account.results), pair, &sets, number);
        let shown = |found: Option<(Estimate, Vec<&'static str>)>| {
            found.map_or(NOTHING.into(), |(average, _)| {
                card.metric.estimate(&average)
            })
        };
        let v = on(Number::V);
        let counted = v.as_ref().map(|(_, sets)| sets.clone()).unwrap_or_default();
        vec![
            model.name.to_owned(),
            card.baseline.to_owned(),
            match counted.is_empty() {
                true => NOTHING.to_owned(),
                false => counted.join(", "),
            },
            published(card.published_gain(pair, 1.0, &counted), card.metric.fine),
            shown(v),
            shown(on(Number::R)),
        ]
    });
    document.heading("Averaged over the sets");
    document.text(AVERAGE);
    let head = [
        "model",
        "against",
        "sets",
        "published d",
        "d of V",
        "d of R",
    ];
    document.table(&head, rows.collect());
}
