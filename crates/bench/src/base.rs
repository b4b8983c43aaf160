//! An earlier state of the workspace, to compare this working tree with.

use crate::Error;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An earlier state of the workspace, and this program built from it.
#[derive(Clone, Debug)]
pub struct Base {
    reference: String,
    program: PathBuf,
}

impl Base {
    /// Tests the crates that differ from `reference`, then builds the program as it was there, in
    /// `target/base` of the workspace at `root`.
    ///
    /// # Errors
    /// If git does not know the reference, the tests of a changed crate fail, or the build does.
    pub fn build(root: &Path, reference: &str) -> Result<Self, Error> {
        let revision = format!("{reference}^{{commit}}");
        let commit = output(git(root).args(["rev-parse", "--verify", "--quiet", &revision]))
            .map_err(|_| format!("git knows no commit `{reference}`"))?;
        let changed = changed_packages(root, &commit)?;
        if !changed.is_empty() {
            eprintln!("bench: testing {}", changed.join(", "));
            let mut tests = Command::new("cargo");
            tests.args(["test", "--tests", "--quiet"]).current_dir(root);
            tests.args(changed.iter().flat_map(|package| ["--package", package]));
            if !tests.stdout(std::io::stderr()).status()?.success() {
                return Err("the tests of the changed crates fail: nothing is compared".into());
            }
        }
        let target = root.join("target/base");
        let source = target.join("source");
        // A clone of its own: a worktree would be one of the user's repository.
        if !source.exists() {
            let clone = ["clone", "--quiet", "--shared", "--no-checkout", "."];
            output(git(root).args(clone).arg(&source))?;
        }
        output(git(&source).args(["fetch", "--quiet", "origin", &commit]))?;
        output(git(&source).args(["checkout", "--quiet", "--force", "--detach", &commit]))?;
        eprintln!("bench: building {reference}");
        let mut build = Command::new("cargo");
        build.args(["build", "--release", "--quiet", "--bin", "bench"]);
        build.args(["--package", "bochner-bench"]);
        build.current_dir(&source);
        build.env("CARGO_TARGET_DIR", target.join("build"));
        if !build.stdout(std::io::stderr()).status()?.success() {
            return Err(format!("`{reference}` does not build").into());
        }
        Ok(Self {
            reference: reference.to_owned(),
            program: target.join("build/release/bench"),
        })
    }

    /// The reference as it was given.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// A call of the program.
    pub(crate) fn program(&self) -> Command {
        Command::new(&self.program)
    }
}

/// The packages of the crates with files that differ from a commit.
fn changed_packages(root: &Path, commit: &str) -> Result<Vec<String>, Error> {
    let differ = output(git(root).args(["diff", "--name-only", commit]))?;
    let new = output(git(root).args(["ls-files", "--others", "--exclude-standard"]))?;
    let all = differ.lines().chain(new.lines());
    let crates: BTreeSet<&str> = all.filter_map(crate_of).collect();
    // A crate that is gone has no tests.
    let is_there = |name: &&str| root.join("crates").join(name).join("Cargo.toml").is_file();
    let packages = crates.into_iter().filter(is_there);
    Ok(packages.map(|name| format!("bochner-{name}")).collect())
}

/// The crate that a path of the workspace belongs to.
fn crate_of(path: &str) -> Option<&str> {
    Some(path.strip_prefix("crates/")?.split_once('/')?.0)
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    git
}

/// The output of a command, without the last line's end.
fn output(command: &mut Command) -> Result<String, Error> {
    let output = command.output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}", complaint.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_name_their_crates() {
        assert_eq!(crate_of("crates/bench/src/base.rs"), Some("bench"));
        for elsewhere in ["docs/compare.md", "crates/README.md"] {
            assert_eq!(crate_of(elsewhere), None);
        }
    }
}
