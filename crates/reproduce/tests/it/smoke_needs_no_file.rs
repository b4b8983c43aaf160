//! The suites whose smoke data are generated or built in run anywhere, and their checks pass.

use std::process::Command;

#[test]
fn sentences_are_generated_and_figures_are_drawn_without_any_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args([
            "classification",
            "figure2",
            "figure4",
            "figure5",
            "--offline",
            "--out",
        ])
        .arg(&out)
        .env("XDG_CACHE_HOME", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}");
    assert_eq!(said.matches("  passed  ").count(), 14, "{said}");
    for file in [
        "classification/report.html",
        "figure4/report.md",
        "figure2/figure2-mikan-paper.svg",
        "figure2/figure2-weights.csv",
        "figure4/figure4-error.svg",
        "figure5/figure5-mikan.svg",
    ] {
        assert!(out.join("smoke").join(file).is_file(), "{file}");
    }
}
