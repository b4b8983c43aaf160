//! The peers' side of each comparison: the scripts in `peers/` of this crate.

use crate::machine::first_line;
use crate::{Error, Workload};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Implementations of the same work in one Python script, of which the fastest counts: a line of `peers/peers.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// The name of the workloads.
    work: String,
    /// Their shapes; none stands for all.
    #[serde(default)]
    shapes: Vec<Vec<usize>>,
    /// A name for what the implementations have in common.
    pub(crate) label: String,
    /// The script in `peers/`, without its ending.
    pub(crate) script: String,
    /// The implementations.
    #[serde(rename = "impl")]
    pub(crate) names: Vec<String>,
    /// The smallest ratio of the fastest one's time to ours that is wanted, for each pass. Zero wants nothing.
    #[serde(default)]
    pub(crate) wanted: Vec<f64>,
    /// The name of their time, if it is not that of the pass.
    pub(crate) time: Option<String>,
    /// The shape that they have, if it is another one.
    at: Option<Vec<usize>>,
}

impl Peers {
    /// The peers of a workload.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub(crate) fn of_workload(workload: &Workload) -> Result<Vec<Self>, Error> {
        let mut all = Self::list()?;
        all.retain(|peers| peers.do_work_of(workload));
        Ok(all)
    }

    fn list() -> Result<Vec<Self>, Error> {
        Ok(serde_json::from_str(include_str!("../peers/peers.json"))?)
    }

    fn do_work_of(&self, workload: &Workload) -> bool {
        let is_shape = self.shapes.is_empty() || self.shapes.contains(&workload.shape);
        self.work == workload.name && is_shape
    }

    /// The case of one implementation.
    pub(crate) fn case(&self, name: &str, workload: &Workload) -> Map<String, Value> {
        let mut case = workload.case.clone();
        case.insert("impl".to_owned(), name.into());
        case.extend(self.at.iter().map(|at| ("shape".to_owned(), json!(at))));
        case
    }
}

/// A Python with what the peers need.
#[derive(Clone, Debug)]
pub struct Python {
    program: PathBuf,
}

impl Python {
    /// An installed Python.
    ///
    /// # Errors
    /// If it has no torch.
    pub fn at(program: &Path) -> Result<Self, Error> {
        let python = Self {
            program: program.to_owned(),
        };
        match python.torch() {
            Some(_) => Ok(python),
            None => Err(format!("{} cannot import torch", program.display()).into()),
        }
    }

    /// The Python of a virtual environment in a directory, which the first call creates.
    ///
    /// # Errors
    /// If there is no `python3`, or its packages cannot be had.
    pub fn own(directory: &Path) -> Result<Self, Error> {
        let program = directory.join("bin/python");
        if let Ok(python) = Self::at(&program) {
            return Ok(python);
        }
        let wanted = scripts().join("requirements.txt");
        eprintln!(
            "bench: installing {} in {}; once, and some gigabytes",
            wanted.display(),
            directory.display()
        );
        let finish = |command: &mut Command, otherwise: &str| match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{otherwise} ({status})")),
            Err(error) => Err(format!("{otherwise} ({error})")),
        };
        finish(
            Command::new("python3").args(["-m", "venv"]).arg(directory),
            "the peers need python3 with venv; or name a Python that has torch by --python",
        )?;
        finish(
            Command::new(&program)
                .args(["-m", "pip", "install", "--quiet", "--requirement"])
                .arg(wanted),
            "the peers' packages could not be installed; is there a network?",
        )?;
        Self::at(&program)
    }

    /// The version of torch.
    pub fn torch(&self) -> Option<String> {
        let version = "import torch; print(torch.__version__)";
        first_line(&self.program, &["-c", version])
    }

    /// A call of a case.
    pub(crate) fn case(&self, script: &str, case: Map<String, Value>, threads: usize) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(scripts().join(script).with_extension("py"))
            .args(["--case", &Value::from(case).to_string()])
            .env("PEERS_THREADS", threads.to_string());
        command
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    #[test]
    fn every_peer_does_the_work_of_a_workload() {
        let all = workloads();
        for peers in Peers::list().unwrap() {
            let found = all.iter().filter(|workload| peers.do_work_of(workload));
            let found: Vec<_> = found.collect();
            assert!(found.len() >= peers.shapes.len().max(1), "{peers:?}");
            assert!(peers.wanted.len() <= found[0].passes.len(), "{peers:?}");
            assert!(scripts().join(&peers.script).with_extension("py").is_file());
            let case = peers.case(&peers.names[0], found[0]);
            assert!(case["impl"].is_string() && case["shape"].is_array());
        }
    }
}
