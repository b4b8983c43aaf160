//! Cases of text: one JSON object in each file.
//!
//! A function of each kind reads the inputs and returns a tree of values like the file's. [`findings::compare`] goes
//! through the whole of the file's `expected`, so that no value is overlooked, and through whatever else the function
//! returns. A field that is neither read nor returned is a fault of the file.

mod beam_search;
mod bleu;
mod bootstrap;
mod findings;
mod parameter_counts;
mod subword;
mod vocabulary;

use crate::caught;
use crate::error::{Failure, Fault};
use crate::report::Verdict;
use bochner_datasets::DataStore;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Computes the values of a case, under the names that they have in its file.
type Compute = fn(&File) -> Result<Value, Failure>;

/// A file that is to be checked.
struct File<'a> {
    fields: Map<String, Value>,
    /// The fields that were asked for.
    read: RefCell<BTreeSet<String>>,
    /// The corpora that some cases are about.
    store: &'a DataStore,
}

impl<'a> File<'a> {
    /// A field of the case.
    fn get<'b, T: Deserialize<'b>>(&'b self, name: &str) -> Result<T, Fault> {
        self.read.borrow_mut().insert(name.to_owned());
        let field = self.fields.get(name);
        let field = field.ok_or_else(|| Fault::entry(name, "given", None))?;
        T::deserialize(field).map_err(|error| Fault::unreadable(format!("`{name}`: {error}")))
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

/// Fields for readers, and those whose values the tests of `bochner-text` compare.
const REMARKS: [&str; 7] = [
    "text_of",
    "note",
    "tokenizers",
    "pcg64",
    "first_indices",
    "last_indices",
    "sum_of_indices",
];

/// The verdict on the file whose name is `stem` plus extension.
pub(crate) fn check(bytes: &[u8], stem: &str, store: &DataStore) -> Result<Verdict, Fault> {
    let file = File {
        fields: serde_json::from_slice(bytes).map_err(Fault::unreadable)?,
        read: RefCell::default(),
        store,
    };
    let case: &str = file.get("case")?;
    let Some((_, compute)) = TABLE.iter().find(|(kind, _)| *kind == case) else {
        let case = case.to_owned();
        return Err(Fault::NotServed { case });
    };
    let name: &str = file.get("name")?;
    if name != stem {
        return Err(Fault::entry("name", stem, Some(name)));
    }
    let ours = caught(|| compute(&file))?;
    let read = file.read.borrow();
    let mut fields = file.fields.keys();
    let is_known =
        |name: &str| read.contains(name) || ours.get(name).is_some() || REMARKS.contains(&name);
    if let Some(unknown) = fields.find(|name| !is_known(name)) {
        return Err(Fault::wrong(unknown, "a field of this case", "given"));
    }
    findings::compare(&ours, &file.fields)
}

/// The fault of an error about a corpus.
fn corpus_fault(error: bochner_datasets::Error) -> Failure {
    match error {
        bochner_datasets::Error::Unavailable { file, .. } => Fault::NoCorpus { file }.into(),
        other => other.into(),
    }
}
