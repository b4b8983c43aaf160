//! `cargo xtask reproduce`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_datasets::Policy;
use bochner_report::Scale;
use bochner_reproduce::suites;
use bochner_reproduce::{Config, Error, Shard};
use clap::{Parser, Subcommand};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The exit code that a shell reports for a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// Runs the experiments of the paper and reports paper, ours, difference and verdict.
#[derive(Parser)]
#[command(
    name = "cargo xtask reproduce",
    bin_name = "cargo xtask reproduce",
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Task>,
    #[arg(value_name = "SUITE", help = suites())]
    suites: Vec<String>,
    /// The size: smoke takes minutes, desk hours, paper wants a cluster
    #[arg(long, default_value = "smoke", value_parser = str::parse::<Scale>)]
    scale: Scale,
    /// The directory of data files, before the user's cache and the network
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The directory of results; finished units found there are not run again
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Take over the rows of equal descriptions from another --out; may be given several times
    #[arg(long, value_name = "DIR")]
    import: Vec<PathBuf>,
    /// Units that run at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Threads of all jobs together [default: the processor's]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Run the i-th of n parts; parts of one run may share an --out on one file system, and --import merges others
    #[arg(long, value_name = "i/n", default_value = "1/1", value_parser = str::parse::<Shard>)]
    shard: Shard,
    #[arg(long = "set", value_name = "NAME", help = sets())]
    sets: Vec<String>,
    /// Run only this model of the suites that have it, in any case; may be given several times. Performer, CAT, bipolar and
    /// Primal run in classification and regression only where they are named
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Never download anything
    #[arg(long)]
    offline: bool,
    /// Train for another number of epochs than the scale's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    epochs: Option<usize>,
    /// Seconds between two checkpoints of a running unit
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    checkpoint_every: f64,
}

#[derive(Subcommand)]
enum Task {
    /// List suites, sets and models, and which data files are there; nothing is run
    List {
        /// The directory of data files, before the user's cache
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Judge the rows of an archive by the rules of today and write its page; nothing is run
    Report {
        /// The archive: a directory with a rows.jsonl, such as docs/results/table4-paper, in which report.md and its
        /// pictures are written
        directory: PathBuf,
        /// Another archive whose rows the page shows as well; may be given several times
        #[arg(long, value_name = "DIR")]
        with: Vec<PathBuf>,
        /// Write report.html, too
        #[arg(long)]
        html: bool,
    },
}

/// The help on suites.
fn suites() -> String {
    let names = suites::names().join(", ");
    format!("The suites to run: {names} [default: all]")
}

/// The help on sets.
fn sets() -> String {
    let names = suites::trained().flat_map(|suite| suite.card.sets.iter().map(|set| set.name));
    let names: BTreeSet<&str> = names.collect();
    let names = Vec::from_iter(names).join(", ");
    format!(
        "Run only this data set of the suites that have it, in any case; may be given several times: {names}"
    )
}

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match arguments.command {
        None => {}
        Some(Task::List { data }) => {
            let config = Config {
                data,
                downloads: Policy::Offline,
                ..Config::default()
            };
            print!("{}", bochner_reproduce::list(&config.files()?));
            return Ok(ExitCode::SUCCESS);
        }
        Some(Task::Report {
            directory,
            with,
            html,
        }) => {
            print!("{}", bochner_reproduce::report(&directory, &with, html)?);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let config = config(arguments)?;
    // A training step asks for the memory that the last one gave back.
    bochner_numerics::memory::keep_freed_memory();
    let interrupt = listen()?;
    let done = bochner_reproduce::reproduce(&config, &interrupt)?;
    print!("{}", done.summary());
    Ok(if done.is_interrupted() {
        INTERRUPTED.into()
    } else if done.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn config(arguments: Arguments) -> Result<Config, Error> {
    let defaults = Config::default();
    let every = arguments.checkpoint_every;
    Ok(Config {
        suites: arguments.suites,
        scale: arguments.scale,
        sets: arguments.sets,
        models: arguments.models,
        data: arguments.data,
        downloads: if arguments.offline {
            Policy::Offline
        } else {
            Policy::Download
        },
        out: arguments.out,
        import: arguments.import,
        jobs: arguments.jobs,
        threads: arguments.threads.unwrap_or(defaults.threads),
        shard: arguments.shard,
        epochs: arguments.epochs,
        checkpoint_every: Duration::try_from_secs_f64(every).map_err(|_| Error::InvalidOption {
            option: "--checkpoint-every",
            given: every.to_string(),
            expected: "a number of seconds, zero or more".to_owned(),
        })?,
        code_version: code_version(&defaults.code_version),
    })
}

/// A flag that the first interrupt sets; the second ends the process at once.
fn listen() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
        eprintln!("saving after the running epoch; interrupt once more to stop at once");
    })?;
    Ok(interrupt)
}

/// The crate that cargo runs: two clones that share a target directory share this program.
fn crate_directory() -> PathBuf {
    let running = std::env::var_os("CARGO_MANIFEST_DIR");
    running.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The release, with the commit where there is one.
fn code_version(release: &str) -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.args(arguments).current_dir(crate_directory()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["describe", "--always", "--dirty", "--abbrev=12"]) else {
        return release.to_owned();
    };
    let committed = git(&["log", "-1", "--format=%ct"]).and_then(|seconds| seconds.parse().ok());
    let built = built(std::env::var_os("CARGO_MANIFEST_DIR"));
    version(release, &commit, built, committed)
}

/// When the program was built, in seconds since 1970; `None` where cargo runs it, which names the crate to it. Cargo
/// rebuilds what it runs, so a program that it left as it was is that of the commit.
fn built(by_cargo: Option<OsString>) -> Option<u64> {
    if by_cargo.is_some() {
        return None;
    }
    let file = std::env::current_exe().ok()?.metadata().ok()?;
    let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// If the program was built before HEAD was committed, the commit in its version gets the prefix `before-`.
fn version(release: &str, commit: &str, built: Option<u64>, committed: Option<u64>) -> String {
    let older = built
        .zip(committed)
        .is_some_and(|(built, committed)| built < committed);
    let before = if older { "before-" } else { "" };
    format!("{release}+{before}{commit}")
}
