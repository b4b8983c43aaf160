//! Archives of rows.

use crate::row::row as example;
use bochner_report::Error;
use bochner_report::archive::Archive;
use bochner_report::row::Row;
use std::fs;
use std::path::Path;
use std::slice::from_ref;

/// Writes rows and artefacts into a directory.
fn written(rows: &[Row], left: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap());
    let text = lines.map(|line| line + "\n").collect::<String>();
    fs::write(directory.path().join("rows.jsonl"), text).unwrap();
    fs::write(directory.path().join("artefacts.jsonl"), left).unwrap();
    directory
}

#[test]
fn rows_and_artefacts_are_read_back() {
    let row = example();
    let left = format!(r#"{{"id":"{}","artefacts":{{"number":0.5}}}}"#, row.id);
    let archive = Archive::read(written(from_ref(&row), &left).path()).unwrap();
    assert_eq!(archive.rows, from_ref(&row));
    let number: Option<f64> = archive.artefacts[&row.id].get("number");
    assert_eq!(number, Some(0.5));
}

#[test]
fn a_wrong_line_is_named() {
    let renamed = Row {
        id: "another".into(),
        ..example()
    };
    let row = example();
    for (rows, left, reason) in [
        (vec![row.clone(), renamed], "", "it is called another"),
        (
            vec![row.clone()],
            r#"{"id":"another","artefacts":{}}"#,
            "no row of the unit another",
        ),
        (
            vec![row],
            r#"{"id":"another"}"#,
            "missing field `artefacts`",
        ),
    ] {
        let error = Archive::read(written(&rows, left).path()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    let nowhere = Path::new("nowhere");
    assert!(matches!(Archive::read(nowhere), Err(Error::Io { .. })));
}
