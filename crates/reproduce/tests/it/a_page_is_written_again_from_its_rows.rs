//! The page of a directory of rows is written again by a command that runs nothing.

use crate::program::succeed;
use crate::smoke::SMOKE;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn pictures_and_tables_are_those_of_the_run() {
    let (run, directory) = (SMOKE.0.join("figure2"), tempfile::tempdir().unwrap());
    for name in ["rows.jsonl", "artefacts.jsonl"] {
        fs::copy(run.join(name), directory.path().join(name)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    let said = succeed(command.arg("report").arg(directory.path()));
    let claim = "diversity: MIKAN's heads differ more";
    assert!(said.contains(claim), "{said}");
    let read = |page: &Path, name: &str| fs::read_to_string(page.join(name)).unwrap();
    let weights = read(&run, "figure2-weights.csv");
    assert!(weights.lines().count() > 100);
    assert_eq!(read(directory.path(), "figure2-weights.csv"), weights);
    let tables = |page: &Path| {
        let report = read(page, "report.md");
        let lines = report.lines();
        let lines = lines.filter(|line| line.starts_with("| generated |"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(tables(&run).len() > 3);
    assert_eq!(tables(directory.path()), tables(&run));
}
