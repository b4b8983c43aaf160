//! The corpora that some cases are computed on, which are no part of them.

use crate::error::Fault;
use bochner_datasets::{
    DataStore, Error, Protocol, SentenceData, SentenceSet, manifest, sentences,
};

/// The pinned files that a run can read.
pub(super) struct Corpora<'a> {
    pub(super) store: &'a DataStore,
}

impl Corpora<'_> {
    /// The bytes of a pinned file.
    pub(super) fn bytes(&self, file: &str) -> Result<Vec<u8>, Fault> {
        let entry = manifest::entry(file).map_err(Fault::refused)?;
        let stored = self.store.fetch(entry).map_err(fault)?;
        Ok(stored.bytes.to_vec())
    }

    /// A sentence corpus with its splits.
    pub(super) fn sentences(
        &self,
        set: SentenceSet,
        protocol: Protocol,
    ) -> Result<SentenceData, Fault> {
        sentences::load(set, protocol, self.store).map_err(fault)
    }
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Unavailable { file, .. } => Fault::NoCorpus {
            message: format!("`{file}` is not available; name its directory with --data"),
        },
        other => Fault::refused(other),
    }
}
