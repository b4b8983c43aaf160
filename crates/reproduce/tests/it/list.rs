//! The list of suites.

use bochner_datasets::{DataStore, Policy};
use bochner_reproduce::list;
use bochner_reproduce::suites::SUITES;

#[test]
fn every_suite_is_listed_with_the_state_of_its_files() {
    let data = tempfile::tempdir().unwrap();
    let files = DataStore::new(Policy::Offline).with_cache(data.path());
    let text = list(&files);
    for suite in SUITES {
        let head = format!("{}: ", suite.name());
        assert!(text.lines().any(|line| line.starts_with(&head)), "{head}");
    }
    for line in [
        "  set passenger (smoke, desk, paper): built in",
        "  set generated (smoke): needs no file",
        "  models on request: Performer; CAT; bipolar; Primal",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert!(text.contains("housing/housing.data is missing"), "{text}");
}
