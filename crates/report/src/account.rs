//! The material of a page, and the parts that all pages have.

use crate::check::{Checked, Mark};
use crate::document::Document;
use crate::judge::{Judged, Verdict, passes_gate};
use crate::plan::{Arm, Plan};
use crate::row::{Artefacts, Row};
use crate::sections::Section;
use crate::suite::{Card, Set};
use crate::{Results, Unit, sections};
use std::collections::BTreeMap;
use std::fmt;

/// Everything a report on a suite is written from.
pub struct Account<'a> {
    /// The suite.
    pub card: &'static Card,
    /// The plan.
    pub plan: &'a Plan,
    /// The finished rows.
    pub results: &'a Results,
    /// The judged claims.
    pub claims: &'a [Judged],
    /// The checks that were made; none unless the scale is `smoke`, unchanged.
    pub checks: &'a [Checked],
    /// Sets that could not be had.
    pub skipped: &'a [Skipped],
    /// Paragraphs, and points that begin with an asterisk, for the top of the page.
    pub preface: Option<&'a str>,
    /// The number of epochs that all units were set to; `None` for those of the scale.
    pub epochs: Option<usize>,
    /// Further notes: changed epochs, units that failed.
    pub notes: &'a [String],
    /// The curves and pictures of a finished unit.
    pub artefacts: &'a dyn Fn(&Unit) -> Option<Artefacts>,
}

/// A data set that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in tables.
    pub set: &'static str,
    /// The places where it was looked for, or the fault in its files, and the remedy.
    pub reason: String,
    /// Whether a file is missing; otherwise one is there and wrong.
    pub is_missing: bool,
}

/// The rule of the verdicts, for readers of the claims.
const RULE: &str = "A claim is **reproduced** if its null hypothesis is rejected at 5 %, **contradicted** if that of the \
                    opposite is, and **undecided** otherwise. Runs are paired by split and seed, at least three. Estimates \
                    use t quantiles, with SE' where folds share training rows. The p-values are adjusted over the claims \
                    of this page (Holm). V-numbers and measures alone decide: R-numbers are shown, since the test part \
                    chose their epoch.";

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
        passes_gate(self.card, self.plan, self.results, arm.set) != Some(false)
    }

    /// Writes the report.
    pub fn document(&self) -> Document {
        let (card, scale) = (self.card, self.plan.scale);
        let mut document = Document::new(format!("{}, at scale {scale}", card.title));
        let preface = self.preface.unwrap_or_default().lines();
        let (points, paragraphs): (Vec<&str>, Vec<&str>) =
            preface.partition(|line| line.starts_with("* "));
        let paragraphs = paragraphs.into_iter().filter(|line| !line.is_empty());
        paragraphs.for_each(|line| document.text(line));
        document.list(points.iter().map(|point| point[2..].to_owned()).collect());
        document.text(card.opening);
        let scope = card.scopes[scale as usize];
        match self.epochs {
            None => document.text(scope),
            Some(epochs) => document.text(with_epochs(scope, epochs)),
        }
        sections::alarms(self, &mut document);
        self.judgement(&mut document);
        let write = |sections: &[Section], document: &mut Document| {
            sections
                .iter()
                .for_each(|section| section.write(self, document));
        };
        document.part("Pictures", |document| write(card.pictures, document));
        sections::behind_verdicts(self, &mut document);
        sections::gates(self, &mut document);
        write(card.tables, &mut document);
        self.conditions(&mut document);
        sections::waiting(self, &mut document);
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
        document.text(RULE);
        let row = |claim: &Judged| {
            let p_values = match claim.p_values {
                Some([own, opposite]) => format!("{}, {}", p_value(own), p_value(opposite)),
                None => sections::NOTHING.to_owned(),
            };
            let [name, text] = [claim.name, claim.text].map(str::to_owned);
            vec![
                name,
                text,
                claim.null.clone(),
                p_values,
                emphasised(&claim.verdict),
            ]
        };
        let rows = self.claims.iter().map(row).collect();
        let head = [
            "",
            "claim",
            "null hypothesis",
            "p: claim, opposite",
            "verdict",
        ];
        document.table(&head, rows);
    }

    /// Writes how much of the plan is finished, what was left out, and what was decided.
    fn conditions(&self, document: &mut Document) {
        let planned = self.plan.all();
        document.heading("What was run, and what was not");
        let rows = planned.iter().filter_map(|unit| self.results.row(unit));
        let rows: Vec<&Row> = rows.collect();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let mut points = vec![match rows.len() {
            0 => format!("None of {} units is finished.", planned.len()),
            n => format!(
                "{n} of {} units are finished, in {} of computing.",
                planned.len(),
                duration(seconds)
            ),
        }];
        points.extend(commits(&rows));
        points.extend(
            self.skipped
                .iter()
                .map(|skipped| format!("**{} was skipped**: {}.", skipped.set, skipped.reason)),
        );
        points.extend(self.notes.iter().cloned());
        points.extend(self.card.decided.iter().map(|choice| (*choice).to_owned()));
        document.list(points);
    }
}

/// The commits that the rows name, or that tables mix several.
fn commits(rows: &[&Row]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(&row.code_version).or_default() += 1;
    }
    match counts.len() {
        0 => None,
        1 => Some(format!("Code {}.", counts.into_keys().next()?)),
        n => {
            let counts = counts.iter().map(|(code, rows)| format!("{code} ({rows})"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            Some(format!(
                "**The tables mix rows of {n} commits**, with the number of rows: {counts}."
            ))
        }
    }
}

/// A text about a scale, with another number of epochs in the place of the scale's.
fn with_epochs(scope: &str, epochs: usize) -> String {
    let mut words: Vec<String> = scope.split(' ').map(str::to_owned).collect();
    for place in 1..words.len() {
        if words[place].starts_with("epochs") {
            words[place - 1] = epochs.to_string();
        }
    }
    words.join(" ")
}

/// A p-value with two digits that matter.
pub(crate) fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-4 => "< 0.0001".to_owned(),
        p if p < 0.01 => format!("{p:.4}"),
        p => format!("{p:.2}"),
    }
}

fn check_row(check: &Checked) -> Vec<String> {
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
