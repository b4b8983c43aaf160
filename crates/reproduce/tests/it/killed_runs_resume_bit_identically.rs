//! A run that is killed at any moment, any number of times, ends with the rows of a run that is
//! not; and neither threads nor jobs change a bit.

use crate::program::{answer, program, start, succeed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;
use tempfile::tempdir;

/// Deaths that the killed run must survive, each in another unit or another epoch.
const KILLS: usize = 5;

/// The models of the runs: with and without random draws.
const MODELS: [&str; 4] = ["--model", "Transformer", "--model", "MIKAN"];

/// A small run that saves a checkpoint after every epoch.
fn reproduce(out: &Path, more: &[&str]) -> Command {
    let mut command = program(&["regression", "--set", "passenger"], out);
    command.args(MODELS).args(["--checkpoint-every", "0"]);
    // The number of epochs may be given again.
    if !more.contains(&"--epochs") {
        command.args(["--epochs", "5"]);
    }
    command.args(more);
    command
}

fn finish(out: &Path, more: &[&str]) {
    succeed(&mut reproduce(out, more));
}

/// The results of a run that nothing disturbs.
fn undisturbed() -> &'static BTreeMap<String, String> {
    static RESULTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let out = tempdir().unwrap();
        finish(out.path(), &[]);
        results(out.path())
    });
    &RESULTS
}

/// The results by file name, without the time they took.
pub(super) fn results(out: &Path) -> BTreeMap<String, String> {
    let files = files(out, &["units", "artefacts"]).into_iter();
    files
        .map(|(name, text)| (name, without_seconds(&text)))
        .collect()
}

/// The whole files of rows and artefacts of all suites in these parts of a directory, by name.
pub(super) fn files(out: &Path, parts: &[&str]) -> BTreeMap<String, String> {
    let below = |directory: &str| {
        let entries = fs::read_dir(out.join(directory)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let paths = names.map(|name| format!("{directory}/{name}"));
        paths.collect::<Vec<String>>()
    };
    let suites = parts.iter().flat_map(|part| below(part));
    let files = suites.flat_map(|suite| below(&suite));
    let files = files.filter(|file| file.ends_with(".json") || file.ends_with(".jsonl"));
    files
        .map(|file| (file.clone(), fs::read_to_string(out.join(file)).unwrap()))
        .collect()
}

/// Rows without the time they took.
pub(super) fn without_seconds(rows: &str) -> String {
    let without = |row: &str| match row.split_once("\"seconds\":") {
        Some((before, after)) => format!("{before}{}\n", after.split_once(',').unwrap().1),
        None => format!("{row}\n"),
    };
    rows.lines().map(without).collect()
}

fn leftovers(out: &Path) -> Vec<String> {
    let checkpoints = out.join("checkpoints/regression");
    let entries = fs::read_dir(checkpoints).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

/// Starts the run and waits until it has saved what it had not saved before: then it is in the middle of a unit.
fn in_training(out: &Path) -> Child {
    let before = leftovers(out);
    let mut command = reproduce(out, &[]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    loop {
        let now = leftovers(out);
        if now.iter().any(|file| !before.contains(file)) {
            return child;
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "no checkpoint was seen"
        );
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn killed_runs_resume_bit_identically() {
    let killed = tempdir().unwrap();
    let expected = undisturbed();
    assert!(expected.len() >= 12, "{} files", expected.len());
    for _ in 0..KILLS {
        let mut child = in_training(killed.path());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    finish(killed.path(), &[]);
    assert_eq!(results(killed.path()), *expected);
    assert!(leftovers(killed.path()).is_empty());
}

#[test]
fn threads_and_jobs_do_not_change_results() {
    let (serial, parallel) = (tempdir().unwrap(), tempdir().unwrap());
    finish(serial.path(), &["--threads", "1"]);
    finish(parallel.path(), &["--threads", "3", "--jobs", "2"]);
    assert_eq!(results(serial.path()), *undisturbed());
    assert_eq!(results(parallel.path()), *undisturbed());
}

#[test]
fn shards_in_two_directories_are_merged_by_an_import() {
    let (first, second) = (tempdir().unwrap(), tempdir().unwrap());
    finish(first.path(), &["--shard", "1/2"]);
    finish(second.path(), &["--shard", "2/2"]);
    let expected = undisturbed();
    let (one, two) = (results(first.path()), results(second.path()));
    assert!(!one.is_empty() && one.len() + two.len() == expected.len());
    let import = second.path().to_str().unwrap();
    let said = succeed(&mut reproduce(first.path(), &["--import", import]));
    let rows = two.len() / 2;
    assert!(said.contains(&format!("imported  {rows} rows")), "{said}");
    let whole = format!("0 units run, {} finished before", expected.len() / 2);
    assert!(said.contains(&whole), "{said}");
    assert_eq!(results(first.path()), *expected);

    // Rows of other epochs are not those of this run.
    let other = tempdir().unwrap();
    let short = ["--epochs", "1", "--import", import];
    let said = succeed(&mut reproduce(other.path(), &short));
    assert!(!said.contains("imported"), "{said}");
    let left_out = said.lines().filter(|line| line.starts_with("left out  "));
    let reason = ": its epochs is 5, here 1";
    assert_eq!(
        left_out.filter(|line| line.ends_with(reason)).count(),
        rows,
        "{said}"
    );
}

/// Waits until the directory has as many files of checkpoints and finished units as this.
fn wait_for(out: &Path, count: usize) {
    let kept = || leftovers(out).len() + files(out, &["units"]).len();
    for _ in 0..60_000 {
        if kept() >= count {
            return;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("no more than {} files", kept());
}

#[test]
fn shards_share_a_directory_through_a_kill() {
    let out = tempdir().unwrap();
    let shard = |shard: &str| start(&mut reproduce(out.path(), &["--shard", shard]));
    let (mut first, mut second) = (shard("1/2"), shard("2/2"));
    wait_for(out.path(), 4);
    for (shard, epochs, refused) in [
        ("1/2", "5", "this shard of it, is writing to"),
        ("1/3", "5", "/2 of a run of regression at scale smoke"),
        (
            "2/2",
            "9",
            "only shards of one run, with equal options, share a directory",
        ),
    ] {
        let other = ["--shard", shard, "--epochs", epochs];
        let run = answer(&mut reproduce(out.path(), &other));
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains(refused), "{}", run.err);
    }
    second.kill().unwrap();
    second.wait().unwrap();
    let mut again = shard("2/2");
    assert!(again.wait().unwrap().success());
    assert!(first.wait().unwrap().success());
    assert_eq!(results(out.path()), *undisturbed());
    assert!(leftovers(out.path()).is_empty());

    // The reports of the last one have the rows of both.
    let rows = |out: &Path| {
        let file = out.join("smoke/regression/rows.jsonl");
        without_seconds(&fs::read_to_string(file).unwrap())
    };
    let whole = tempdir().unwrap();
    finish(whole.path(), &[]);
    assert_eq!(rows(out.path()), rows(whole.path()));
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_so() {
    let interrupted = tempdir().unwrap();
    let child = in_training(interrupted.path());
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(130));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("saving after the running epoch"), "{said}");
    assert!(
        interrupted
            .path()
            .join("smoke/regression/report.md")
            .is_file()
    );
    finish(interrupted.path(), &[]);
    assert_eq!(results(interrupted.path()), *undisturbed());
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let out = file.join("results");
    let run = answer(&mut reproduce(&out, &[]));
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains(out.to_str().unwrap()), "{}", run.err);
}
