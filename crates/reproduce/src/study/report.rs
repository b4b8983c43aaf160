//! The report of a study.

use super::{Allowed, Finding, Measure, SEED, Study, short};
use crate::run::SuiteRun;
use crate::runner::{Outcome, pool};
use crate::{Config, Error, Store};
use bochner_report::document::{Document, Picture};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// One measure as it is kept.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    suite: &'static str,
    scale: &'static str,
    /// The number of the part, under the name that the study gives its parts.
    #[serde(flatten)]
    part: BTreeMap<&'static str, usize>,
    title: &'static str,
    seed: u64,
    cases: usize,
    #[serde(flatten)]
    measure: &'a Measure,
    passed: bool,
    code_version: &'a str,
}

impl Study {
    /// Measures the parts and writes the report.
    pub(crate) fn run(
        &self,
        config: &Config,
        store: &Store,
        interrupt: &AtomicBool,
    ) -> Result<SuiteRun, Error> {
        let go_on = || !interrupt.load(Ordering::Relaxed);
        eprintln!("{}: {} parts", self.name, self.parts.len());
        let measured = pool(config.threads, 1)?.install(|| self.measure(config.scale, go_on));
        let findings = measured?;
        let rows = self.rows(config, &findings);
        let document = self.write(config, &findings);
        let files = store.publish(config.scale, self.name, &document, &rows)?;
        let of_finding = |finding: &Finding| {
            let name = self.name_of(finding);
            let measures = finding.measures.iter().map(cells);
            let lines = measures.map(|[what, value, allowed, verdict]| {
                let verdict = verdict.replace("**", "");
                format!("{verdict:>8}  {name}: {what}: {value} ({allowed})")
            });
            lines.collect::<Vec<_>>()
        };
        let mut summary: Vec<String> = findings.iter().flat_map(of_finding).collect();
        summary.extend((!go_on()).then(|| "interrupted; run it again".to_owned()));
        summary.extend(
            files
                .iter()
                .map(|file| format!(" written  {}", file.display())),
        );
        Ok(SuiteRun {
            suite: self.name,
            outcome: Outcome {
                interrupted: !go_on(),
                ..Outcome::default()
            },
            units: rows.len(),
            skipped: Vec::new(),
            passed: findings.iter().all(Finding::passed),
            summary,
        })
    }

    /// The measures of all parts as they are kept.
    pub(crate) fn rows<'a>(&self, config: &'a Config, findings: &'a [Finding]) -> Vec<Row<'a>> {
        let of = |finding: &'a Finding| {
            finding.measures.iter().map(|measure| Row {
                suite: self.name,
                scale: config.scale.name(),
                part: BTreeMap::from([(self.part, finding.number)]),
                title: finding.title,
                seed: SEED,
                cases: finding.cases,
                measure,
                passed: measure.passed(),
                code_version: &config.code_version,
            })
        };
        findings.iter().flat_map(of).collect()
    }

    /// The report.
    pub(crate) fn write(&self, config: &Config, findings: &[Finding]) -> Document {
        let title = format!("{}, at scale {}", self.title, config.scale);
        let mut document = Document::new(title);
        document.text((self.opening)(config.scale));
        document.table(
            &["", self.part, "cases", "first value and slopes", "verdict"],
            findings
                .iter()
                .map(|finding| self.overview(finding))
                .collect(),
        );
        for finding in findings {
            document.heading(format!("{}: {}", self.name_of(finding), finding.title));
            document.text(finding.statement);
            document.table(
                &["measured", "value", "allowed", "verdict"],
                finding.measures.iter().map(|m| cells(m).to_vec()).collect(),
            );
            document.list(finding.remarks.clone());
            let charts = finding.charts.iter().cloned().map(Picture::Chart);
            document.pictures("", charts.collect());
        }
        document.text(format!("Code {}.", config.code_version));
        document
    }

    /// The part's name and number, such as `Proposition 1`.
    fn name_of(&self, finding: &Finding) -> String {
        let (first, rest) = self.part.split_at(1);
        format!("{}{rest} {}", first.to_uppercase(), finding.number)
    }

    fn overview(&self, finding: &Finding) -> Vec<String> {
        let first = finding.measures.iter().take(1);
        let first = first.map(|measure| short(measure.value));
        let slopes = finding
            .measures
            .iter()
            .filter(|m| m.what.starts_with("slope"));
        let slopes = slopes.map(|slope| format!("slope {}", value(slope)));
        let shown: Vec<String> = first.chain(slopes).collect();
        vec![
            self.name_of(finding),
            finding.title.to_owned(),
            finding.cases.to_string(),
            shown.join(", "),
            verdict(finding.passed()),
        ]
    }
}

fn cells(measure: &Measure) -> [String; 4] {
    [
        measure.what.clone(),
        value(measure),
        measure.allowed.to_string(),
        match measure.allowed {
            Allowed::Anything if measure.passed() => String::new(),
            _ => verdict(measure.passed()),
        },
    ]
}

fn value(measure: &Measure) -> String {
    match measure.error {
        Some(error) => format!("{} ± {}", short(measure.value), short(error)),
        None => short(measure.value),
    }
}

fn verdict(passed: bool) -> String {
    if passed { "passed" } else { "**failed**" }.to_owned()
}
