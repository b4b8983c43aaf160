//! Golden cases: our results against reference values computed elsewhere.
//!
//! A golden case is one `.safetensors` file of the format `bochner-golden-1`: inputs, parameters,
//! the outputs that should come out and, where there are gradients, a cotangent and what it should
//! become. [`check_directory`] runs every case of a directory through the crates, in `f64` and,
//! where the case allows it, in `f32`, and compares each tensor with the bounds of
//! [`bochner_numerics::Tolerance`].
//!
//! A case of text is one `.json` file, in the directory or in its folder `text`. Tokens and counts must
//! be equal there, scores within 1e-9. Some of these cases are about corpora that may not be
//! redistributed: [`check_directory_with_data`] is told where the corpora are, and a case whose corpus is missing
//! is listed and counted as *without its corpus*.
//!
//! Nothing is skipped in silence. A file that does not hold to the format fails, naming the tensor
//! or the entry at fault; an output or gradient that is listed but not computed fails; so does an
//! input that no one reads, and a NaN in a result. A case of a kind that no function computes is
//! listed and counted as *not served*.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
//! let report = bochner_golden::check_directory(&cases)?;
//! println!("{report}");
//! assert_eq!([report.failed(), report.not_served()], [0, 0]);
//! # Ok::<(), bochner_golden::Error>(())
//! ```
//!
//! The program is `cargo xtask golden [--check DIR] [--data DIR] [--all]`.
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | [`Error`], [`Fault`] |
//! | [`report`] | [`GoldenReport`], [`Row`], [`Verdict`] |
//! | `case_file` | reading and checking one file |
//! | `comparison` | results against expected tensors |
//! | `cases` | the table of cases, one file for each group |
//! | `text` | the table of cases of text, one file for each group |

mod case_file;
mod cases;
mod comparison;
pub mod error;
pub mod report;
mod tensor;
#[cfg(test)]
mod tests;
mod text;

pub use error::{Error, Fault};
pub use report::{GoldenReport, Row, Verdict, Worst};

use bochner_datasets::{DataStore, Policy};
use bochner_numerics::Real;
use case_file::CaseFile;
use cases::{Compute, Entry};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Checks every case of `dir`, in the order of their names, then every case of its folder `text`.
///
/// Corpora are looked for in the user's cache: [`check_directory_with_data`] looks elsewhere.
///
/// # Errors
/// [`Error::Directory`] if the directory cannot be read, [`Error::NoCases`] if it holds no case.
/// What is wrong with a single file is part of the report.
pub fn check_directory(dir: &Path) -> Result<GoldenReport, Error> {
    check_directory_with_data(dir, &DataStore::new(Policy::Offline))
}

/// Checks the cases of a directory as [`check_directory`] does, with the corpora of a store.
///
/// # Errors
/// Those of [`check_directory`].
pub fn check_directory_with_data(dir: &Path, store: &DataStore) -> Result<GoldenReport, Error> {
    let mut paths = case_files(dir)?;
    let text = dir.join(TEXT);
    if text.is_dir() {
        paths.extend(case_files(&text)?);
    }
    if paths.is_empty() {
        return Err(Error::NoCases {
            dir: dir.to_owned(),
        });
    }
    let rows = paths.iter().flat_map(|path| match is_text(path) {
        true => vec![text::check_file(path, stem(path), store)],
        false => check_file(path),
    });
    Ok(GoldenReport::new(rows.collect()))
}

/// The folder of a directory of cases that holds those of text.
const TEXT: &str = "text";

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

fn case_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Directory {
        dir: dir.to_owned(),
        source,
    };
    let entries = fs::read_dir(dir).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(failed)?;
    let is_tensors = |path: &Path| path.extension().is_some_and(|end| end == "safetensors");
    paths.retain(|path| is_tensors(path) || is_text(path));
    paths.sort();
    Ok(paths)
}

/// One row for each precision the case is checked in, or one for the file as a whole.
fn check_file(path: &Path) -> Vec<Row> {
    let row = |case: &str, dtype, verdict| Row {
        name: stem(path),
        case: case.to_owned(),
        dtype,
        verdict,
    };
    let faulty = |fault| {
        Verdict::Faulty(Error::Case {
            file: path.to_owned(),
            fault,
        })
    };
    let (file, entry) = match open(path) {
        Ok(Opened::Served(file, entry)) => (file, entry),
        Ok(Opened::NotServed { kind }) => return vec![row(&kind, None, Verdict::NotServed)],
        Err(fault) => return vec![row("", None, faulty(fault))],
    };
    let runs = precisions(&file).into_iter();
    let rows = runs.map(|run| {
        let (dtype, verdict) = run(&file, &entry.compute);
        row(entry.name, Some(dtype), verdict.unwrap_or_else(faulty))
    });
    rows.collect()
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

enum Opened {
    Served(CaseFile, &'static Entry),
    /// No function computes cases of this kind.
    NotServed {
        kind: String,
    },
}

fn open(path: &Path) -> Result<Opened, Fault> {
    let bytes = fs::read(path).map_err(|error| Fault::Unreadable {
        reason: error.to_string(),
    })?;
    let mut file = CaseFile::parse(&bytes)?;
    let Some(entry) = cases::find(&file)? else {
        let kind = file.word("case")?.to_owned();
        return Ok(Opened::NotServed { kind });
    };
    file.check(&stem(path))?;
    file.check_outputs(entry.outputs)?;
    file.check_cotangent(entry.cotangent_of)?;
    Ok(Opened::Served(file, entry))
}

type Run = fn(&CaseFile, &Compute) -> (&'static str, Result<Verdict, Fault>);

fn precisions(file: &CaseFile) -> Vec<Run> {
    let double: Run = |file, compute| check::<f64>(file, compute.double);
    let single: Run = |file, compute| check::<f32>(file, compute.single);
    if file.in_f32() {
        vec![double, single]
    } else {
        vec![double]
    }
}

/// Runs one case and compares; a panic in it is a failure of this case, not the end of the run.
fn check<T: Real>(
    file: &CaseFile,
    compute: cases::Function,
) -> (&'static str, Result<Verdict, Fault>) {
    let run = || {
        let computed = compute(file)?;
        file.check_all_inputs_read()?;
        comparison::compare::<T>(file, &computed)
    };
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Fault::Panicked));
    (T::NAME, result)
}
