//! `cargo xtask bench`.

use crate::Ending;
use crate::cargo::root;
use bochner_benches::{Instructions, Options, Python, instructions};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `bench`.
#[derive(Args)]
pub(crate) struct Arguments {
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
    /// How often ours and theirs take turns
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
    /// Hold ours to these instruction sets
    #[arg(long, value_name = "SETS", value_parser = ["avx512", "avx2", "portable"])]
    instructions: Option<String>,
    /// Count the instructions of small workloads under valgrind, with AVX2 unless told otherwise,
    /// and write them down
    #[arg(long, conflicts_with_all = ["filter", "peers", "json"])]
    count: bool,
    /// Write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures, and prints the table.
pub(crate) fn run(arguments: Arguments) -> Ending {
    if arguments.count {
        return count(arguments.instructions.as_deref().unwrap_or("avx2"));
    }
    let peers = match (arguments.peers, arguments.python) {
        (false, _) => None,
        (true, Some(python)) => Some(Python::at(&python)?),
        (true, None) => Some(Python::own(&root().join("target/peers"))?),
    };
    let report = bochner_benches::run(&Options {
        filter: arguments.filter,
        threads: arguments.threads,
        rounds: arguments.rounds.max(1),
        instructions: arguments.instructions,
        peers,
    })?;
    println!("{report}");
    if let Some(file) = arguments.json {
        std::fs::write(file, report.json()?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the counts are written down.
const COUNTS: &str = "docs/results/instructions.json";

fn count(instructions: &str) -> Ending {
    let file = root().join(COUNTS);
    let before = Instructions::read(&file).ok();
    let now = instructions::count(instructions)?;
    print!("{}", now.beside(before.as_ref()));
    now.write(&file)?;
    println!("written to {COUNTS}");
    Ok(ExitCode::SUCCESS)
}

/// Runs what is counted.
pub(crate) fn counted_case(place: usize, pass: usize, runs: u64) -> Ending {
    instructions::counted_case(place, pass, runs)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures one workload, for the process that measures all, and prints a line of JSON.
pub(crate) fn case(id: &str) -> Ending {
    println!("{}", bochner_benches::case(id)?.json()?);
    Ok(ExitCode::SUCCESS)
}
