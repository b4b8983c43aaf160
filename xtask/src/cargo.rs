//! Calls of cargo.

use crate::Ending;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The workspace's directory: that of the xtask that cargo runs. Two clones that share a target directory
/// share this program too, so where it was compiled counts only where cargo runs something else.
pub(crate) fn root() -> PathBuf {
    above(std::env::var_os("CARGO_MANIFEST_DIR"))
}

fn above(running: Option<OsString>) -> PathBuf {
    let running = running.map(PathBuf::from);
    let xtask = running.filter(|package| package.ends_with("xtask"));
    let xtask = xtask.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    xtask.parent().unwrap_or(&xtask).to_owned()
}

fn anywhere() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A call of cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = anywhere();
    command.args(arguments).current_dir(root());
    command
}

/// The optimisation of a program that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// That of the tests, which is compiled in half the time.
    Dev,
    /// All of it, for runs that take longer than compiling.
    Release,
}

impl Profile {
    /// The profile for a run of the reproduction: its scale `smoke` ends before a release would be compiled.
    pub(crate) fn for_reproduction(arguments: &[OsString]) -> Self {
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        let apart = words.windows(2).filter(|pair| pair[0] == "--scale");
        let joined = words
            .iter()
            .filter_map(|word| word.strip_prefix("--scale="));
        match apart
            .map(|pair| pair[1])
            .chain(joined)
            .any(|scale| scale != "smoke")
        {
            true => Self::Release,
            false => Self::Dev,
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &[],
            Self::Release => &["--release"],
        }
    }
}

/// Builds the program of a package and becomes it, where the caller stands, so that relative paths are the
/// caller's, and interrupts and exit codes the program's.
pub(crate) fn program(package: &str, profile: Profile, arguments: &[OsString]) -> Ending {
    let mut command = anywhere();
    command
        .args(["run", "--package", package])
        .args(profile.arguments())
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .arg("--")
        .args(arguments);
    become_it(&mut command)
}

#[cfg(unix)]
fn become_it(command: &mut Command) -> Ending {
    Err(std::os::unix::process::CommandExt::exec(command).into())
}

#[cfg(not(unix))]
fn become_it(command: &mut Command) -> Ending {
    let code = command.status()?.code();
    Ok(code.map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

/// Says what is called, calls it in the workspace and waits.
pub(crate) fn run(arguments: &[&str]) -> Ending {
    finish(&mut cargo(arguments))
}

pub(crate) fn finish(command: &mut Command) -> Ending {
    announce(command);
    Ok(ending(command.status()?.success()))
}

/// Calls like [`finish`] a command that runs tests, prints its output and adds up the counts of tests in it. Fails if no
/// test ran, since its filter names none that is there.
pub(crate) fn finish_tests(command: &mut Command, counts: &mut Counts) -> Ending {
    announce(command);
    let before = counts.ran();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().expect("the output is piped");
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        counts.add(&line);
    }
    let succeeded = child.wait()?.success();
    let ran = counts.ran() > before;
    if succeeded && !ran {
        println!("no test ran");
    }
    Ok(ending(succeeded && ran))
}

fn announce(command: &Command) {
    let set = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value?.to_string_lossy());
        Some(format!("{name}={value} "))
    });
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
    let program = Path::new(command.get_program()).file_stem();
    let program = program.unwrap_or_default().to_string_lossy();
    let set: String = set.collect();
    println!("\n> {set}{program} {}", arguments.join(" "));
}

fn ending(is_good: bool) -> ExitCode {
    match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs steps up to the first that fails.
pub(crate) fn steps(steps: &[&dyn Fn() -> Ending]) -> Ending {
    for step in steps {
        let code = step()?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Tests that ran.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
}

impl Counts {
    fn ran(&self) -> usize {
        self.passed + self.failed
    }

    /// Adds the numbers of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ..`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let (number, what) = count.trim().split_once(' ').unwrap_or_default();
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clone_that_runs_counts_before_the_one_that_compiled() {
        assert_eq!(above(Some("/clone/xtask".into())), Path::new("/clone"));
        for elsewhere in [None, Some("/clone/crates/nn".into())] {
            assert!(above(elsewhere).join("xtask/src/cargo.rs").is_file());
        }
    }

    #[test]
    fn long_runs_alone_wait_for_a_release() {
        for (words, profile) in [
            (&[][..], Profile::Dev),
            (&["report", "docs/results/table4-paper"], Profile::Dev),
            (&["nodes", "--scale", "smoke"], Profile::Dev),
            (&["nodes", "--scale", "desk"], Profile::Release),
            (&["--scale=paper", "nodes"], Profile::Release),
        ] {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(Profile::for_reproduction(&arguments), profile, "{words:?}");
        }
    }

    #[test]
    fn a_call_that_runs_no_test_fails() {
        for (line, expected) in [
            (
                "test result: ok. 0 passed; 0 failed; 2 ignored",
                ExitCode::FAILURE,
            ),
            (
                "test result: ok. 1 passed; 0 failed; 2 ignored",
                ExitCode::SUCCESS,
            ),
        ] {
            let mut echo = Command::new("echo");
            let code = finish_tests(echo.arg(line), &mut Counts::default());
            assert_eq!(code.unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn the_tests_of_several_programs_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            counts.add(line);
        }
        let expected = Counts {
            passed: 13,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(counts, expected);
    }
}
