//! Models against each other in the mean over the sets.

use super::NOTHING;
use crate::claim::Averaged;
use crate::report::Document;
use crate::{Account, Scale};

/// What an average over sets is, for readers of its numbers.
const WHAT: &str = "Mean over the sets of the model's mean differences ± the standard error of that mean, from those of the sets; \
                    positive numbers are in favour of the model where a larger value is the better one. Two standard errors \
                    count.";

/// The numbers that verdicts on averages rest on, claim by claim. Nothing is written without any.
pub(crate) fn behind_verdicts(document: &mut Document, account: &Account<'_>) {
    let rows = account.claims.iter().flat_map(|claim| {
        let averages = claim.averages.iter();
        averages.map(|averaged| [vec![claim.name.to_owned()], cells(averaged)].concat())
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        document.heading("What the verdicts rest on");
        document.text(WHAT);
        document.table(
            &["claim", "model", "against", "sets", "d of V", "d of R"],
            rows,
        );
    }
}

/// Every model against the baseline in the mean over the sets that count, beside the paper's. Nothing is written at scale
/// `smoke`.
pub fn averaged_over_sets(document: &mut Document, account: &Account<'_>) {
    let (card, plan) = (account.card, account.plan);
    if plan.scale == Scale::Smoke {
        return;
    }
    let sets: Vec<&str> = account.sets().iter().map(|set| set.title).collect();
    let others = card
        .models
        .iter()
        .filter(|model| model.name != card.baseline);
    let rows = others.map(|model| {
        let of = (card, plan, account.results);
        let averaged = Averaged::of(of, [model.name, card.baseline], &sets);
        let mut cells = cells(&averaged);
        cells.insert(3, published(account, &averaged).unwrap_or(NOTHING.into()));
        cells
    });
    document.heading("Averaged over the sets");
    document.text(WHAT);
    document.table(
        &[
            "model",
            "against",
            "sets",
            "published d",
            "d of V",
            "d of R",
        ],
        rows.collect(),
    );
}

fn cells(averaged: &Averaged) -> Vec<String> {
    let names = [averaged.model, averaged.other].map(str::to_owned);
    let [sets, v, r] = match averaged.sets.is_empty() {
        true => [NOTHING; 3].map(str::to_owned),
        false => {
            let [v, r] = averaged.shown();
            [averaged.sets.join(", "), v, r]
        }
    };
    [&names[..], &[sets, v, r]].concat()
}

/// The paper's difference in the mean over the same sets.
fn published(account: &Account<'_>, averaged: &Averaged) -> Option<String> {
    let card = account.card;
    let on = |set: &&str| {
        let [own, other] = [averaged.model, averaged.other].map(|model| card.published(model, set));
        Some(own?.mean - other?.mean)
    };
    let differences: Option<Vec<f64>> = averaged.sets.iter().map(on).collect();
    let mean = crate::statistics::mean(&differences?).ok()?;
    Some(format!("{mean:+.0$}", card.metric.fine))
}
