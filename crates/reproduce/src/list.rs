//! The suites with their sets, models and data, in words.

use crate::config::scales;
use crate::suites::{Entry, SUITES};
use bochner_datasets::{DataStore, Error, RegressionSet, manifest};
use bochner_report::Scale;
use bochner_report::suite::Model;
use std::fmt::Write;

/// Lists the suites: the sets of each with the scales that run them and the state of their files, and its models.
pub fn list(files: &DataStore) -> String {
    let mut text = String::new();
    for suite in SUITES {
        let _ = match suite {
            Entry::Trained(trained) => writeln!(text, "{}: {}", suite.name(), trained.card.title),
            Entry::Study(study) => writeln!(text, "{}: {}", study.name, study.title),
        };
        let Some(trained) = suite.trained() else {
            continue;
        };
        let card = trained.card;
        for set in card.sets {
            let scales = scales(&[trained], set.name).into_iter().map(Scale::name);
            let scales = scales.collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                text,
                "  set {} ({scales}): {}",
                set.name,
                state(set.name, files)
            );
        }
        for (what, on_request) in [("models", false), ("models on request", true)] {
            let models = card.models.iter();
            let models = models.filter(|model: &&Model| model.on_request == on_request);
            let names = models.map(|model| model.name).collect::<Vec<_>>();
            if !names.is_empty() {
                let _ = writeln!(text, "  {what}: {}", names.join("; "));
            }
        }
    }
    text
}

/// The state of the files of a set.
fn state(set: &str, files: &DataStore) -> String {
    let set_of_table = set.parse::<RegressionSet>();
    if set_of_table.is_ok_and(RegressionSet::is_built_in) {
        return "built in".to_owned();
    }
    let entries = manifest::entries().iter();
    let mut entries = entries.filter(|entry| entry.set == set).peekable();
    if entries.peek().is_none() {
        return "needs no file".to_owned();
    }
    let faults = entries.filter_map(|entry| match files.fetch(entry) {
        Ok(_) => None,
        Err(Error::Unavailable { file, .. }) => Some(format!("{file} is missing")),
        Err(error) => Some(error.to_string()),
    });
    match faults.collect::<Vec<_>>() {
        faults if faults.is_empty() => "there".to_owned(),
        faults if faults.len() > 3 => {
            format!("{}; and {} more", faults[..2].join("; "), faults.len() - 2)
        }
        faults => faults.join("; "),
    }
}
