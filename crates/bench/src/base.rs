//! This working tree against an earlier state of it, alternately.

use crate::run::{Options, case_of};
use crate::statistics::{Paired, median};
use crate::{Error, Measured, Workload, machine, workloads};
use std::collections::BTreeSet;
use std::fs;
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
        build.args([
            "build",
            "--release",
            "--quiet",
            "--package",
            program_package(&source),
        ]);
        build.args(["--bin", "bench"]).current_dir(&source);
        build.env("CARGO_TARGET_DIR", target.join("build"));
        if !build.stdout(std::io::stderr()).status()?.success() {
            return Err(format!("`{reference}` does not build").into());
        }
        Ok(Self {
            reference: reference.to_owned(),
            program: target.join("build/release/bench"),
        })
    }

    /// Measures the workloads that are asked for here and there, in turns, and prints what each pass
    /// takes here over what it takes there, with a 95 % interval of the paired ratios.
    ///
    /// # Errors
    /// If a workload fails here; one that fails there, or is not known there, is named.
    pub fn compare(&self, options: &Options) -> Result<String, Error> {
        let mut lines = vec![format!(
            "| workload | shape | pass | {} (ms) | here (ms) | here / there | 95 % interval | |\n\
             |---|---|---|---|---|---|---|---|",
            self.reference
        )];
        let all = workloads();
        let wanted = (all.iter()).filter(|one| !machine::is_ceiling(one) && options.wants(one));
        for workload in wanted {
            let (mut here, mut there) = (Vec::new(), Vec::new());
            for round in 0..options.rounds {
                eprintln!(
                    "bench: {}, round {} of {}",
                    workload.id(),
                    round + 1,
                    options.rounds
                );
                // The side that comes first changes from round to round.
                for turn in 0..2 {
                    if turn == round % 2 {
                        there.push(self.there(workload, options)?);
                    } else {
                        here.push(options.ours(workload)?);
                    }
                }
            }
            for pass in &workload.passes {
                let of = |all: &[Measured]| -> Vec<f64> {
                    all.iter().filter_map(|one| one.ms(pass.name)).collect()
                };
                let (here, there) = (of(&here), of(&there));
                let name = format!(
                    "| {} | {} | {} |",
                    workload.name,
                    workload.shape_text(),
                    pass.name
                );
                lines.push(match Paired::of(&here, &there) {
                    None => format!("{name} | {:.2} | | | not measured there |", median(&here)),
                    Some(paired) => {
                        let [low, high] = paired.interval;
                        let (there, here) = (median(&there), median(&here));
                        format!(
                            "{name} {there:.2} | {here:.2} | {:.3} | {low:.3} to {high:.3} | {} |",
                            paired.ratio,
                            paired.verdict()
                        )
                    }
                });
            }
        }
        Ok(lines.join("\n"))
    }

    fn there(&self, workload: &Workload, options: &Options) -> Result<Measured, Error> {
        let mut command = Command::new(&self.program);
        Measured::by(case_of(&mut command, workload, options))
    }
}

/// The package of this program in a checkout: earlier commits have it in `benches`.
fn program_package(source: &Path) -> &'static str {
    match source.join("benches/Cargo.toml").is_file() {
        true => "bochner-benches",
        false => "bochner-bench",
    }
}

/// The packages of the crates with files that differ from a commit.
fn changed_packages(root: &Path, commit: &str) -> Result<Vec<String>, Error> {
    let differ = output(git(root).args(["diff", "--name-only", commit]))?;
    let new = output(git(root).args(["ls-files", "--others", "--exclude-standard"]))?;
    let folders: BTreeSet<&str> = differ
        .lines()
        .chain(new.lines())
        .filter_map(crate_of)
        .collect();
    let mut packages = Vec::new();
    for folder in folders {
        // A crate that is gone has no tests.
        if let Ok(manifest) = fs::read_to_string(root.join(folder).join("Cargo.toml")) {
            packages.extend(package_of(&manifest).map(str::to_owned));
        }
    }
    Ok(packages)
}

/// The folder of the crate that a path of the workspace belongs to.
fn crate_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/")?;
    let name = inside.split('/').next()?;
    path.get(.."crates/".len() + name.len())
}

/// The name in a manifest.
fn package_of(manifest: &str) -> Option<&str> {
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = \""))?;
    line.strip_suffix('"')
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    git
}

/// What a command prints, without the last line's end.
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
        assert_eq!(
            crate_of("crates/attention/src/lib.rs"),
            Some("crates/attention")
        );
        assert_eq!(crate_of("docs/compare.md"), None);
        assert_eq!(
            package_of("[package]\nname = \"bochner-ops\"\n"),
            Some("bochner-ops")
        );
        assert_eq!(package_of("[workspace]"), None);
    }
}
