//! The suites whose smoke data are generated or built in run anywhere, and their checks pass.

use std::path::Path;
use std::process::Command;

/// Runs suites at scale `smoke`, all of whose checks must pass; returns what the program said.
fn passes(suites: &[&str], out: &Path) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args(suites)
        .args(["--offline", "--out"])
        .arg(out)
        .env("XDG_CACHE_HOME", out.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}");
    said
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
    assert_eq!(said.matches("  passed  ").count(), 21, "{said}");
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
    assert_eq!(said.matches("  passed  ").count(), 5, "{said}");
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
