//! What is written about the propositions.

use super::{Effort, Finding, Measure, SEED, SUITE, measure, short};
use crate::assessment::{Assessment, keep};
use crate::report::{Document, Picture};
use crate::runner::pool;
use crate::{Config, Error, Store};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// One measure as it is kept.
#[derive(Serialize)]
struct Row<'a> {
    suite: &'static str,
    scale: &'static str,
    proposition: usize,
    title: &'static str,
    seed: u64,
    cases: usize,
    #[serde(flatten)]
    measure: &'a Measure,
    passed: bool,
    code_version: &'a str,
}

/// Measures the propositions and writes the report.
pub(crate) fn run(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<Assessment, Error> {
    let effort = Effort::of(config.scale);
    let go_on = || !interrupt.load(Ordering::Relaxed);
    eprintln!("propositions: {} random cases each", effort.cases);
    let findings = pool(config.threads, 1)?.install(|| measure(&effort, go_on))?;
    let document = write(config, &effort, &findings);
    let files = keep(config, store, SUITE, &document, &rows(config, &findings))?;
    let mut table = vec![vec!["".to_owned(), "measured".to_owned()]];
    table[0].extend(["value", "allowed", "verdict"].map(str::to_owned));
    for finding in &findings {
        let cells = finding.measures.iter().map(cells);
        table.extend(cells.map(|cells| [vec![name(finding)], cells].concat()));
    }
    Ok(Assessment {
        suite: SUITE,
        table,
        passed: findings.iter().all(Finding::passed),
        interrupted: !go_on(),
        files,
    })
}

fn rows<'a>(config: &'a Config, findings: &'a [Finding]) -> Vec<Row<'a>> {
    let of = |finding: &'a Finding| {
        finding.measures.iter().map(|measure| Row {
            suite: SUITE,
            scale: config.scale.name(),
            proposition: finding.number,
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
pub fn write(config: &Config, effort: &Effort, findings: &[Finding]) -> Document {
    let mut document = Document::new(format!("The propositions, at scale {}", config.scale));
    document.text(format!(
        "{} random cases of each proposition, in dimensions 1 to 64, in double precision, seed \
         {SEED}. Both sides of every statement are computed by the crates' own public functions. \
         Identities must hold to the tolerance of all double precision tests, 1e-9.",
        effort.cases
    ));
    document.table(
        &[
            "",
            "proposition",
            "cases",
            "largest error or slope",
            "verdict",
        ],
        findings.iter().map(overview).collect(),
    );
    for finding in findings {
        document.heading(format!("{}: {}", name(finding), finding.title));
        document.text(finding.statement);
        document.table(
            &["measured", "value", "allowed", "verdict"],
            finding.measures.iter().map(cells).collect(),
        );
        document.list(finding.remarks.clone());
        let charts = finding.charts.iter().cloned().map(Picture::Chart);
        document.pictures("", charts.collect());
    }
    document.text(format!("Code {}.", config.code_version));
    document
}

fn name(finding: &Finding) -> String {
    format!("Proposition {}", finding.number)
}

fn overview(finding: &Finding) -> Vec<String> {
    let first = &finding.measures[0];
    let slopes = finding
        .measures
        .iter()
        .filter(|m| m.what.starts_with("slope"));
    let mut shown = vec![short(first.value)];
    shown.extend(slopes.map(|slope| format!("slope {}", value(slope))));
    vec![
        name(finding),
        finding.title.to_owned(),
        finding.cases.to_string(),
        shown.join(", "),
        verdict(finding.passed()),
    ]
}

fn cells(measure: &Measure) -> Vec<String> {
    vec![
        measure.what.clone(),
        value(measure),
        measure.allowed.to_string(),
        verdict(measure.passed()),
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

#[cfg(test)]
mod tests {
    use super::super::Allowed;
    use super::*;
    use crate::Scale;

    #[test]
    fn rows_are_written_like_the_published_ones() {
        let published = include_str!("../../../../docs/results/propositions-desk/rows.jsonl");
        let findings = [Finding {
            number: 1,
            title: "softmax attention decomposes",
            statement: "",
            cases: 1024,
            measures: vec![Measure::new(
                "largest relative error, pair by pair",
                9.037215420448774e-14,
                Allowed::AtMost(1e-9),
            )],
            remarks: vec![],
            charts: vec![],
        }];
        let config = Config {
            scale: Scale::Desk,
            code_version: "0.1.0+4356f9a7bcbe".into(),
            ..Config::default()
        };
        let row = serde_json::to_string(&rows(&config, &findings)[0]).unwrap();
        assert_eq!(Some(row.as_str()), published.lines().next());
        assert_eq!(overview(&findings[0])[0], "Proposition 1");
    }
}
