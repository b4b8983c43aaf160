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
//! | `case` | typed inputs of a case, and its results |
//! | `comparison` | results against expected tensors |
//! | `cases` | the table of kinds, one file for each group |
//! | `text` | the table of kinds of text, one file for each group |

mod case;
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
use case::Case;
use case_file::CaseFile;
use cases::{Function, Kind};
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
    let row = |case: &str, dtype, verdict: Result<Verdict, Fault>| Row {
        name: stem(path),
        case: case.to_owned(),
        dtype,
        verdict: verdict.unwrap_or_else(|fault| {
            Verdict::Faulty(Error::Case {
                file: path.to_owned(),
                fault,
            })
        }),
    };
    let (file, kind) = match open(path) {
        Ok((file, Some(kind))) => (file, kind),
        Ok((file, None)) => {
            let kind = file.word("case").unwrap_or_default();
            return vec![row(kind, None, Ok(Verdict::NotServed))];
        }
        Err(fault) => return vec![row("", None, Err(fault))],
    };
    let double = row(kind.name, Some(f64::NAME), check(&file, kind.double));
    let single = || row(kind.name, Some(f32::NAME), check(&file, kind.single));
    let single = file.in_f32().then(single);
    [double].into_iter().chain(single).collect()
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Reads a file, and checks it if a function computes its kind.
fn open(path: &Path) -> Result<(CaseFile, Option<&'static Kind>), Fault> {
    let bytes = fs::read(path).map_err(|error| Fault::Unreadable {
        reason: error.to_string(),
    })?;
    let mut file = CaseFile::parse(&bytes)?;
    let found = cases::find(&file)?;
    if let Some(kind) = found {
        file.check(&stem(path))?;
        file.check_outputs(kind.required())?;
        file.check_cotangent(kind.outputs)?;
    }
    Ok((file, found))
}

/// Runs one case and compares; a panic in it is a failure of this case, not the end of the run.
fn check<T: Real>(file: &CaseFile, compute: Function<T>) -> Result<Verdict, Fault> {
    let run = || {
        let case = Case::new(file);
        compute(&case).map_err(|failure| failure.0)?;
        case.verdict()
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Fault::Panicked))
}
