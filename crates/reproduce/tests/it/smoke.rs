//! One run of all suites at scale smoke without any file, which many tests look at: its checks pass, its rows have what claims
//! need, and its pages have their parts.

use crate::program::{program, succeed};
use bochner_report::row::Row;
use bochner_reproduce::suites::{self, SUITES};
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The run: the directory of its results, and what the program said.
pub(crate) static SMOKE: LazyLock<(PathBuf, String)> = LazyLock::new(|| {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("smoke");
    // The files of an earlier run are of another program.
    let _ = fs::remove_dir_all(&out);
    let said = succeed(&mut program(&["--jobs", "2"], &out));
    (out.join("smoke"), said)
});

/// The rows of a suite in the run.
pub(crate) fn rows<T: DeserializeOwned>(suite: &str) -> Vec<T> {
    lines(&SMOKE.0.join(suite).join("rows.jsonl"))
}

/// The lines of a file, as they are read.
pub(crate) fn lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap();
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

#[test]
fn all_suites_run_without_any_file_and_no_check_fails() {
    let (out, said) = &*SMOKE;
    assert!(
        !said.contains("FAILED") && !said.contains("  failed  "),
        "{said}"
    );
    for suite in SUITES {
        let name = suite.name();
        assert!(out.join(name).join("report.html").is_file(), "{name}");
        // The one that has no graph without a file.
        let has_rows = !rows::<serde_json::Value>(name).is_empty();
        assert_eq!(has_rows, name != "nodes", "{name}");
    }
    assert!(said.contains(" skipped  Cora"), "{said}");
    for suite in suites::trained().filter(|suite| suite.card.name != "nodes") {
        let head = format!("{}\n", suite.card.name);
        let mut runs = said.split("\n\n");
        let run = runs.find(|run| run.starts_with(&head)).unwrap();
        // One check is that of every suite.
        let passed = run.matches("  passed  ").count();
        assert_eq!(passed, suite.checks.len() + 1, "{run}");
    }
    for file in [
        "figure2/figure2-mikan-paper.svg",
        "figure2/figure2-weights.csv",
        "figure4/figure4-error.svg",
        "figure5/figure5-mikan.svg",
        "translation/figure3.csv",
        "translation/figure3-reverse-encoder.svg",
        "translation/figure3-reverse-cross.svg",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let report = fs::read_to_string(out.join("translation/report.md")).unwrap();
    for part in [
        "Some translations of reverse",
        "On resampled lines",
        "nrefs:1|case:mixed",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

/// Each measure that a claim names is in the rows of the models that it names: on its sets, or on those that scale `smoke` has
/// instead.
#[test]
fn rows_have_the_measures_that_claims_name() {
    let mut looked = 0;
    for suite in suites::trained().filter(|suite| suite.card.name != "nodes") {
        let name = suite.card.name;
        let rows: Vec<Row> = rows(name);
        for claim in (suite.card.claims)() {
            let (sets, before) = (claim.sets(), looked);
            for model in claim.models() {
                let own = rows.iter().filter(|row| row.unit.variant == model);
                let (named, others): (Vec<&Row>, Vec<&Row>) =
                    own.partition(|row| sets.contains(&row.unit.set.as_str()));
                // A model that scale `smoke` leaves out has no rows.
                for row in if named.is_empty() { others } else { named } {
                    for measure in claim.measures() {
                        looked += 1;
                        let is_there = row.measures.contains_key(measure);
                        assert!(is_there, "{name}, {}: {measure} of {model}", claim.name);
                    }
                }
            }
            let has_rows = claim.measures().is_empty() || looked > before;
            assert!(has_rows, "{name}, {}: no rows", claim.name);
        }
    }
    assert!(looked > 0);
}
