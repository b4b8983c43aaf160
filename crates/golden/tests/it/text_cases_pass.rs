//! The cases of text kept with this crate, and those that cannot be kept where they are at hand.

use bochner_datasets::{DataStore, Policy};
use bochner_golden::{GoldenReport, Verdict, check_directory};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases/text")
}

fn offline() -> DataStore {
    DataStore::new(Policy::Offline)
}

fn report_of(name: &str, text: &str) -> GoldenReport {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!("{name}.json")), text).unwrap();
    check_directory(dir.path(), &offline()).unwrap()
}

fn fault_of(name: &str, text: &str) -> String {
    let report = report_of(name, text);
    match &report.rows()[0].verdict {
        Verdict::Faulty(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The paths of all numbers, words and truth values in a value.
fn leaves(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| leaves(value, format!("{path}/{key}"), found)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| leaves(value, format!("{path}/{at}"), found)),
        Value::Null => {}
        _ => found.push(path),
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Bool(truth) => Value::from(!truth),
        Value::String(word) => Value::from(format!("{word}x")),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole + 1),
            None => Value::from(number.as_f64().unwrap() + 1e-6),
        },
        other => panic!("{other}"),
    }
}

/// A case passes only because its values agree: with any one of them off, it fails.
#[test]
fn every_expected_value_is_compared() {
    let report = check_directory(&cases(), &offline()).unwrap();
    let passed = report
        .rows()
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Passed(_)));
    let mut changes = 0;
    for row in passed {
        let text = fs::read_to_string(cases().join(format!("{}.json", row.name))).unwrap();
        let original: Value = serde_json::from_str(&text).unwrap();
        let mut paths = Vec::new();
        leaves(&original["expected"], "/expected".to_owned(), &mut paths);
        // The settings of a search stand among its results, with a statement about another rule than ours.
        let not_compared = ["beam", "alpha", "stop", "same_best_if_beam_shrinks"];
        paths.retain(|path| {
            !not_compared
                .iter()
                .any(|key| path.ends_with(&format!("/{key}")))
        });
        // A seventh of them: all take a minute.
        for path in paths.iter().step_by(if paths.len() > 100 { 7 } else { 1 }) {
            let mut mutant = original.clone();
            let value = mutant.pointer_mut(path).unwrap();
            *value = changed(value);
            let report = report_of(&row.name, &mutant.to_string());
            assert_eq!(report.passed(), 0, "{}, {path}:\n{report}", row.name);
            changes += 1;
        }
    }
    assert!(changes > 1000, "{changes}");
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let text = fs::read_to_string(cases().join("tokenize_13a-tricky.json")).unwrap();
    let name = "tokenize_13a-tricky";
    assert_eq!(report_of(name, &text).passed(), 1);
    assert!(fault_of("another", &text).contains("`name` is `tokenize_13a-tricky`"));
    assert!(fault_of(name, &text[..100]).contains("cannot be read as a case"));
    let extra = text.replacen("\"lines\"", "\"more\": 1, \"lines\"", 1);
    assert!(fault_of(name, &extra).contains("`more` is given; it should be a field of this case"));
    let lacking = text.replacen("\"tokens\"", "\"other_tokens\"", 1);
    assert!(fault_of(name, &lacking).contains("other_tokens"));
    let unheard = report_of(name, &text.replacen("\"tokenize_13a\"", "\"stemming\"", 1));
    assert_eq!([unheard.not_served(), unheard.failed()], [1, 0]);
}

#[test]
fn a_case_without_its_corpus_is_counted_and_does_not_fail() {
    let dir = tempfile::tempdir().unwrap();
    let name = "vocabulary-mr.json";
    fs::copy(cases().join(name), dir.path().join(name)).unwrap();
    let store = offline().with_cache(dir.path().join("nothing"));
    let report = check_directory(dir.path(), &store).unwrap();
    let counts = [
        report.passed(),
        report.failed(),
        report.not_served(),
        report.without_data(),
    ];
    assert_eq!(counts, [0, 0, 0, 1], "{report}");
    let shown = report.to_string();
    assert!(
        shown.contains("`mr/rt-polarity.all` is not available"),
        "{shown}"
    );
    assert!(
        shown.ends_with("0 not served, 1 without their corpus"),
        "{shown}"
    );
}

/// With the corpora: the cases kept here, and those beside the corpora that may not be kept.
#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn cases_about_corpora_pass() {
    let data = std::env::var_os("BOCHNER_DATA").map(PathBuf::from);
    let data = data.expect("BOCHNER_DATA names the directory of the data files");
    let store = offline().with_directory(&data).unwrap();
    let beside = data.parent().map(|above| above.join("golden/text"));
    let reference = beside.filter(|dir| Path::is_dir(dir));
    for dir in reference.into_iter().chain([cases()]) {
        let report = check_directory(&dir, &store).unwrap();
        println!("{report}");
        assert_eq!([report.failed(), report.without_data()], [0, 0]);
    }
}
