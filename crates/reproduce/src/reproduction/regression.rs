//! Table 4, from a configuration to a report.

use crate::runner::{Options, Outcome, run};
use crate::store::Row;
use crate::tables::regression::report::{Account, write};
use crate::tables::regression::{
    Cut, Plan, Regression, Remedy, Skipped, checks, claims, projection, title,
};
use crate::tables::{Check, Claim, Mark, Results};
use crate::{Config, Error, Scale, Store, Unit};
use bochner_datasets::{DataStore, RegressionSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What a run of Table 4 has done.
#[derive(Debug)]
pub struct RegressionRun {
    /// What the runner did.
    pub outcome: Outcome,
    /// Sets that were left out.
    pub skipped: Vec<Skipped>,
    /// Whether the sets were asked for by name.
    pub by_name: bool,
    /// The checks of scale `smoke`; none at other scales, or with other epochs.
    pub checks: Vec<Check>,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// The report, in both forms, and the rows.
    pub files: Vec<PathBuf>,
}

/// Runs what the configuration asks for and is not finished yet, and reports on all of it.
pub(super) fn run_all(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<RegressionRun, Error> {
    let (plan, suite, skipped) = prepare(config, store)?;
    let units: Vec<Unit> = plan.units();
    let mine = units
        .iter()
        .enumerate()
        .filter(|(place, _)| config.shard.holds(*place))
        .map(|(_, unit)| unit.clone());
    let options = Options {
        jobs: config.jobs,
        threads: config.threads,
        checkpoint_every: config.checkpoint_every,
        code_version: &config.code_version,
        interrupt,
    };
    let outcome = run(&mine.collect::<Vec<_>>(), &suite, store, &options)?;
    conclude(config, store, &plan, outcome, skipped)
}

fn prepare(config: &Config, store: &Store) -> Result<(Plan, Regression, Vec<Skipped>), Error> {
    let data = DataStore::new(config.downloads);
    let data = match &config.data {
        Some(directory) => data.with_directory(directory)?,
        None => data,
    };
    let sets = config.regression_sets()?;
    let load = |cut| {
        let plan = sized(config, &sets, cut);
        let (suite, skipped) = Regression::load(&plan, &data);
        Ok::<_, Error>((plan.without(&skipped), suite, skipped))
    };
    let cut = match config.cut {
        Some(cut) => cut,
        None => projection::decide(config, store, |cut| {
            load(cut).map(|(plan, suite, _)| (plan, suite))
        })?,
    };
    load(cut)
}

fn conclude(
    config: &Config,
    store: &Store,
    plan: &Plan,
    outcome: Outcome,
    skipped: Vec<Skipped>,
) -> Result<RegressionRun, Error> {
    let mut results = Results::collect(&plan.units(), store)?;
    let shown = with_what_is_there(config, store, plan, &mut results)?;
    let checks = match (plan.scale(), config.epochs) {
        (Scale::Smoke, None) => checks(plan, &results),
        _ => Vec::new(),
    };
    let notes = notes(config, plan, &outcome);
    let account = Account {
        plan: &shown,
        results: &results,
        checks: &checks,
        skipped: &skipped,
        notes: &notes,
    };
    // A picture that cannot be read is left out; the numbers do not depend on it.
    let document = write(&account, |unit| store.artefacts(unit).ok().flatten());
    let rows: Vec<Row> = shown
        .units()
        .iter()
        .filter_map(|unit| results.row(unit).cloned())
        .collect();
    let file = |name: &str| format!("{}/{name}", plan.scale());
    let files = vec![
        store.write(&file("report.md"), document.to_markdown().as_bytes())?,
        store.write(&file("report.html"), document.to_html().as_bytes())?,
        store.export(&file("rows.jsonl"), &rows)?,
    ];
    Ok(RegressionRun {
        outcome,
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

fn notes(config: &Config, plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.scale() == Scale::Desk && plan.cut() != Cut::None {
        notes.push(format!("To save time, {}.", plan.cut().describe()));
    }
    if let Some(epochs) = config.epochs {
        notes.push(format!(
            "**Training was set to {epochs} epochs**, which is not the protocol of this scale."
        ));
    } else if plan.scale() == Scale::Smoke {
        notes.push(SMOKE_SIZES.to_owned());
    }
    if outcome.interrupted {
        notes.push("The run was interrupted; run it again and it goes on.".to_owned());
    }
    let failed = outcome.failed.iter();
    notes.extend(failed.map(|(_, error)| format!("**Failed**: {error}.")));
    notes
}

const SMOKE_SIZES: &str = "Two splits, 16 spectral points, 60 epochs; of Parkinsons every 10th \
                           row. The protocol asks for Passenger alone at this scale; the other \
                           sets run where they can be had.";

impl RegressionRun {
    /// Whether everything that was asked for ran and nothing that was checked failed.
    ///
    /// A set that cannot be had may be missing unless it was asked for by name; a wrong file never.
    pub fn is_good(&self) -> bool {
        let passed = |check: &Check| !matches!(check.mark, Mark::Failed(_));
        let wrong = |skipped: &Skipped| skipped.remedy == Remedy::Repair;
        self.outcome.failed.is_empty()
            && !self
                .skipped
                .iter()
                .any(|skipped| self.by_name || wrong(skipped))
            && (self.outcome.interrupted || self.checks.iter().all(passed))
    }

    /// A few lines for the terminal.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let outcome = &self.outcome;
        let _ = writeln!(
            text,
            "{} units run, {} finished before, {} failed{}",
            outcome.computed,
            outcome.found,
            outcome.failed.len(),
            if outcome.interrupted {
                "; interrupted, run it again to go on"
            } else {
                ""
            }
        );
        for check in &self.checks {
            let (mark, seen) = match &check.mark {
                Mark::Passed(seen) => ("passed", seen),
                Mark::Failed(seen) => ("FAILED", seen),
                Mark::NotRun(seen) => ("not run", seen),
            };
            let _ = writeln!(text, "{mark:>8}  {} ({seen})", check.name);
        }
        for claim in &self.claims {
            let _ = writeln!(text, "{:>8}  {}", claim.name, claim.verdict);
        }
        for skipped in &self.skipped {
            let _ = writeln!(
                text,
                " skipped  {}: {}\n          {}",
                title(skipped.set),
                skipped.reason,
                skipped.remedy
            );
        }
        for file in &self.files {
            let _ = writeln!(text, " written  {}", file.display());
        }
        text
    }
}
