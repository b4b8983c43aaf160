//! Reference values, as an outside user checks them.

mod committed_cases_pass;
mod text_cases_pass;
mod wrong_files_are_named;
