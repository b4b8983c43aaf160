//! Published rows are taken over by a command, and then their units are finished.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn imported_rows_are_not_run_again() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/table4-desk");
    let directory = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args([
            "regression",
            "--set",
            "passenger",
            "--scale",
            "desk",
            "--cut",
            "none",
        ])
        .args(["--offline", "--out"])
        .arg(directory.path())
        .arg("--import")
        .arg(&published)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(said.contains("420 rows imported"), "{said}");
    assert!(
        said.contains("0 units run, 130 finished before, 0 failed"),
        "{said}"
    );

    // All rows are shown and written out again, also those of sets that were not asked for.
    let sorted = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let written = directory.path().join("desk/regression/rows.jsonl");
    assert_eq!(sorted(&written), sorted(&published.join("rows.jsonl")));
}
