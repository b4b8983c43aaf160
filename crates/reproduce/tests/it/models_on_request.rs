//! Models that run on request train in every slot that they fit, stay in reports, and are refused with the reason elsewhere.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const NAMES: [&str; 4] = ["Performer", "CAT", "bipolar", "Primal"];

fn reproduce(directory: &Path, suite: &str, set: &str, models: &[&str]) -> Output {
    let models = models.iter().flat_map(|model| ["--model", model]);
    Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args([suite, "--set", set, "--offline", "--epochs", "2", "--out"])
        .arg(directory.join("results"))
        .args(models)
        .env("XDG_CACHE_HOME", directory)
        .output()
        .unwrap()
}

#[test]
fn they_train_where_they_fit_and_stay_in_reports() {
    let directory = tempfile::tempdir().unwrap();
    for (suite, set, units) in [
        ("classification", "generated", 4),
        ("regression", "passenger", 8),
    ] {
        let run = reproduce(directory.path(), suite, set, &NAMES);
        let said = String::from_utf8_lossy(&run.stdout);
        let why = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}{why}");
        let wanted = format!("{units} units run, 0 finished before, 0 failed");
        assert!(said.contains(&wanted), "{said}");
        // Another run, of other models, shows them.
        let run = reproduce(directory.path(), suite, set, &["RBF-only"]);
        assert!(run.status.success());
        let report = directory.path().join("results/smoke").join(suite);
        let report = fs::read_to_string(report.join("report.md")).unwrap();
        for name in NAMES {
            assert!(
                report.contains(&format!(" | {name} | ")),
                "{name}: {report}"
            );
        }
        let control = report.contains("Models that see the order of rows");
        assert_eq!(control, suite == "regression", "{report}");
    }
}

#[test]
fn what_sees_the_order_of_rows_is_refused_where_they_have_none() {
    let directory = tempfile::tempdir().unwrap();
    let run = reproduce(directory.path(), "regression", "housing", &["CAT"]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("cat sees the order of rows"), "{said}");
}
