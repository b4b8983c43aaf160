//! The properties of readers, folds and scalers.

mod defects_are_named_by_line;
mod hostile_files;
mod passenger_needs_no_file;
mod planetoid_files_are_as_described;
mod real_files_are_as_described;
mod real_texts_have_their_fixed_folds;
mod rows_are_dealt_evenly;
mod scaling_is_undone_by_its_inverse;
