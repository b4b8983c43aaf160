//! What every report on a suite is written from, and the parts that all of them have.

use crate::claim::gate;
use crate::plan::{Arm, Plan};
use crate::report::Document;
use crate::statistics::Verdict;
use crate::store::{Artefacts, Row};
use crate::suite::{Card, Set, Suite};
use crate::{Check, Judged, Mark, Results, Skipped, Unit, sections};
use std::collections::BTreeSet;
use std::fmt;

/// Everything a report on a suite is written from.
pub struct Account<'a> {
    /// The suite.
    pub card: &'static Card,
    /// What was to be run.
    pub plan: &'a Plan,
    /// What is finished.
    pub results: &'a Results,
    /// What became of the claims.
    pub claims: &'a [Judged],
    /// The checks that were made; none unless the scale is `smoke`, unchanged.
    pub checks: &'a [Check],
    /// Sets that could not be had.
    pub skipped: &'a [Skipped],
    /// What else the reader must know: cuts, changed epochs, units that failed.
    pub notes: &'a [String],
    /// The curves and pictures of a finished unit.
    pub artefacts: &'a dyn Fn(&Unit) -> Option<Artefacts>,
}

impl fmt::Debug for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at scale {}", self.card.name, self.plan.scale)
    }
}

impl Account<'_> {
    /// The sets of the plan, in the order of the card.
    pub fn sets(&self) -> Vec<&'static Set> {
        let there = self.plan.sets();
        let sets = self.card.sets.iter();
        sets.filter(|set| there.contains(&set.title)).collect()
    }

    /// Whether the set of an arm may be judged, as far as is known.
    pub fn is_adequate(&self, arm: &Arm) -> bool {
        gate::passes(self.card, self.plan, self.results, arm.set) != Some(false)
    }

    /// Writes the report.
    pub fn document(&self, suite: &dyn Suite) -> Document {
        let (card, scale) = (self.card, self.plan.scale);
        let mut document = Document::new(format!("{}, at scale {scale}", card.title));
        document.text(card.opening);
        document.text(card.scopes[scale as usize]);
        sections::alarms(&mut document, self);
        self.judgement(&mut document);
        document.part("Pictures", |document| suite.pictures(self, document));
        sections::behind_verdicts(&mut document, self);
        suite.report(self, &mut document);
        document
    }

    /// The checks, if there are any, and what became of the claims.
    fn judgement(&self, document: &mut Document) {
        if !self.checks.is_empty() {
            document.heading("Does the machinery work?");
            document.table(
                &["check", "outcome", "seen"],
                self.checks.iter().map(check_row).collect(),
            );
        }
        document.heading("Claims of the paper");
        let row = |claim: &Judged| {
            let verdict = emphasised(&claim.verdict);
            vec![claim.name.to_owned(), claim.text.to_owned(), verdict]
        };
        let rows = self.claims.iter().map(row).collect();
        document.table(&["", "claim", "verdict"], rows);
    }

    /// How much of what was planned is finished, what was left out, and what was decided here.
    pub fn conditions(&self, document: &mut Document) {
        let planned = self.plan.reported();
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
        points.extend(self.card.decided.iter().map(|choice| (*choice).to_owned()));
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
