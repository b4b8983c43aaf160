//! The properties of readers, folds and scalers.

mod event_files_are_as_described;
mod parallel_files_are_as_described;
mod passenger_needs_no_file;
mod planetoid_files_are_as_described;
mod real_files_are_as_described;
mod real_texts_have_their_fixed_folds;
mod rows_are_dealt_evenly;
mod scaling_is_undone_by_its_inverse;

use bochner_datasets::{DataStore, Policy};

/// A store that reads the real files, for the tests that are ignored where there are none.
fn store() -> DataStore {
    let directory = std::env::var_os("BOCHNER_DATA");
    let directory = directory.expect("BOCHNER_DATA names the directory of the data files");
    DataStore::new(Policy::Offline)
        .with_directory(directory)
        .unwrap()
}
