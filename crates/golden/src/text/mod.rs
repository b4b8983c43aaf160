//! Cases of text: one JSON object in each file.
//!
//! A function of each kind reads the inputs, into a struct that knows every field and refuses others, and returns a
//! tree of values like the file's. [`Findings::compare`] goes through the whole of the file's `expected`, so that no
//! value is overlooked, and through whatever else the function returns.

mod beam_search;
mod bleu;
mod bootstrap;
mod findings;
mod parameter_counts;
mod subword;
mod vocabulary;

use crate::error::{Error, Failure, Fault};
use crate::report::{Row, Verdict};
use bochner_datasets::DataStore;
use findings::Findings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The word that stands in the place of a precision.
const DTYPE: &str = "text";

/// Computes the values of a case, under the names that they have in its file.
type Compute = fn(&File) -> Result<Value, Failure>;

/// A file that is to be checked.
struct File<'a> {
    name: &'a str,
    /// Everything but its head and its remarks.
    fields: Value,
    /// The corpora that some cases are about.
    store: &'a DataStore,
}

impl File<'_> {
    /// The case; each field must be one that `T` knows.
    fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        parse(self.fields.clone())
    }
}

/// One line for each kind of case.
const TABLE: [(&str, Compute); 9] = [
    ("beam_search", beam_search::search),
    ("bleu", bleu::bleu),
    ("bootstrap", bootstrap::bootstrap),
    ("bpe", subword::bpe),
    ("bpe_large", subword::bpe_large),
    ("clean_str", bleu::clean),
    ("parameter_counts", parameter_counts::counts),
    ("tokenize_13a", bleu::tokens),
    ("vocabulary", vocabulary::vocabulary),
];

/// The row of one file.
pub(crate) fn check_file(path: &Path, name: String, store: &DataStore) -> Row {
    let mut case = String::new();
    let verdict = verdict(path, &name, store, &mut case);
    let verdict = verdict.unwrap_or_else(|fault| match fault {
        Fault::NoCorpus { message } => Verdict::NoData { message },
        fault => Verdict::Faulty(Error::Case {
            file: path.to_owned(),
            fault,
        }),
    });
    let is_run = !matches!(verdict, Verdict::NotServed | Verdict::NoData { .. });
    Row {
        name,
        case,
        dtype: is_run.then_some(DTYPE),
        verdict,
    }
}

fn verdict(
    path: &Path,
    stem: &str,
    store: &DataStore,
    case: &mut String,
) -> Result<Verdict, Fault> {
    let bytes = fs::read(path).map_err(|error| Fault::Unreadable {
        reason: error.to_string(),
    })?;
    let mut fields: Map<String, Value> = serde_json::from_slice(&bytes).map_err(not_json)?;
    let mut word = |key: &str| {
        let word = fields.remove(key).unwrap_or_default();
        word.as_str()
            .map(str::to_owned)
            .ok_or_else(|| Fault::NotJson {
                reason: format!("it has no word `{key}`"),
            })
    };
    let name = word("name")?;
    *case = word("case")?;
    let Some((_, compute)) = TABLE.iter().find(|(kind, _)| kind == case) else {
        return Ok(Verdict::NotServed);
    };
    if name != stem {
        return Err(Fault::Entry {
            key: "name".to_owned(),
            expected: format!("`{stem}`"),
            got: name,
        });
    }
    for remark in ["text_of", "note"] {
        fields.remove(remark);
    }
    let file = File {
        name: stem,
        fields: fields.into(),
        store,
    };
    let run = || compute(&file).map_err(|failure| failure.0);
    let ours = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Fault::Panicked))?;
    let mut findings = Findings::default();
    findings.compare(&ours, &file.fields)?;
    findings.verdict()
}

/// A part of a case.
fn parse<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    serde_json::from_value(value).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> Fault {
    Fault::NotJson {
        reason: error.to_string(),
    }
}

/// The fault of an error about a corpus.
fn corpus_fault(error: bochner_datasets::Error) -> Fault {
    match error {
        bochner_datasets::Error::Unavailable { file, .. } => Fault::NoCorpus {
            message: format!("`{file}` is not available; name its directory with --data"),
        },
        other => Fault::refused(other),
    }
}
