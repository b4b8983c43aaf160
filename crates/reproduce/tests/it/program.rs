//! The program `reproduce`, as it is called.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The answer of the program.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A call whose results lie in a directory. It finds no data file, and no repository, whose commit would be part of the
/// rows: a commit while a test runs must not change them.
pub(crate) fn program(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    command
        .args(arguments)
        .args(["--offline", "--out"])
        .arg(out);
    command
        .env("XDG_CACHE_HOME", out)
        .env("GIT_DIR", "/dev/null");
    command
}

/// Runs the program to its end.
pub(crate) fn answer(command: &mut Command) -> Answer {
    let run = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer {
        code: run.status.code(),
        out: text(&run.stdout),
        err: text(&run.stderr),
    }
}

/// Starts the program without output.
pub(crate) fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Runs the program, which must succeed; returns what it says.
pub(crate) fn succeed(command: &mut Command) -> String {
    let answer = answer(command);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    answer.out
}
