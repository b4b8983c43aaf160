//! The outcome of a run of a suite, in words.

use crate::runner::Outcome;
use bochner_report::check::{Checked, Mark};
use bochner_report::judge::Judged;
use bochner_report::skipped::{Remedy, Skipped};
use std::fmt::Write;
use std::path::PathBuf;

/// The outcome of a run of a suite.
#[derive(Debug)]
pub struct SuiteRun {
    /// The suite.
    pub suite: &'static str,
    /// The units that were run.
    pub outcome: Outcome,
    /// The number of units there are to run or to show, in all parts of the list together.
    pub units: usize,
    /// Rows that were imported.
    pub imported: usize,
    /// Rows that were not imported: their ids, with the reasons.
    pub left_out: Vec<(String, String)>,
    /// Sets that were left out.
    pub skipped: Vec<Skipped>,
    /// Whether the sets were asked for by name.
    pub by_name: bool,
    /// The checks of scale `smoke`; none at other scales, with other epochs, or of some models alone.
    pub checks: Vec<Checked>,
    /// The claims of the paper.
    pub claims: Vec<Judged>,
    /// The report, in both forms, the rows and the artefacts.
    pub files: Vec<PathBuf>,
}

impl SuiteRun {
    /// Whether everything that was asked for ran and nothing that was checked failed.
    ///
    /// A set that cannot be had may be missing unless it was asked for by name; a wrong file never.
    pub fn is_good(&self) -> bool {
        let passed = |check: &Checked| !matches!(check.mark, Mark::Failed(_));
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
        if self.imported > 0 {
            let _ = writeln!(text, "imported  {} rows", self.imported);
        }
        for (id, reason) in &self.left_out {
            let _ = writeln!(text, "left out  {id}: {reason}");
        }
        for check in &self.checks {
            let (mark, seen) = match &check.mark {
                Mark::Passed(seen) => ("passed", seen),
                Mark::Failed(seen) => ("FAILED", seen),
                Mark::NotRun(seen) => ("not run", seen),
            };
            let _ = writeln!(text, "{mark:>8}  {} ({seen})", check.name);
        }
        for claim in &self.claims {
            let _ = writeln!(text, "{:>8}  {}: {}", claim.name, claim.text, claim.verdict);
            for found in &claim.evidence {
                let _ = writeln!(text, "          {found}");
            }
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
