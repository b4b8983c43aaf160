//! Rows name the commit of the code; a program that is older than the commit says so, unless cargo runs it.

use crate::program::{program, succeed};
use std::fs;
use std::process::Command;

/// The version in the rows of a run in a repository whose commit is of this date.
fn version(committed: &str, is_run_by_cargo: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    let repository = directory.path().join(".git");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let git = git.args(arguments).current_dir(directory.path());
        let git = git.env("GIT_DIR", &repository);
        succeed(git.env("GIT_COMMITTER_DATE", committed))
    };
    git(&["init", "--quiet"]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "a"];
    git(&[&author[..], &commit].concat());
    let out = directory.path().join("results");
    let mut command = program(&["cat"], &out);
    command.env("GIT_DIR", &repository);
    match is_run_by_cargo {
        true => command.env("CARGO_MANIFEST_DIR", directory.path()),
        false => command.env_remove("CARGO_MANIFEST_DIR"),
    };
    succeed(&mut command);
    let rows = fs::read_to_string(out.join("smoke/cat/rows.jsonl")).unwrap();
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    row["code_version"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_that_is_older_than_the_commit_says_so() {
    let release = format!("{}+", env!("CARGO_PKG_VERSION"));
    let [past, future] = ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"];
    for (committed, by_cargo, is_before) in [
        (past, false, false),
        (future, false, true),
        (future, true, false),
    ] {
        let version = version(committed, by_cargo);
        let commit = version.strip_prefix(&release).expect(&version);
        assert_eq!(commit.starts_with("before-"), is_before, "{version}");
    }
}
