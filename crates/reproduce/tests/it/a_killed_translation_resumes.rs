//! A translator that is killed in training ends with the row, the translations and the traces of one that is not, whose
//! kept weights are of several epochs.

use crate::killed_runs_resume_bit_identically::{alone, files, without_seconds};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

fn reproduce(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    command
        .args([
            "translation",
            "--set",
            "reverse",
            "--model",
            "MIKAN",
            "--offline",
        ])
        .args(["--epochs", "2", "--checkpoint-every", "0", "--out"])
        .arg(out);
    alone(&mut command);
    command
}

fn results(out: &Path) -> BTreeMap<String, String> {
    let files = files(out, &["units", "artefacts"]).into_iter();
    files
        .map(|(name, text)| (name, without_seconds(&text)))
        .collect()
}

#[test]
fn a_killed_translation_resumes_bit_identically() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(reproduce(whole.path()).status().unwrap().success());
    let expected = results(whole.path());
    // A unit with a row and artefacts.
    assert_eq!(expected.len(), 2);

    let checkpoints = killed.path().join("checkpoints/translation");
    let mut child = reproduce(killed.path()).spawn().unwrap();
    while std::fs::read_dir(&checkpoints).map_or(0, Iterator::count) < 2 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "no checkpoint was seen"
        );
        sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(results(killed.path()).len() < expected.len());
    assert!(reproduce(killed.path()).status().unwrap().success());
    assert_eq!(results(killed.path()), expected);
}
