//! The tasks that are calls of cargo.

use crate::{Ending, golden, tidy};
use bochner_numerics::instructions;
use std::ffi::OsString;
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

/// A call of cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// `cargo xtask test`.
pub(crate) fn test() -> Ending {
    steps(&[&|| run(&WITHOUT_TRAINING), &|| run(&WITH_PETGRAPH), &|| {
        run(&["test", "--release", "--workspace"])
    }])
}

const WITHOUT_TRAINING: [&str; 7] = [
    "test",
    "--release",
    "--package",
    "bochner-attention",
    "--package",
    "bochner-graph",
    "--no-default-features",
];

/// The other crates that compute, without the examples in their documentation.
const BESIDE_ATTENTION: [&str; 14] = [
    "test",
    "--release",
    "--lib",
    "--tests",
    "--package",
    "bochner-kernels",
    "--package",
    "bochner-spectral",
    "--package",
    "bochner-copula",
    "--package",
    "bochner-nn",
    "--package",
    "bochner-models",
];

/// Graphs of another crate, which are a feature that no crate here asks for.
const WITH_PETGRAPH: [&str; 6] = [
    "test",
    "--release",
    "--package",
    "bochner-graph",
    "--features",
    "petgraph",
];

/// `cargo xtask ci`: the tests come last, so that the output ends with their count.
pub(crate) fn ci() -> Ending {
    steps(&[
        &tidy::run,
        &|| with_tool("fmt", &["fmt", "--all", "--check"]),
        &|| with_tool("clippy", &CLIPPY),
        &docs,
        &|| golden::check(&root().join(golden::COMMITTED)),
        &slower_instructions,
        &lapack,
        &miri,
        &test,
    ])
}

const CLIPPY: [&str; 6] = [
    "clippy",
    "--workspace",
    "--all-targets",
    "--",
    "-D",
    "warnings",
];

/// Golden cases and the tests of all that computes with each of the instruction sets that are not chosen by
/// themselves.
fn slower_instructions() -> Ending {
    for set in instructions::available().skip(1) {
        let mut golden = Command::new(std::env::current_exe()?);
        golden.arg("golden").current_dir(root());
        for mut command in [golden, cargo(&WITHOUT_TRAINING), cargo(&BESIDE_ATTENTION)] {
            println!("\n> with {}={set}", instructions::VARIABLE);
            let code = finish(command.env(instructions::VARIABLE, set))?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The crates whose linear algebra the system's OpenBLAS can do, with it; left out where it is
/// missing, and said so, since the default build must not need it.
fn lapack() -> Ending {
    if !has_openblas() {
        println!("OpenBLAS (Debian: libopenblas-dev) is not installed: feature lapack left out");
        return Ok(ExitCode::SUCCESS);
    }
    let with = |task: &[&'static str], rest: &[&'static str]| {
        let crates = ["--package", "bochner-copula", "--package", "bochner-gp"];
        [task, &crates, &["--features", "lapack"], rest].concat()
    };
    let lint = with(&["clippy"], &["--all-targets", "--", "-D", "warnings"]);
    let test = with(&["test", "--release"], &[]);
    steps(&[&|| with_tool("clippy", &lint), &|| run(&test)])
}

/// Whether the C compiler, which links for Rust, finds the library.
fn has_openblas() -> bool {
    let library = "libopenblas.so";
    let found = Command::new("cc")
        .arg(format!("-print-file-name={library}"))
        .output();
    // What is not found is printed as it was asked for.
    found.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).trim() != library)
}

/// The crate with the unsafe code in Miri, where a nightly toolchain has it: small sizes on every
/// instruction set that Miri knows, which it takes for there if they are compiled for.
fn miri() -> Ending {
    // Without an input it asks for no permission to install what it lacks.
    let setup = in_miri(&["setup"]).stdin(Stdio::null()).output();
    if !setup.is_ok_and(|setup| setup.status.success()) {
        println!("Miri (rustup: nightly with miri and rust-src) is not installed: left out");
        return Ok(ExitCode::SUCCESS);
    }
    let test = |flags: &str, arguments: &[&str]| {
        let mut command = in_miri(&["test", "--package", "bochner-numerics"]);
        // The standard library's functions without the errors that Miri gives them at random.
        let flags = format!("-Zmiri-deterministic-floats -Zmiri-disable-isolation {flags}");
        finish(command.args(arguments).env("MIRIFLAGS", flags))
    };
    // Rayon's threads outlive the tests, and what they share keeps to the newer rules of borrowing.
    let rayon = "-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks";
    let without = ["--skip", "parallel::", "--skip", "operations::"];
    steps(&[
        &|| test("", &[&["--lib", "--"][..], &without].concat()),
        &|| test("", &["--doc", "--", "allocations::", "memory::"]),
        &|| test(rayon, &["--lib", "--", "parallel::"]),
    ])
}

/// A call of nightly's Miri, whatever toolchain runs this.
fn in_miri(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]);
    command.args(arguments).current_dir(root());
    if cfg!(target_arch = "x86_64") {
        let sets = "-C target-feature=+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl";
        command.env("RUSTFLAGS", sets).env("RUSTDOCFLAGS", sets);
    }
    // Where a panic is on purpose, looking up its lines takes seconds.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// `cargo xtask docs`.
pub(crate) fn docs() -> Ending {
    // The variable replaces the flags of `.cargo/config.toml`, so the header is named again.
    let flags = "--html-in-header docs/katex-header.html -D warnings";
    let mut command = cargo(&["doc", "--no-deps", "--workspace"]);
    finish(command.env("RUSTDOCFLAGS", flags))
}

/// Runs steps up to the first that fails.
fn steps(steps: &[&dyn Fn() -> Ending]) -> Ending {
    for step in steps {
        let code = step()?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a part of cargo that some machines lack; there it is left out, and said so.
fn with_tool(tool: &str, arguments: &[&str]) -> Ending {
    let probe = cargo(&[tool, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if probe.success() {
        return run(arguments);
    }
    println!("cargo {tool} is not installed: left out");
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &[&str]) -> Ending {
    finish(&mut cargo(arguments))
}

fn finish(command: &mut Command) -> Ending {
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
    let program = Path::new(command.get_program()).file_stem();
    let program = program.unwrap_or_default().to_string_lossy();
    println!("\n> {program} {}", arguments.join(" "));
    Ok(if command.status()?.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
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
}
