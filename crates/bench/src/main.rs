//! `cargo xtask bench`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_bench::{Base, Error, Instructions, Options, Python, instructions};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures what is fast, beside PyTorch and what the machine can do.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    case: Option<Case>,
    /// Run only the workloads whose name and shape hold all of these, such as `softmax ,2048,`
    #[arg(value_name = "PART")]
    filter: Vec<String>,
    /// Threads of ours and of theirs
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Run the same in PyTorch, alternately with ours
    #[arg(long)]
    peers: bool,
    /// A Python with what the peers need [default: installed in target/peers]
    #[arg(long, value_name = "PATH", requires = "peers")]
    python: Option<PathBuf>,
    /// Compare with the commit REF too: test the crates that differ (not those that build on them), build both, and
    /// let them take turns
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Number of turns of each side [default: 2; 6 with --base]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Hold ours to these instruction sets
    #[arg(long, value_name = "SETS", value_parser = ["avx512", "avx2", "portable"])]
    instructions: Option<String>,
    /// Count the instructions of small workloads under valgrind, with AVX2 unless told otherwise,
    /// and write them down
    #[arg(long, conflicts_with_all = ["filter", "peers", "json", "base"])]
    count: bool,
    /// Write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The command by which the program starts itself in another process.
#[derive(Subcommand)]
enum Case {
    /// Measures one workload, or runs one of its passes some times.
    #[command(name = bochner_bench::CASE, hide = true)]
    Case {
        id: String,
        #[arg(long, requires = "runs")]
        pass: Option<usize>,
        #[arg(long, requires = "pass")]
        runs: Option<u64>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.case {
        None => run(arguments),
        Some(Case::Case { id, pass, runs }) => match pass.zip(runs) {
            Some((pass, runs)) => bochner_bench::repeat(&id, pass, runs),
            None => bochner_bench::case(&id)
                .and_then(|measured| measured.json())
                .map(|line| println!("{line}")),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, and prints the table.
fn run(arguments: Arguments) -> Result<(), Error> {
    if arguments.count {
        return count(arguments.instructions.as_deref().unwrap_or("avx2"));
    }
    let peers = match (arguments.peers, arguments.python) {
        (false, _) => None,
        (true, Some(python)) => Some(Python::at(&python)?),
        (true, None) => Some(Python::own(&root().join("target/peers"))?),
    };
    let usual = if arguments.base.is_some() { 6 } else { 2 };
    let base = arguments.base.map(|base| Base::build(&root(), &base));
    let options = Options {
        filter: arguments.filter,
        threads: arguments.threads,
        rounds: arguments.rounds.unwrap_or(usual) as usize,
        instructions: arguments.instructions,
        peers,
        base: base.transpose()?,
    };
    let report = bochner_bench::run(&options)?;
    println!("{report}");
    if let Some(file) = arguments.json {
        std::fs::write(file, report.json()?)?;
    }
    Ok(())
}

/// The file of the counts.
const COUNTS: &str = "docs/results/instructions.json";

fn count(instructions: &str) -> Result<(), Error> {
    let file = root().join(COUNTS);
    let before = Instructions::read(&file).ok();
    let now = instructions::count(instructions)?;
    print!("{}", now.beside(before.as_ref()));
    now.write(&file)?;
    println!("written to {COUNTS}");
    Ok(())
}

/// The directory of the workspace in which cargo runs this program.
fn root() -> PathBuf {
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    running
        .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
        .join("../..")
}
