//! Instructions counted under valgrind: what a noisy machine cannot hide.

use crate::machine::first_line;
use crate::{CASE, Error, attention};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The instructions of some passes, on one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// The compiler: another one gives other counts.
    pub rustc: String,
    /// The instruction sets that ours are held to: valgrind knows no AVX-512.
    pub instructions: String,
    /// Thousands of instructions by workload and pass.
    pub thousands: BTreeMap<String, u64>,
}

/// Counts the small workloads.
///
/// # Errors
/// If there is no valgrind, or a workload fails under it.
pub fn count(instructions: &str) -> Result<Instructions, Error> {
    if first_line(Path::new("valgrind"), &["--version"]).is_none() {
        return Err("counting instructions needs valgrind (Debian: valgrind)".into());
    }
    let mut counted = Instructions {
        rustc: first_line(Path::new("rustc"), &["--version"]).unwrap_or_default(),
        instructions: instructions.to_owned(),
        thousands: BTreeMap::new(),
    };
    for workload in attention::counted() {
        for (number, pass) in workload.passes.iter().enumerate() {
            let name = format!("{}, {}", workload.id(), pass.name);
            eprintln!("bench: counting {name}");
            let of = |runs| callgrind(&workload.id(), number, runs, instructions);
            // The difference leaves out the start and what only the first run does.
            let (few, many) = (of(1)?, of(1 + RUNS)?);
            let one = many.saturating_sub(few) / RUNS;
            counted.thousands.insert(name, one / 1000);
        }
    }
    Ok(counted)
}

/// The number of runs that are counted.
const RUNS: u64 = 2;

/// The instructions of a whole process.
fn callgrind(id: &str, pass: usize, runs: u64, instructions: &str) -> Result<u64, Error> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([CASE, id, "--pass", &pass.to_string()])
        .args(["--runs", &runs.to_string()])
        .env("RAYON_NUM_THREADS", "1")
        .env("BOCHNER_INSTRUCTIONS", instructions)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = collected(&said).filter(|_| output.status.success());
    count.ok_or_else(|| {
        let last = said.lines().last().unwrap_or_default();
        format!("valgrind gave no count: {}; {last}", output.status).into()
    })
}

/// The number in callgrind's line `==12== Collected : 345`.
fn collected(lines: &str) -> Option<u64> {
    let line = lines.lines().find(|line| line.contains("Collected :"))?;
    line.split(':').next_back()?.trim().parse().ok()
}

impl Instructions {
    /// Reads the counts in a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(file: &Path) -> Result<Self, Error> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    /// Writes the counts to a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), Error> {
        Ok(std::fs::write(
            file,
            serde_json::to_string_pretty(self)? + "\n",
        )?)
    }

    /// One line for each count, with its change from an earlier one.
    pub fn beside(&self, before: Option<&Self>) -> String {
        let mut text = String::new();
        for (name, &now) in &self.thousands {
            text += &format!("{name:55} {now:>9} thousand instructions");
            if let Some(&before) = before.and_then(|before| before.thousands.get(name)) {
                let change = 100.0 * (now as f64 / before as f64 - 1.0);
                text += &format!(", {change:+.2} % from {before}");
            }
            text += "\n";
        }
        if let Some(before) = before.filter(|before| before.rustc != self.rustc) {
            text += &format!("earlier: {}; now: {}\n", before.rustc, self.rustc);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
        assert_eq!(collected(said), Some(123_456));
        assert_eq!(collected("valgrind: fatal"), None);
    }

    #[test]
    fn a_change_is_shown_in_per_cent() {
        let of = |count| Instructions {
            thousands: [("softmax".to_owned(), count)].into_iter().collect(),
            ..Default::default()
        };
        let (before, now) = (of(1000), of(1015));
        assert!(now.beside(Some(&before)).contains("+1.50 % from 1000"));
        assert!(!now.beside(None).contains('%'));
    }
}
