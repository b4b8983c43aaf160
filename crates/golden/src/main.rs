//! `cargo xtask golden`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_datasets::{DataStore, Policy};
use bochner_golden::{GoldenReport, check_directory};
use clap::Parser;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compares the crates with reference values.
#[derive(Parser)]
#[command(name = "cargo xtask golden", bin_name = "cargo xtask golden")]
struct Arguments {
    /// A directory of golden cases [default: the cases of this crate]
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
    /// The directory of the data files, for the cases about corpora [default: what the variable BOCHNER_DATA
    /// names, or a directory `data` beside that of the cases]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Fail on cases of a kind that no function computes, and on cases whose corpus is missing, too
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let directory = arguments.check.unwrap_or_else(committed);
    match check(&directory, arguments.data) {
        Ok(report) => {
            println!("{report}");
            let complete = report.not_served() + report.without_data() == 0;
            let succeeded = report.failed() == 0 && (complete || !arguments.all);
            ExitCode::from(u8::from(!succeeded))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(directory: &Path, data: Option<PathBuf>) -> Result<GoldenReport, Box<dyn Error>> {
    let store = DataStore::new(Policy::Offline);
    let data = data.or_else(|| std::env::var_os("BOCHNER_DATA").map(PathBuf::from));
    let store = match data.or_else(|| beside(directory)) {
        Some(data) => store.with_directory(data)?,
        None => store,
    };
    Ok(check_directory(directory, &store)?)
}

/// The directory of the data files that lies beside a directory of cases or beside the one above.
fn beside(directory: &Path) -> Option<PathBuf> {
    let above = directory.ancestors().skip(1).take(2);
    let mut data = above.map(|above| above.join("data"));
    data.find(|data| data.join("manifest.json").is_file())
}

/// The cases of the crate that cargo runs: two clones that share a target directory share this program.
fn committed() -> PathBuf {
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    running
        .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
        .join("cases")
}
