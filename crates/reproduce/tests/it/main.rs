//! The program `reproduce`, as it is called.

mod a_killed_translation_resumes;
mod a_page_is_written_again_from_its_rows;
mod a_suite_of_ones_own;
mod a_wrong_file_is_named;
#[cfg(unix)]
mod endurance;
mod killed_runs_resume_bit_identically;
mod models_on_request;
mod nothing_to_run_is_a_failure;
mod options_that_cannot_be_are_named;
mod settings_are_read_in_both_spellings;
mod smoke_needs_no_file;
