//! Rows and artefacts are taken over by a command, and then their units are finished and their pictures drawn.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn imported_rows_are_not_run_again() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let regression = |out: &Path, import: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
        command.args([
            "regression",
            "--set",
            "passenger",
            "--epochs",
            "1",
            "--offline",
        ]);
        command.arg("--out").arg(out);
        if let Some(directory) = import {
            command.arg("--import").arg(directory);
        }
        let run = command.output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}{wrong}");
        let rows = fs::read_to_string(out.join("smoke/regression/rows.jsonl")).unwrap();
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.sort();
        (said, rows)
    };
    let (_, rows) = regression(own.path(), None);
    let finished = own.path().join("smoke/regression");
    let (said, imported) = regression(other.path(), Some(&finished));
    assert!(said.contains("39 rows imported"), "{said}");
    let done = "0 units run, 39 finished before, 0 failed";
    assert!(said.contains(done), "{said}");
    assert_eq!(imported, rows);
}

#[test]
fn figures_are_drawn_from_imported_artefacts() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let figure = |out: &Path, import: &[&Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
        command.args(["figure2", "--epochs", "1", "--offline", "--out"]);
        command.arg(out);
        for directory in import {
            command.arg("--import").arg(directory);
        }
        let run = command.output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success(), "{said}");
        let weights = fs::read_to_string(out.join("smoke/figure2/figure2-weights.csv")).unwrap();
        (said, weights)
    };
    let (_, weights) = figure(own.path(), &[]);
    assert!(weights.lines().count() > 100, "{weights}");
    let left = own.path().join("smoke/figure2");
    let (said, drawn) = figure(other.path(), &[&left]);
    assert!(said.contains("0 units run, 6 finished before"), "{said}");
    assert_eq!(drawn, weights);
}
