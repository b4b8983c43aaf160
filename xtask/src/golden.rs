//! `cargo xtask golden`.

use crate::Ending;
use bochner_reproduce::golden::check_directory;
use std::path::Path;
use std::process::ExitCode;

/// The cases kept in the repository, from its root.
pub(crate) const COMMITTED: &str = "crates/reproduce/golden";

/// Compares the crates with the cases of a directory; any miss is a failure.
pub(crate) fn check(directory: &Path) -> Ending {
    let report = check_directory(directory)?;
    println!("{report}");
    Ok(if report.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
