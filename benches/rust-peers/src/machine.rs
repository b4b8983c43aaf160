//! What the program ran on, and what it was built from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::process::Command;
use std::thread;

/// The machine and the programs of a measurement.
#[derive(Serialize, Deserialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    /// The widest instructions that all libraries were compiled for.
    compiled_for: String,
    rustc: String,
    /// The commit of the working directory.
    commit: String,
    /// The peers' packages.
    versions: BTreeMap<String, String>,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = known.lines().find(|line| line.starts_with("model name"));
        let name = name.and_then(|line| line.split(": ").nth(1));
        Self {
            processor: name.unwrap_or("unknown").to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            compiled_for: widest().to_owned(),
            rustc: said_by("rustc", &["--version"]),
            commit: said_by("git", &["describe", "--always", "--dirty", "--abbrev=12"]),
            versions: versions(),
        }
    }
}

/// A sentence.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            processor,
            cores,
            compiled_for,
            rustc,
            commit,
            versions,
        } = self;
        write!(
            f,
            "{processor}, {cores} cores, compiled for them ({compiled_for})"
        )?;
        write!(
            f,
            "; {}; commit {commit}",
            rustc.split(" (").next().unwrap_or_default()
        )?;
        for (name, version) in versions {
            write!(f, "; {name} {version}")?;
        }
        Ok(())
    }
}

fn widest() -> &'static str {
    if cfg!(target_feature = "avx512f") {
        "avx512f"
    } else if cfg!(all(target_feature = "avx2", target_feature = "fma")) {
        "avx2, fma"
    } else {
        "no vectors beyond the baseline"
    }
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}

/// The versions of the peers' packages, read from the lock file.
fn versions() -> BTreeMap<String, String> {
    let version = |name: &str| {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let (_, rest) = include_str!("../Cargo.lock").split_once(&entry)?;
        Some((name.to_owned(), rest.split('"').next()?.to_owned()))
    };
    ["burn-flex", "candle-nn", "ruvector-attention"]
        .into_iter()
        .filter_map(version)
        .collect()
}
