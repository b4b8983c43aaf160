//! Models that run on request train in every slot that they fit, stay in reports, and are refused with the reason elsewhere.

use crate::program::{answer, program, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;

const NAMES: [&str; 4] = ["Performer", "CAT", "bipolar", "Primal"];

fn reproduce(out: &Path, suite: &str, set: &str, models: &[&str]) -> Command {
    let mut command = program(&[suite, "--set", set, "--epochs", "2"], out);
    command.args(models.iter().flat_map(|model| ["--model", model]));
    command
}

#[test]
fn they_train_where_they_fit_and_stay_in_reports() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    for (suite, set, units) in [
        ("classification", "generated", 4),
        ("regression", "passenger", 8),
    ] {
        let said = succeed(&mut reproduce(out, suite, set, &NAMES));
        let wanted = format!("{units} units run, 0 finished before, 0 failed");
        assert!(said.contains(&wanted), "{said}");
        // Another run, of other models, shows them.
        succeed(&mut reproduce(out, suite, set, &["RBF-only"]));
        let report = out.join("smoke").join(suite).join("report.md");
        let report = fs::read_to_string(report).unwrap();
        for name in NAMES {
            let cell = format!(" | {name} | ");
            assert!(report.contains(&cell), "{name}: {report}");
        }
        let control = report.contains("Models that see the order of rows");
        assert_eq!(control, suite == "regression", "{report}");
    }
}

#[test]
fn what_sees_the_order_of_rows_is_refused_where_they_have_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = reproduce(directory.path(), "regression", "housing", &["CAT"]);
    let run = answer(&mut run);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("cat sees the order of rows"),
        "{}",
        run.err
    );
}
