//! A data file that is wrong is named with what to do about it, and the sets whose files are right run.

use std::fs;
use std::process::Command;

#[test]
fn a_wrong_file_is_named_with_its_remedy_and_other_sets_run() {
    for (suite, set, name, wrong) in [
        ("classification", "CR", "cr/custrev.all", &b""[..]),
        ("classification", "CR", "cr/custrev.all", b"0 \xff\xfe\n"),
        (
            "classification",
            "CR",
            "cr/custrev.all",
            b"0 good\n7 no label\n",
        ),
        (
            "regression",
            "Housing",
            "housing/housing.data",
            b"9 caf\xe9\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, wrong).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
            .args([suite, "--model", "Transformer", "--epochs", "1"])
            .args(["--offline", "--data"])
            .arg(directory.path())
            .arg("--out")
            .arg(directory.path().join("results"))
            .env("XDG_CACHE_HOME", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!(run.status.code(), Some(1), "{said}");
        let skipped = format!(" skipped  {set}");
        let skipped = said.lines().find(|line| line.contains(&skipped));
        assert!(
            skipped.is_some_and(|line| line.contains(file.to_str().unwrap())),
            "{said}"
        );
        assert!(said.contains("replace"), "{said}");
        assert!(
            said.contains(" 0 failed") && !said.contains("\n0 units run"),
            "{said}"
        );
        assert_eq!(fs::read(&file).unwrap(), wrong, "the file is the user's");
    }
}
