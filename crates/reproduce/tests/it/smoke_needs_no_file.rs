//! The suites whose smoke data are generated or built in run anywhere, and their checks pass.

use bochner_report::row::Row;
use bochner_reproduce::suites;
use std::path::Path;
use std::process::Command;

/// Runs suites at scale `smoke`, none of whose checks may fail; returns what the program said. The rows must have what the
/// suites' claims are judged by.
fn passes(arguments: &[&str], out: &Path) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args(arguments)
        .args(["--offline", "--out"])
        .arg(out)
        .env("XDG_CACHE_HOME", out.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}");
    assert_measured(out);
    said
}

/// Each measure that a claim names is in the rows of the models that it names: on its sets, or on those that scale `smoke` has
/// instead.
fn assert_measured(out: &Path) {
    let mut looked = 0;
    for suite in suites::trained() {
        let name = suite.card.name;
        let file = out.join("smoke").join(name).join("rows.jsonl");
        let Ok(rows) = std::fs::read_to_string(file) else {
            continue;
        };
        let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
        let rows: Vec<Row> = rows.collect();
        for claim in (suite.card.claims)() {
            let sets = claim.sets();
            let of_claim = looked;
            for model in claim.models() {
                let own = rows.iter().filter(|row| row.unit.variant == model);
                let (named, others): (Vec<&Row>, Vec<&Row>) =
                    own.partition(|row| sets.contains(&row.unit.set.as_str()));
                let own = if named.is_empty() { others } else { named };
                // A model that scale `smoke` leaves out has no rows.
                if own.is_empty() {
                    continue;
                }
                for measure in claim.measures() {
                    looked += 1;
                    let is_there = own.iter().all(|row| row.measures.contains_key(measure));
                    assert!(is_there, "{name}, {}: {measure} of {model}", claim.name);
                }
            }
            let needs = !claim.measures().is_empty();
            assert!(
                !needs || looked > of_claim,
                "{name}, {}: no rows",
                claim.name
            );
        }
    }
    assert!(looked > 0, "no rows of a claim with measures");
}

#[test]
fn sentences_are_generated_and_figures_are_drawn_without_any_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let suites = [
        "classification",
        "datapoints",
        "figure2",
        "figure4",
        "figure5",
        "time",
    ];
    let said = passes(&suites, &out);
    assert_eq!(said.matches("  passed  ").count(), 14, "{said}");
    for file in [
        "classification/report.html",
        "figure4/report.md",
        "figure2/figure2-mikan-paper.svg",
        "figure2/figure2-weights.csv",
        "figure4/figure4-error.svg",
        "figure5/figure5-mikan.svg",
    ] {
        assert!(out.join("smoke").join(file).is_file(), "{file}");
    }
}

#[test]
fn letters_are_translated_backwards_without_any_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let said = passes(&["translation"], &out);
    assert_eq!(said.matches("  passed  ").count(), 3, "{said}");
    for file in [
        "report.html",
        "figure3.csv",
        "figure3-reverse-encoder.svg",
        "figure3-reverse-cross.svg",
    ] {
        let file = out.join("smoke/translation").join(file);
        assert!(file.is_file(), "{}", file.display());
    }
    let report = std::fs::read_to_string(out.join("smoke/translation/report.md")).unwrap();
    for part in [
        "Some translations of reverse",
        "On resampled lines",
        "nrefs:1|case:mixed",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn the_first_pairs_of_multi30k_are_translated() {
    let data = std::env::var("BOCHNER_DATA");
    let data = data.expect("BOCHNER_DATA names the directory of the data files");
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let said = passes(&["translation", "--set", "multi30k", "--data", &data], &out);
    // The check of letters that are written backwards has none to look at.
    assert_eq!(said.matches("  passed  ").count(), 2, "{said}");
    let report = std::fs::read_to_string(out.join("smoke/translation/report.md")).unwrap();
    assert!(report.contains("Some translations of Multi30k"), "{report}");
}
