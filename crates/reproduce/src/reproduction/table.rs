//! What a run of any table of trained models does and shows.

use crate::runner::{Options, Outcome, run};
use crate::store::Row;
use crate::tables::{Check, Claim, Cut, Mark, Remedy, Results, Skipped};
use crate::{Config, Error, Scale, Store, Suite, SuiteName, Unit};
use bochner_datasets::DataStore;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What a run of a table has done.
#[derive(Debug)]
pub struct TableRun {
    /// Which table.
    pub suite: SuiteName,
    /// What the runner did.
    pub outcome: Outcome,
    /// How many units there are to run or to show, in all parts of the list together.
    pub units: usize,
    /// Sets that were left out.
    pub skipped: Vec<Skipped>,
    /// Whether the sets were asked for by name.
    pub by_name: bool,
    /// The checks of scale `smoke`; none at other scales, with other epochs, or of some models alone.
    pub checks: Vec<Check>,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// The report, in both forms, and the rows.
    pub files: Vec<PathBuf>,
}

/// Where data files are looked for.
pub(super) fn data(config: &Config) -> Result<DataStore, Error> {
    let data = DataStore::new(config.downloads);
    Ok(match &config.data {
        Some(directory) => data.with_directory(directory)?,
        None => data,
    })
}

/// The units of the models that are asked for.
pub(super) fn wanted(config: &Config, mut units: Vec<Unit>) -> Vec<Unit> {
    units.retain(|unit| config.wants(&unit.variant));
    units
}

/// Of these, those of a part of the list.
pub(super) fn shard(config: &Config, units: &[Unit]) -> Vec<Unit> {
    let mine = units.iter().enumerate();
    let mine = mine.filter(|(place, _)| config.shard.holds(*place));
    wanted(config, mine.map(|(_, unit)| unit.clone()).collect())
}

/// Runs the units that are not finished yet.
pub(super) fn train(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
    suite: &impl Suite,
    units: &[Unit],
) -> Result<Outcome, Error> {
    let options = Options {
        jobs: config.jobs,
        threads: config.threads,
        checkpoint_every: config.checkpoint_every,
        code_version: &config.code_version,
        interrupt,
    };
    run(units, suite, store, &options)
}

/// The checks, unless the run is not what they were made for.
pub(super) fn where_made_for(config: &Config, checks: impl FnOnce() -> Vec<Check>) -> Vec<Check> {
    match (config.scale, config.epochs, &config.models[..]) {
        (Scale::Smoke, None, []) => checks(),
        _ => Vec::new(),
    }
}

/// The rows of the units that are finished.
pub(super) fn rows(units: &[Unit], results: &Results) -> Vec<Row> {
    let rows = units.iter().filter_map(|unit| results.row(unit).cloned());
    rows.collect()
}

/// What the reader must know besides the numbers; `sizes` says what is special about `smoke`.
pub(super) fn notes<C: Cut>(
    config: &Config,
    cut: C,
    outcome: &Outcome,
    sizes: &str,
) -> Vec<String> {
    let mut notes = Vec::new();
    if config.scale == Scale::Desk && cut.name() != C::NONE.name() {
        notes.push(format!("To save time, {}.", cut.describe()));
    }
    if let Some(epochs) = config.epochs {
        notes.push(format!(
            "**Training was set to {epochs} epochs**, which is not the protocol of this scale."
        ));
    } else if config.scale == Scale::Smoke {
        notes.push(sizes.to_owned());
    }
    if outcome.interrupted {
        notes.push("The run was interrupted; run it again and it goes on.".to_owned());
    }
    let failed = outcome.failed.iter();
    notes.extend(failed.map(|(_, error)| format!("**Failed**: {error}.")));
    notes
}

impl TableRun {
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
                skipped.set, skipped.reason, skipped.remedy
            );
        }
        for file in &self.files {
            let _ = writeln!(text, " written  {}", file.display());
        }
        text
    }
}
