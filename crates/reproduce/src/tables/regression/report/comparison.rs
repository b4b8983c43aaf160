//! Models against each other, split by split.

use super::super::{Arm, Model, Plan};
use super::Account;
use super::tables::{NOTHING, cells, comparable, names};
use crate::Scale;
use crate::report::Document;
use crate::statistics::Paired;
use crate::tables::{Number, Results};

const HEAD: [&str; 10] = [
    "set",
    "model",
    "preset",
    "splits",
    "against",
    "published d",
    "d of V",
    "found in V",
    "d of R",
    "found in R",
];

const STEPS: &str = "Pairs named before anything was run, in which one thing is added: a spectral \
                     mixture to GP (RBF), a second set of spectral points to IKA-S, a norm of its \
                     own to IKA-NS, the copula to IKAN. Reported, not judged.";

pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    let (plan, results) = (account.plan, account.results);
    document.heading("Against the Transformer, split by split");
    document.text(
        "d = error of the model - error of the other on the same split, starting from the same \
         seed: mean ± SE (SE'), wins of n. A difference counts from 2 SE. Published differences \
         are unpaired. The claims above judge IKAN-direct and MIKAN; what is found for the other \
         models is reported, not judged.",
    );
    let baselines = plan.arms().iter().flat_map(|arm| {
        let baselines = plan.baselines(arm).into_iter();
        baselines.map(move |baseline| (arm, baseline))
    });
    document.table(&HEAD, rows(account, baselines));
    let simpler = plan.arms().iter();
    let simpler = simpler.filter_map(|arm| Some((arm, plan.simpler(arm)?)));
    let steps = rows(account, simpler);
    if !steps.is_empty() {
        document.heading("One step at a time");
        document.text(STEPS);
        document.table(&HEAD, steps);
    }
    if plan.scale() != Scale::Smoke {
        document.list(gaps(plan, results));
    }
}

fn rows<'a>(
    account: &Account<'_>,
    pairs: impl Iterator<Item = (&'a Arm, &'a Arm)>,
) -> Vec<Vec<String>> {
    let rows = pairs.filter_map(|(arm, baseline)| row(account, arm, baseline));
    rows.collect()
}

fn row(account: &Account<'_>, arm: &Arm, baseline: &Arm) -> Option<Vec<String>> {
    let on = |number| account.results.compare(arm, baseline, number);
    let found = |paired: &Paired| match account.plan.scale() {
        Scale::Smoke => "not tested".to_owned(),
        _ => paired.finding().to_string(),
    };
    let (v, r) = (on(Number::V), on(Number::R)?);
    let published = comparable(arm)
        .zip(comparable(baseline))
        .map(|(p, b)| format!("{:+.3}", p.mean - b.mean));
    Some(cells(
        names(arm),
        [
            baseline.model.name().to_owned(),
            published.unwrap_or(NOTHING.into()),
            v.map_or(NOTHING.into(), |v| difference(&v)),
            v.map_or(NOTHING.into(), |v| found(&v)),
            difference(&r),
            found(&r),
        ],
    ))
}

fn difference(paired: &Paired) -> String {
    let wins = format!("{} of {}", paired.wins, paired.n);
    match (paired.error, paired.corrected_error) {
        (Some(error), Some(corrected)) => {
            format!("{:+.4} ± {error:.4} ({corrected:.4}), {wins}", paired.mean)
        }
        _ => format!("{:+.4}, {wins}", paired.mean),
    }
}

/// Names the models whose optimism differs from the Transformer's by as much as the models do.
fn gaps(plan: &Plan, results: &Results) -> Vec<String> {
    plan.arms()
        .iter()
        .filter(|arm| arm.model != Model::Transformer && !arm.model.is_process())
        .filter_map(|arm| {
            let baseline = plan.baseline(arm)?;
            let v = results.compare(arm, baseline, Number::V)?.mean;
            let gap = results.compare(arm, baseline, Number::R)?.mean - v;
            let [set, model, preset, splits] = &names(arm);
            (gap.abs() >= v.abs()).then(|| {
                format!(
                    "{set}, {model} ({preset}, {splits}): R - V differs from the Transformer's by \
                     {gap:+.4}, as much as the models differ ({v:+.4}); a comparison of best test \
                     errors says nothing here."
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::results;
    use super::super::super::{Cut, Plan};
    use super::*;
    use crate::report::Block;
    use crate::store::Row;
    use bochner_datasets::RegressionSet;

    #[test]
    fn the_pairs_named_in_advance_are_compared_and_no_process_with_the_transformer() {
        let plan = Plan::new(Scale::Desk, &[RegressionSet::Passenger], Cut::None);
        let results = results(&plan, |arm, split| {
            Some(0.3 + 0.001 * (arm.model as usize * split) as f64)
        });
        let account = Account {
            plan: &plan,
            results: &results,
            checks: &[],
            skipped: &[],
            notes: &[],
        };
        let mut document = Document::new("");
        write(&mut document, &account);
        let tables = document.blocks.iter().filter_map(|block| match block {
            Block::Table { rows, .. } => Some(rows),
            _ => None,
        });
        let tables: Vec<_> = tables.collect();
        let pairs = |table: &[Vec<String>]| {
            let pairs = table.iter().map(|row| (row[1].clone(), row[4].clone()));
            pairs.collect::<Vec<_>>()
        };
        let steps = [
            ("GP (SM)", "GP (RBF)"),
            ("IKA-NS", "IKA-S"),
            ("IKAN", "IKA-NS"),
            ("MIKAN", "IKAN"),
        ];
        let steps = steps.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(pairs(tables[1]), steps);
        // Eight attention models, two of them in two readings.
        let against = pairs(tables[0]);
        assert_eq!(against.len(), 10);
        assert!(against.iter().all(|(_, other)| other == "Transformer"));
        assert!(against.iter().all(|(model, _)| !model.starts_with("GP")));
    }

    #[test]
    fn an_optimism_as_large_as_the_difference_is_named() {
        let plan = Plan::new(Scale::Desk, &[RegressionSet::Co2], Cut::None);
        let even = results(&plan, |arm, _| Some(0.3 - 0.1 * arm.model as usize as f64));
        assert!(gaps(&plan, &even).is_empty());
        let tilted = even.mapped(|row| Row {
            r_number: row.r_number
                - if row.unit.variant == "MIKAN" {
                    2.0
                } else {
                    0.0
                },
            ..row
        });
        let named = gaps(&plan, &tilted);
        assert_eq!(named.len(), 1);
        assert!(named[0].starts_with("CO2, MIKAN"), "{}", named[0]);
    }
}
