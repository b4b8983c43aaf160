//! The measurements of several calls on one machine.

use super::{Report, Row};
use crate::{Error, workloads};
use std::fs;
use std::path::Path;

/// The calls whose files lie in one folder.
pub(super) struct Results {
    /// The folder's name.
    pub(super) name: String,
    calls: Vec<Call>,
}

/// One file.
struct Call {
    name: String,
    report: Report,
}

/// Files of calls in which PyTorch's allocator was told to keep freed memory, as ours does.
const RETAINING: &str = "-retaining";

/// One piece of work at one shape, under one set of instructions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) work: String,
    pub(super) shape: Vec<usize>,
    /// A number of threads other than that of the call.
    pub(super) threads: Option<usize>,
    /// The instruction sets that ours were held to.
    pub(super) forced: Option<String>,
    /// Whether PyTorch's allocator was told to keep freed memory, as ours does.
    pub(super) retaining: bool,
}

impl Call {
    fn read(file: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(file)?;
        let report = serde_json::from_str(&text);
        Ok(Self {
            name: file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            report: report.map_err(|error| format!("{}: {error}", file.display()))?,
        })
    }

    fn subject(&self, row: &Row) -> Subject {
        Subject {
            work: row.work.clone(),
            shape: row.shape.clone(),
            threads: (row.threads != self.report.threads).then_some(row.threads),
            forced: self.report.machine.forced.clone(),
            retaining: self.name.ends_with(RETAINING),
        }
    }
}

impl Results {
    /// Reads the files of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let mut calls = Vec::new();
        for entry in fs::read_dir(folder)? {
            calls.push(Call::read(&entry?.path())?);
        }
        calls.sort_by(|a, b| a.name.cmp(&b.name));
        let results = Self {
            name: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            calls,
        };
        match results.calls.is_empty() {
            true => Err(format!("{} has no results", folder.display()).into()),
            false => Ok(results),
        }
    }

    /// The calls without a forced choice of instructions.
    pub(super) fn unforced(&self) -> impl Iterator<Item = &Report> {
        let reports = self.calls.iter().map(|call| &call.report);
        reports.filter(|report| report.machine.forced.is_none())
    }

    /// The subjects of all measurements, in the order of [`workloads`].
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let known = workloads();
        let place = |subject: &Subject| {
            let same = |w: &crate::Workload| w.name == subject.work && w.shape == subject.shape;
            known.iter().position(same).unwrap_or(known.len())
        };
        let mut subjects = Vec::new();
        for call in &self.calls {
            for row in &call.report.rows {
                let subject = call.subject(row);
                if !subject.retaining && !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        subjects.sort_by_cached_key(|s| (place(s), s.threads, s.forced.clone()));
        subjects
    }

    /// The passes of a subject, each with its row.
    ///
    /// Where several calls measured one, a call with peers is preferred to one without, and then the
    /// call that measured least besides.
    pub(super) fn rows(&self, subject: &Subject) -> Result<Vec<&Row>, Error> {
        let mut best: Vec<(&Call, &Row)> = Vec::new();
        for call in &self.calls {
            let rows = call.report.rows.iter();
            for row in rows.filter(|row| call.subject(row) == *subject) {
                let Some(other) = best.iter_mut().find(|(_, other)| other.pass == row.pass) else {
                    best.push((call, row));
                    continue;
                };
                let rank = |call: &Call, row: &Row| (!row.has_peers(), call.report.rows.len());
                match rank(call, row).cmp(&rank(other.0, other.1)) {
                    std::cmp::Ordering::Less => *other = (call, row),
                    std::cmp::Ordering::Greater => {}
                    std::cmp::Ordering::Equal => {
                        let [a, b] = [&other.0.name, &call.name];
                        let what = (&self.name, &row.work, row.shape());
                        let message =
                            format!("{}: {a} and {b} both hold {} ({})", what.0, what.1, what.2);
                        return Err((message + "; keep the last one").into());
                    }
                }
            }
        }
        Ok(best.into_iter().map(|(_, row)| row).collect())
    }
}
