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
//! redistributed: a case whose corpus is missing is listed and counted as *without its corpus*.
//!
//! Nothing is skipped in silence. A file that does not hold to the format fails, naming the tensor
//! or the entry at fault; an output or gradient that is listed but not computed fails; so does an
//! input that no one reads, and a NaN in a result. A case of a kind that no function computes is
//! listed and counted as *not served*.
//!
//! ```no_run
//! use bochner_datasets::{DataStore, Policy};
//! use std::path::Path;
//!
//! let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
//! let report = bochner_golden::check_directory(&cases, &DataStore::new(Policy::Offline))?;
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
mod text;

pub use error::{Error, Fault};
pub use report::{GoldenReport, Row, Verdict, Worst};

use bochner_datasets::DataStore;
use bochner_numerics::Real;
use case::Case;
use case_file::CaseFile;
use cases::{Function, Kind, PARTIAL};
use error::Failure;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Checks every case of `dir`, in the order of their names, then every case of its folder `text`. Corpora are looked
/// for in `store`.
///
/// # Errors
/// [`Error::Directory`] if the directory cannot be read, [`Error::NoCases`] if it holds no case.
/// What is wrong with a single file is part of the report.
pub fn check_directory(dir: &Path, store: &DataStore) -> Result<GoldenReport, Error> {
    let mut paths = case_files(dir)?;
    let text = dir.join(TEXT);
    if text.is_dir() {
        paths.extend(case_files(&text)?);
    }
    if paths.is_empty() {
        let dir = dir.to_owned();
        return Err(Error::NoCases { dir });
    }
    let rows = paths.iter().flat_map(|path| check_file(path, store));
    Ok(GoldenReport::new(rows.collect()))
}

/// The folder of a directory of cases that holds those of text, and the word in the place of their precision.
const TEXT: &str = "text";

fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|end| end == ending)
}

fn case_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Directory {
        dir: dir.to_owned(),
        source,
    };
    let entries = fs::read_dir(dir).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(failed)?;
    paths.retain(|path| ends_in(path, "safetensors") || ends_in(path, "json"));
    paths.sort();
    Ok(paths)
}

/// One row for each precision the case is checked in, or one for the file as a whole.
fn check_file(path: &Path, store: &DataStore) -> Vec<Row> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let row = |dtype, verdict: Result<Verdict, Fault>| Row {
        name: stem.clone().into_owned(),
        dtype,
        verdict: verdict.unwrap_or_else(Verdict::Faulty),
    };
    let bytes = fs::read(path).map_err(Fault::unreadable);
    if ends_in(path, "json") {
        let verdict = bytes.and_then(|bytes| text::check(&bytes, &stem, store));
        return vec![row(Some(TEXT), verdict)];
    }
    let (file, kind) = match bytes.and_then(|bytes| open(&bytes, &stem)) {
        Ok(opened) => opened,
        Err(fault) => return vec![row(None, Err(fault))],
    };
    let double = row(Some(f64::NAME), check(&file, kind.double));
    let single = (file.in_f32()).then(|| row(Some(f32::NAME), check(&file, kind.single)));
    [double].into_iter().chain(single).collect()
}

/// Reads a file and checks it as far as its kind goes.
fn open(bytes: &[u8], stem: &str) -> Result<(CaseFile, &'static Kind), Fault> {
    let file = CaseFile::parse(bytes)?;
    let kind = cases::find(&file)?;
    file.check(stem, kind.outputs)?;
    if !PARTIAL.contains(&kind.name) {
        file.check_outputs(kind.outputs)?;
    }
    Ok((file, kind))
}

/// Runs one case and compares.
fn check<T: Real>(file: &CaseFile, compute: Function<T>) -> Result<Verdict, Fault> {
    let case = Case::new(file);
    caught(|| compute(&case))?;
    case.check_all_inputs_read()?;
    comparison::compare::<T>(file, &case.results.borrow())
}

/// The result of our code for one case, whose panic is a failure of this case and not the end of the run.
fn caught<A>(run: impl FnOnce() -> Result<A, Failure>) -> Result<A, Fault> {
    let result = catch_unwind(AssertUnwindSafe(run)).map_err(|_| Fault::Panicked)?;
    result.map_err(Fault::of)
}
