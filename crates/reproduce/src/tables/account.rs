//! What every report on a table is written from, and the parts that all of them have.

use super::{Check, Claim, Mark, Results, Skipped};
use crate::Unit;
use crate::report::Document;
use crate::statistics::Verdict;
use crate::store::Row;
use std::collections::BTreeSet;

/// Everything a report on a table is written from.
#[derive(Debug)]
pub struct Account<'a, P> {
    /// What was to be run.
    pub plan: &'a P,
    /// What is finished.
    pub results: &'a Results,
    /// The checks that were made; none unless the scale is `smoke`, unchanged.
    pub checks: &'a [Check],
    /// Sets that could not be had.
    pub skipped: &'a [Skipped],
    /// What else the reader must know: cuts, changed epochs, units that failed.
    pub notes: &'a [String],
}

impl<P> Account<'_, P> {
    /// The checks, if there are any, and what became of the claims.
    pub(super) fn judgement(&self, document: &mut Document, claims: Vec<Claim>) {
        if !self.checks.is_empty() {
            document.heading("Does the machinery work?");
            document.table(
                &["check", "outcome", "seen"],
                self.checks.iter().map(check_row).collect(),
            );
        }
        document.heading("Claims of the paper");
        let row = |claim: Claim| {
            let verdict = emphasised(&claim.verdict);
            vec![claim.name.to_owned(), claim.text.to_owned(), verdict]
        };
        let rows = claims.into_iter().map(row).collect();
        document.table(&["", "claim", "verdict"], rows);
    }

    /// How much of what was planned is finished, what was left out, and what was decided here.
    pub(super) fn conditions(&self, document: &mut Document, planned: &[Unit], choices: &[&str]) {
        document.heading("What was run, and what was not");
        let rows = planned.iter().filter_map(|unit| self.results.row(unit));
        let rows: Vec<&Row> = rows.collect();
        let versions: BTreeSet<&str> = rows.iter().map(|row| row.code_version.as_str()).collect();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let mut points = vec![format!(
            "{} of {} units are finished, in {} of computing; code {}.",
            rows.len(),
            planned.len(),
            duration(seconds),
            Vec::from_iter(versions).join(" and "),
        )];
        points.extend(self.skipped.iter().map(|skipped| {
            format!(
                "**{} was skipped**: {}. To have it: {}.",
                skipped.set, skipped.reason, skipped.remedy
            )
        }));
        points.extend(self.notes.iter().cloned());
        points.extend(choices.iter().map(|choice| (*choice).to_owned()));
        document.list(points);
    }
}

fn check_row(check: &Check) -> Vec<String> {
    let (outcome, seen) = match &check.mark {
        Mark::Passed(seen) => ("passed", seen),
        Mark::Failed(seen) => ("**failed**", seen),
        Mark::NotRun(seen) => ("not run", seen),
    };
    vec![check.name.to_owned(), outcome.to_owned(), seen.clone()]
}

fn emphasised(verdict: &Verdict) -> String {
    let text = verdict.to_string();
    match text.split_once(':') {
        Some((word, why)) => format!("**{word}**:{why}"),
        None => format!("**{text}**"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
