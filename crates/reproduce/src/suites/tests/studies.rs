//! Findings of studies at scale smoke, and the agreement of published rows and reports of scale desk.

use super::directory;
use crate::Config;
use crate::complexity::COMPLEXITY;
use crate::study::{Finding, Study};
use crate::suites::{Entry, SUITES};
use bochner_report::Scale;
use rayon::prelude::*;
use std::sync::LazyLock;

fn studies() -> impl Iterator<Item = &'static Study> {
    SUITES.iter().filter_map(|suite| match suite {
        Entry::Study(study) => Some(*study),
        Entry::Trained(_) => None,
    })
}

/// The findings of every study at scale smoke.
static SMOKE: LazyLock<Vec<(&Study, Vec<Finding>)>> = LazyLock::new(|| {
    let measured = |study: &'static Study| {
        let findings = study.measure(Scale::Smoke, || true);
        (study, findings.unwrap())
    };
    let all: Vec<_> = studies().collect();
    all.into_par_iter().map(measured).collect()
});

/// The statement of a study holds at scale smoke, where the scale judges it.
#[test]
fn studies_find_what_they_state() {
    for (study, findings) in SMOKE.iter() {
        assert_eq!(findings.len(), study.parts.len());
        for (finding, number) in findings.iter().zip(1..) {
            assert_eq!(finding.number, number, "{}", study.name);
            for measure in &finding.measures {
                assert!(measure.passed(), "{}, {number}: {measure:?}", study.name);
            }
        }
    }
}

/// The rows of a published directory, line by line, and as they are read.
fn published(study: &Study) -> Vec<(String, serde_json::Value)> {
    let path = format!(
        "{}/../../docs/results/{}-desk/rows.jsonl",
        env!("CARGO_MANIFEST_DIR"),
        study.name
    );
    let text = std::fs::read_to_string(path).unwrap();
    let read = |line: &str| (line.to_owned(), serde_json::from_str(line).unwrap());
    text.lines().map(read).collect()
}

/// The findings of published rows: the words are those of the code, the numbers and their bounds those of the rows.
fn findings(study: &Study, smoke: &[Finding]) -> Vec<Finding> {
    let rows = published(study);
    let of_part = |of: &Finding| {
        let own = rows.iter().filter(|(_, row)| row[study.part] == of.number);
        let own: Vec<_> = own.map(|(_, row)| row).collect();
        let measure = |row: &serde_json::Value| serde_json::from_value(row.clone()).unwrap();
        Finding {
            cases: own[0]["cases"].as_u64().unwrap() as usize,
            measures: own.into_iter().map(measure).collect(),
            ..of.clone()
        }
    };
    smoke.iter().map(of_part).collect()
}

/// The studies whose published rows are measures; those of Table 1 are counts and times one by one.
fn of_measures() -> impl Iterator<Item = &'static (&'static Study, Vec<Finding>)> {
    let all = SMOKE.iter();
    all.filter(|(study, _)| study.name != COMPLEXITY.name)
}

/// Rows that were edited are not those of any findings, or give another report.
#[test]
fn published_rows_and_reports_of_studies_come_out_of_the_numbers_in_the_rows() {
    for (study, smoke) in of_measures() {
        let rows = published(study);
        let findings = findings(study, smoke);
        let config = Config {
            scale: Scale::Desk,
            code_version: rows[0].1["code_version"].as_str().unwrap().to_owned(),
            ..Config::default()
        };
        let found = study.rows(&config, &findings);
        let found = found.iter().map(|row| serde_json::to_string(row).unwrap());
        let lines: Vec<String> = rows.into_iter().map(|(line, _)| line).collect();
        assert_eq!(found.collect::<Vec<_>>(), lines, "{}", study.name);
        let path = directory(&format!("{}-desk", study.name)).join("report.md");
        let report = std::fs::read_to_string(path).unwrap();
        let ours = study.write(&config, &findings).to_markdown();
        // The head of the first table alone has another word in the oldest report.
        let lines = |text: &str| {
            let body = text.lines().filter(|line| !line.starts_with("|  |"));
            body.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&ours), lines(&report), "{}", study.name);
    }
}
