//! Rows and artefacts are taken over by a command, and then their units are finished and their pictures drawn.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn imported_rows_are_not_run_again() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/table4-desk");
    let directory = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args([
            "regression",
            "--set",
            "passenger",
            "--scale",
            "desk",
            "--cut",
            "none",
        ])
        .args(["--offline", "--out"])
        .arg(directory.path())
        .arg("--import")
        .arg(&published)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(said.contains("420 rows imported"), "{said}");
    assert!(
        said.contains("0 units run, 130 finished before, 0 failed"),
        "{said}"
    );

    // All rows are shown and written out again, also those of sets that were not asked for.
    let sorted = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let written = directory.path().join("desk/regression/rows.jsonl");
    assert_eq!(sorted(&written), sorted(&published.join("rows.jsonl")));
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
