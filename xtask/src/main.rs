//! `cargo xtask`: the command line of the workspace.
//!
//! It depends on clap alone, so that it is built in seconds: what computes is a program of its own crate, which
//! cargo builds when it is asked for.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cargo;
mod ci;
mod tidy;

use cargo::Profile;
use clap::{Parser, Subcommand};
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

/// The result of a command: the exit code, or the reason that it could not run.
type Ending = Result<ExitCode, Box<dyn Error>>;

/// The tasks of the bochner workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs the experiments of the paper and reports paper, ours, difference and verdict
    #[command(disable_help_flag = true)]
    Reproduce(Rest),
    /// Measures what is fast, beside PyTorch and what the machine can do
    #[command(disable_help_flag = true)]
    Bench(Rest),
    /// Compares the crates with reference values
    #[command(disable_help_flag = true)]
    Golden(Rest),
    /// Runs all tests: one build of the workspace, then the examples in the documentation
    Test,
    /// Runs everything that a change must pass, the tests first
    Ci {
        /// Also run what takes long: kills and a full disk, OpenBLAS (feature lapack), Miri, many more generated cases,
        /// licences (cargo-deny), a SLURM job array
        #[arg(long)]
        full: bool,
    },
    /// Formats all sources
    Fmt,
    /// Checks the walls between the crates and the rules of their sources
    Tidy,
    /// Builds the documentation; a warning is an error
    Docs,
}

/// The arguments of a program, which reads them itself.
#[derive(clap::Args)]
struct Rest {
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let ending = match Arguments::parse().task {
        Task::Reproduce(rest) => {
            let profile = Profile::for_reproduction(&rest.arguments);
            cargo::program("bochner-reproduce", profile, &rest.arguments)
        }
        Task::Bench(rest) => cargo::program("bochner-bench", Profile::Release, &rest.arguments),
        Task::Golden(rest) => cargo::program("bochner-golden", Profile::Release, &rest.arguments),
        Task::Test => ci::test(),
        Task::Ci { full } => ci::ci(full),
        Task::Fmt => ci::format(&[]),
        Task::Tidy => tidy::run(),
        Task::Docs => ci::docs(),
    };
    ending.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
