//! Table 4, from a configuration to a report.

use super::table::{self, TableRun};
use crate::runner::Outcome;
use crate::tables::regression::report::write;
use crate::tables::regression::{Cut, Plan, Regression, checks, claims};
use crate::tables::{Account, Results, Skipped, projection};
use crate::{Config, Error, Store, SuiteName};
use bochner_datasets::RegressionSet;
use std::sync::atomic::AtomicBool;

/// Runs what the configuration asks for and is not finished yet, and reports on all of it.
pub(super) fn run_all(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<TableRun, Error> {
    let (plan, suite, skipped) = prepare(config, store)?;
    let mine = table::shard(config, &plan.units());
    let outcome = table::train(config, store, interrupt, &suite, &mine)?;
    conclude(config, store, &plan, outcome, skipped)
}

fn prepare(config: &Config, store: &Store) -> Result<(Plan, Regression, Vec<Skipped>), Error> {
    let data = table::data(config)?;
    let sets = config.regression_sets();
    let load = |cut| {
        let plan = sized(config, &sets, cut);
        let (suite, skipped) = Regression::load(&plan, &data);
        Ok::<_, Error>((plan.without(&skipped), suite, skipped))
    };
    let cut = projection::decide(config, store, "projection.json", |cut| {
        load(cut).map(|(plan, suite, _)| (plan.arms().to_vec(), suite))
    })?;
    load(cut)
}

fn conclude(
    config: &Config,
    store: &Store,
    plan: &Plan,
    outcome: Outcome,
    skipped: Vec<Skipped>,
) -> Result<TableRun, Error> {
    let mut results = Results::collect(&plan.units(), store)?;
    let shown = with_what_is_there(config, store, plan, &mut results)?;
    let checks = table::where_made_for(config, || checks(plan, &results));
    let account = Account {
        plan: &shown,
        results: &results,
        checks: &checks,
        skipped: &skipped,
        notes: &table::notes(config, plan.cut(), &outcome, SMOKE_SIZES),
    };
    // A picture that cannot be read is left out; the numbers do not depend on it.
    let document = write(&account, |unit| store.artefacts(unit).ok().flatten());
    let rows = table::rows(&shown.units(), &results);
    let file = |name: &str| format!("{}/{name}", plan.scale());
    let files = vec![
        store.write(&file("report.md"), document.to_markdown().as_bytes())?,
        store.write(&file("report.html"), document.to_html().as_bytes())?,
        store.export(&file("rows.jsonl"), &rows)?,
    ];
    Ok(TableRun {
        suite: SuiteName::Regression,
        outcome,
        units: shown.units().len(),
        skipped,
        by_name: !config.sets.is_empty(),
        checks,
        claims: claims(&shown, &results),
        files,
    })
}

/// The plan with the sets that earlier runs have left results of, which become part of `results`.
fn with_what_is_there(
    config: &Config,
    store: &Store,
    plan: &Plan,
    results: &mut Results,
) -> Result<Plan, Error> {
    let all = sized(config, &RegressionSet::ALL, plan.cut());
    results.extend(Results::collect(&all.units(), store)?);
    let mut sets = plan.sets();
    let there = all.arms().iter().filter(|arm| !results.of(arm).is_empty());
    sets.extend(there.map(|arm| arm.set));
    Ok(sized(config, &sets, plan.cut()))
}

fn sized(config: &Config, sets: &[RegressionSet], cut: Cut) -> Plan {
    let plan = Plan::new(config.scale, sets, cut);
    match config.epochs {
        Some(epochs) => plan.with_epochs(epochs),
        None => plan,
    }
}

const SMOKE_SIZES: &str = "Two splits, 16 spectral points, 60 epochs; of Parkinsons every 10th \
                           row. The protocol asks for Passenger alone at this scale; the other \
                           sets run where they can be had.";
