//! Table 5, from a configuration to a report.
//!
//! Three stages. First what has no norm to choose, GAT among it: unless it is the published one,
//! nothing else means anything. Then what norms are chosen from, on a seed of its own; every shard runs
//! all of that, a dozen units that give the same bits everywhere, since without them it would not know
//! what its part of the rest is. Then everything, with the norms that validation chose.

use super::table::{self, TableRun};
use crate::assessment::keep;
use crate::runner::Outcome;
use crate::tables::nodes::report::write;
use crate::tables::nodes::{Cut, Nodes, Norms, Plan, SUITE, checks, claims};
use crate::tables::{Account, Results, Skipped, projection};
use crate::{Config, Error, Scale, Store, SuiteName, Unit};
use bochner_datasets::PlanetoidSet;
use std::sync::atomic::AtomicBool;

/// What is loaded and decided before anything is trained.
struct Prepared {
    suite: Nodes,
    skipped: Vec<Skipped>,
    sets: Vec<PlanetoidSet>,
    cut: Cut,
}

/// Runs what the configuration asks for and is not finished yet, and reports on all of it.
pub(super) fn run_all(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<TableRun, Error> {
    let prepared = prepare(config, store)?;
    let (sets, cut) = (&prepared.sets, prepared.cut);
    let train = |units: &[Unit]| table::train(config, store, interrupt, &prepared.suite, units);
    let first = compared(config, sets, cut, &Norms::default()).units();
    let mut outcome = train(&table::shard(config, &first))?;
    if !outcome.interrupted {
        let candidates = candidates(config, sets, cut).units();
        outcome.add(train(&table::wanted(config, candidates))?);
    }
    if !outcome.interrupted {
        let norms = chosen(config, store, sets, cut)?;
        let mut rest = compared(config, sets, cut, &norms).units();
        rest.retain(|unit| !first.contains(unit));
        outcome.add(train(&table::shard(config, &rest))?);
    }
    conclude(config, store, &prepared, outcome)
}

/// The norms that validation has chosen, where the candidates are finished.
fn chosen(config: &Config, store: &Store, sets: &[PlanetoidSet], cut: Cut) -> Result<Norms, Error> {
    let candidates = candidates(config, sets, cut);
    let results = Results::collect(&candidates.units(), store)?;
    Ok(Norms::choose(&candidates, &results))
}

fn prepare(config: &Config, store: &Store) -> Result<Prepared, Error> {
    let data = table::data(config)?;
    let mut sets = config.graphs();
    let (mut suite, skipped) = Nodes::load(&sets, &data)?;
    if config.scale == Scale::Smoke {
        suite.count(&data);
    }
    sets.retain(|&set| suite.has(set));
    let cut = projection::decide(config, store, "nodes/projection.json", |cut| {
        let norms = Norms::provisional(2.0);
        let mut arms = candidates(config, &sets, cut).arms().to_vec();
        arms.extend_from_slice(compared(config, &sets, cut, &norms).arms());
        Ok((arms, &suite))
    })?;
    Ok(Prepared {
        suite,
        skipped,
        sets,
        cut,
    })
}

fn conclude(
    config: &Config,
    store: &Store,
    prepared: &Prepared,
    outcome: Outcome,
) -> Result<TableRun, Error> {
    let (shown, results) = what_is_there(config, store, prepared)?;
    let checks = table::where_made_for(config, || {
        checks(&prepared.suite, &shown, &results, &prepared.skipped)
    });
    let account = Account {
        plan: &shown,
        results: &results,
        checks: &checks,
        skipped: &prepared.skipped,
        notes: &table::notes(config, prepared.cut, &outcome, SMOKE_SIZES),
    };
    // A picture that cannot be read is left out; the numbers do not depend on it.
    let document = write(&account, |unit| store.artefacts(unit).ok().flatten());
    let units = [shown.candidates().units(), shown.units()].concat();
    let rows = table::rows(&units, &results);
    Ok(TableRun {
        suite: SuiteName::Nodes,
        outcome,
        units: shown.units().len(),
        skipped: prepared.skipped.clone(),
        by_name: !config.sets.is_empty(),
        checks,
        claims: claims(&shown, &results),
        files: keep(config, store, SUITE, &document, &rows)?,
    })
}

/// The plan for the graphs that are asked for or that earlier runs have left results of, and these.
fn what_is_there(
    config: &Config,
    store: &Store,
    prepared: &Prepared,
) -> Result<(Plan, Results), Error> {
    let sets = PlanetoidSet::ALL;
    let candidates = candidates(config, &sets, prepared.cut);
    let mut results = Results::collect(&candidates.units(), store)?;
    let norms = Norms::choose(&candidates, &results);
    let all = compared(config, &sets, prepared.cut, &norms);
    results.extend(Results::collect(&all.units(), store)?);
    let mut shown = prepared.sets.clone();
    let there = all.arms().iter().filter(|arm| !results.of(arm).is_empty());
    shown.extend(there.map(|arm| arm.set));
    Ok((compared(config, &shown, prepared.cut, &norms), results))
}

fn candidates(config: &Config, sets: &[PlanetoidSet], cut: Cut) -> Plan {
    sized(config, Plan::of_candidates(config.scale, sets, cut))
}

fn compared(config: &Config, sets: &[PlanetoidSet], cut: Cut, norms: &Norms) -> Plan {
    sized(config, Plan::new(config.scale, sets, cut, norms))
}

fn sized(config: &Config, plan: Plan) -> Plan {
    match config.epochs {
        Some(epochs) => plan.with_epochs(epochs),
        None => plan,
    }
}

const SMOKE_SIZES: &str = "One seed, 16 spectral points, p = 2, 30 epochs.";
