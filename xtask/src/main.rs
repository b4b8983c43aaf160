//! `cargo xtask`: the command line of the workspace.

mod bench;
mod cargo;
mod golden;
mod reproduce;
mod tidy;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a command ends with: the exit code, or why it could not run.
type Ending = Result<ExitCode, Box<dyn Error>>;

/// The tasks of the bochner workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs the experiments of the paper and reports paper, ours, difference and verdict.
    Reproduce(reproduce::Arguments),
    /// Measures what is fast, beside PyTorch and what the machine can do.
    Bench(bench::Arguments),
    /// One workload of `bench`.
    #[command(name = bochner_benches::CASE, hide = true)]
    BenchCase { id: String },
    /// One workload of `bench --count`.
    #[command(name = bochner_benches::instructions::COUNTED_CASE, hide = true)]
    BenchCountedCase {
        place: usize,
        pass: usize,
        runs: u64,
    },
    /// Runs all tests: every crate, attention and graphs without training layers, doc tests.
    Test,
    /// Runs everything that a change must pass, the tests last.
    Ci,
    /// Compares the crates with reference values.
    Golden {
        /// A directory of golden cases.
        #[arg(long, value_name = "DIR", default_value = golden::COMMITTED)]
        check: PathBuf,
    },
    /// Checks the walls between the crates and the rules of their sources.
    Tidy,
    /// Builds the documentation; a warning is an error.
    Docs,
}

fn main() -> ExitCode {
    let ending = match Arguments::parse().task {
        Task::Reproduce(arguments) => reproduce::run(arguments),
        Task::Bench(arguments) => bench::run(arguments),
        Task::BenchCase { id } => bench::case(&id),
        Task::BenchCountedCase { place, pass, runs } => bench::counted_case(place, pass, runs),
        Task::Test => cargo::test(),
        Task::Ci => cargo::ci(),
        Task::Golden { check } => golden::check(&check),
        Task::Tidy => tidy::run(),
        Task::Docs => cargo::docs(),
    };
    ending.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
