//! Cases of text: one JSON object in each file.
//!
//! A case is read into a struct that knows every field of its kind and refuses others, so that no
//! expected value is overlooked.

mod beam_search;
mod bleu;
mod bootstrap;
mod clean_str;
mod corpora;
mod findings;
mod parameter_counts;
mod subword;
mod vocabulary;

use crate::error::{Error, Fault};
use crate::report::{Row, Verdict};
use bochner_datasets::DataStore;
use corpora::Corpora;
use findings::Findings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The word that stands in the place of a precision.
const DTYPE: &str = "text";

type Check = fn(&[u8], &Corpora) -> Result<Findings, Fault>;

/// One line for each kind of case.
const TABLE: [(&str, Check); 9] = [
    ("beam_search", beam_search::check),
    ("bleu", bleu::check),
    ("bootstrap", bootstrap::check),
    ("bpe", subword::check),
    ("bpe_large", subword::check_large),
    ("clean_str", clean_str::check),
    ("parameter_counts", parameter_counts::check),
    ("tokenize_13a", bleu::check_tokens),
    ("vocabulary", vocabulary::check),
];

/// What every case begins with.
#[derive(Deserialize)]
struct Head {
    case: String,
    name: String,
}

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
    let head: Head = read(&bytes)?;
    *case = head.case;
    let Some((_, check)) = TABLE.iter().find(|(kind, _)| kind == case) else {
        return Ok(Verdict::NotServed);
    };
    if head.name != stem {
        return Err(Fault::Entry {
            key: "name".to_owned(),
            expected: format!("`{stem}`"),
            got: head.name,
        });
    }
    let run = || check(&bytes, &Corpora { store });
    let findings = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Fault::Panicked))?;
    findings.verdict()
}

/// What a case holds besides its head and its remarks; each field must be one that `T` knows.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut fields: Map<String, Value> = read(bytes)?;
    for head in ["case", "name", "text_of", "note"] {
        fields.remove(head);
    }
    serde_json::from_value(fields.into()).map_err(not_json)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> Fault {
    Fault::NotJson {
        reason: error.to_string(),
    }
}
