//! `cargo xtask tidy`: the walls between the crates and the rules of their sources.

mod formulas;
mod settings;
mod sources;
mod voice;
mod walls;

use crate::Ending;
use std::process::ExitCode;

/// Prints every breach; one is enough to fail.
pub(crate) fn run() -> Ending {
    let mut breaches = walls::breaches()?;
    breaches.extend(sources::breaches()?);
    for breach in &breaches {
        println!("tidy: {breach}");
    }
    if breaches.is_empty() {
        println!("tidy: the walls stand");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
