//! Models against each other in the mean over the sets.

use super::NOTHING;
use crate::claim::Averaged;
use crate::report::Document;
use crate::{Account, Scale};

/// What an average over sets is, for readers of its numbers.
const WHAT: &str = "Mean over the sets of the model's mean differences ± the standard error of that mean, from those of \
                    the sets. A positive d favours the model. It counts from two standard errors on.";

/// What a difference of a measure is, for readers of its numbers.
const MEASURES: &str = "d is the model's measure minus the other's, or minus the value asked for: mean ± SE (SE') over \
                        the units, then the number of units in which the model has more, or reaches the value. A \
                        positive d favours the claim. SE' corrects for training rows that folds share.";

/// The numbers that verdicts rest on, claim by claim. Nothing is written where they rest on single sets.
pub(crate) fn behind_verdicts(document: &mut Document, account: &Account<'_>) {
    let claims = || account.claims.iter();
    let averages = claims().flat_map(|claim| {
        let averages = claim.averages.iter();
        averages.map(|averaged| [vec![claim.name.to_owned()], cells(averaged)].concat())
    });
    let averages: Vec<Vec<String>> = averages.collect();
    let measured = claims().flat_map(|claim| {
        let measured = claim.measured.iter();
        measured.map(|found| {
            let names = [claim.name, &found.measure, &found.model, &found.other];
            [&names.map(str::to_owned)[..], &[found.shown()]].concat()
        })
    });
    let measured: Vec<Vec<String>> = measured.collect();
    if averages.len() + measured.len() > 0 {
        document.heading("What the verdicts rest on");
    }
    if !averages.is_empty() {
        document.text(WHAT);
        let head = ["claim", "model", "against", "sets", "d of V", "d of R"];
        document.table(&head, averages);
    }
    if !measured.is_empty() {
        document.text(MEASURES);
        document.table(&["claim", "measure", "model", "against", "d"], measured);
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
    // A model on request is in the plan only where it was asked for.
    let planned = |name| plan.arms.iter().any(|arm| arm.model == name);
    let others = card.models.iter();
    let others = others.filter(|model| model.name != card.baseline && planned(model.name));
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
