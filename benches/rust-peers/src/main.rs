//! Softmax attention beside what Rust programs use otherwise on a processor: burn with `burn-flex`, candle, and
//! ruvector-attention.
//!
//! The libraries share inputs, threads and allocator in one process, and take turns. Nothing is timed unless the
//! outputs, and the gradients of queries, keys and values, agree.

#![allow(clippy::print_stderr, clippy::print_stdout)]

// Files of the benches, without all that these depend on.
#[path = "../../src/clock.rs"]
mod clock;
mod form;
mod library;
mod machine;
#[path = "../../src/report/number.rs"]
mod number;
mod page;
mod report;
#[expect(
    dead_code,
    reason = "the verdict on slowdowns is for comparisons with an earlier commit"
)]
#[path = "../../src/statistics.rs"]
mod statistics;

use bochner_numerics::memory::keep_freed_memory;
use clap::Parser;
use clock::Clock;
use form::Pass;
use machine::Machine;
use rayon::ThreadPoolBuilder;
use report::{Report, Row};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Times softmax attention of bochner, burn, candle and ruvector-attention in turns, once their results agree.
#[derive(Parser)]
struct Arguments {
    /// How often the libraries take turns
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
    /// Write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure nothing: write the results under docs/results/rust-peers into the table of docs/compare.md
    #[arg(long, conflicts_with_all = ["rounds", "json"])]
    tables: bool,
}

/// Any error: the person at the desk reads the message.
type Error = Box<dyn std::error::Error>;

/// Batch, heads, length, width of queries and keys, width of values.
type Shape = [usize; 5];

const SHAPES: [Shape; 2] = [[4, 8, 512, 64, 64], [1, 8, 2048, 64, 64]];

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.tables {
        return page::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"));
    }
    let report = measured(arguments.rounds)?;
    println!("{}", report.table());
    if let Some(file) = &arguments.json {
        fs::write(file, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

fn measured(rounds: usize) -> Result<Report, Error> {
    // Before there are threads: afterwards the allocator's settings may not change.
    keep_freed_memory();
    ThreadPoolBuilder::new()
        .use_current_thread()
        .build_global()?;
    let threads = rayon::current_num_threads();
    if candle_core::utils::get_num_threads() != threads {
        return Err("set RAYON_NUM_THREADS: candle would use another number of threads".into());
    }
    let (clock, mut rows) = (Clock::start(), Vec::new());
    for shape in SHAPES {
        for pass in [Pass::Forward, Pass::Training] {
            eprintln!("rust-peers: {} of {shape:?}", pass.name());
            rows.push(Row::measured(pass, shape, rounds)?);
        }
    }
    let others = clock.zip(Clock::start());
    Ok(Report {
        machine: Machine::here(),
        threads,
        rounds,
        others_cpu: others.map(|(then, now)| now.others(&then)),
        rows,
    })
}
