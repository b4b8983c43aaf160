//! `cargo xtask golden`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares the crates with reference values.
#[derive(Parser)]
#[command(name = "cargo xtask golden", bin_name = "cargo xtask golden")]
struct Arguments {
    /// A directory of golden cases [default: the cases of this crate]
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
    /// Fail on cases of a kind that no function computes, too
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let directory = arguments.check.unwrap_or_else(committed);
    match bochner_golden::check_directory(&directory) {
        Ok(report) => {
            println!("{report}");
            let served = !arguments.all || report.not_served() == 0;
            ExitCode::from(u8::from(report.failed() > 0 || !served))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The cases of the crate that cargo runs: two clones that share a target directory share this program.
fn committed() -> PathBuf {
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    running
        .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
        .join("cases")
}
