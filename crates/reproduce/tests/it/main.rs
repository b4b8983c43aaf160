//! The program `reproduce`, as it is called.

mod a_killed_translation_resumes;
mod a_wrong_file_is_named;
#[cfg(unix)]
mod endurance;
mod imported_rows_are_not_run_again;
mod killed_runs_resume_bit_identically;
mod models_on_request;
mod nothing_to_run_is_a_failure;
mod settings_are_read_in_both_spellings;
mod smoke_needs_no_file;
