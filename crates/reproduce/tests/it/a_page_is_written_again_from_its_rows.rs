//! The page of a directory of rows is written again by a command that runs nothing.

use std::fs;
use std::process::Command;

#[test]
fn pictures_and_tables_are_those_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let reproduce = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reproduce"));
        let run = command.args(arguments).output().unwrap();
        let wrong = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{wrong}");
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let out = directory.path().to_str().unwrap();
    reproduce(&["figure2", "--offline", "--out", out]);
    let page = directory.path().join("smoke/figure2");
    let read = |name: &str| fs::read_to_string(page.join(name)).unwrap();
    let tables = |report: &str| {
        let lines = report
            .lines()
            .filter(|line| line.starts_with("| generated |"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (weights, report) = (read("figure2-weights.csv"), read("report.md"));
    assert!(
        weights.lines().count() > 100 && tables(&report).len() > 3,
        "{report}"
    );
    for name in ["figure2-weights.csv", "report.md"] {
        fs::remove_file(page.join(name)).unwrap();
    }
    let said = reproduce(&["report", page.to_str().unwrap()]);
    assert!(
        said.contains("diversity: MIKAN's heads differ more"),
        "{said}"
    );
    assert_eq!(read("figure2-weights.csv"), weights);
    assert_eq!(tables(&read("report.md")), tables(&report));
}
