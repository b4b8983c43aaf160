//! PyTorch's side of each comparison: the scripts in `peers/` of this crate.

use crate::machine::first_line;
use crate::workload::Peer;
use crate::{Error, Measured};
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// Runs a case once.
    ///
    /// # Errors
    /// If Python cannot be started; what fails in Python is part of the result.
    pub fn run(&self, peer: &Peer, threads: usize) -> Result<Measured, Error> {
        let mut command = Command::new(&self.program);
        command
            .arg(scripts().join(peer.script).with_extension("py"))
            .args(["--case", &peer.case.to_string()])
            .env("PEERS_THREADS", threads.to_string());
        Measured::by(&mut command)
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}
