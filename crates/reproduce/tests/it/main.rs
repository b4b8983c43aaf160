//! The tests of this crate: of its public items, and of the program `reproduce`, as it is called.

mod a_page_is_written_again_from_its_rows;
mod a_suite_of_ones_own;
mod a_wrong_file_is_named;
mod config;
#[cfg(unix)]
mod endurance;
mod fixtures;
mod history;
mod killed_runs_resume_bit_identically;
mod list;
mod mechanisms;
mod models_on_request;
mod nothing_to_run_is_a_failure;
mod program;
mod runner;
mod settings_are_read_in_both_spellings;
mod smoke;
mod store;
mod suites;
mod the_version_is_that_of_the_program;
mod toy;
mod trials;
