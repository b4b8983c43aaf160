//! A run that finds no data at all says so and fails; one that finds some of them does not.

use std::process::{Command, Output};

fn reproduce(suites: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args(suites)
        .args(["--offline", "--epochs", "1", "--out"])
        .arg(directory.path().join("results"))
        .env("XDG_CACHE_HOME", directory.path())
        .output()
        .unwrap()
}

#[test]
fn nothing_to_run_is_a_failure() {
    let run = reproduce(&["nodes"]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("nothing was run"), "{said}");
    for file in ["allx", "ally", "graph", "test.index", "tx", "ty", "x", "y"] {
        let address = format!("/ind.cora.{file}'");
        assert!(said.contains(&address), "{file}: {said}");
    }
}

#[test]
fn a_part_that_lacks_data_is_skipped() {
    let run = reproduce(&["nodes", "regression"]);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(run.status.code(), Some(0), "{said}");
    assert!(said.contains(" skipped  Cora") && !said.contains("nothing was run"));
}
