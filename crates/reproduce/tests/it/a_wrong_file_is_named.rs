//! A data file that is wrong is named with what to do about it, and the sets whose files are right run.

use bochner_datasets::SentenceSet;
use std::fs;
use std::process::Command;

#[test]
fn a_wrong_file_of_sentences_is_named_with_its_remedy_and_other_sets_run() {
    for wrong in [
        &b""[..],
        b"0 \xff\xfe\n",
        b"0 good\n7 a label that is none\n",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(SentenceSet::Cr.files()[0]);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, wrong).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
            .args(["classification", "--epochs", "1", "--offline", "--data"])
            .arg(directory.path())
            .arg("--out")
            .arg(directory.path().join("results"))
            .env("XDG_CACHE_HOME", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!(run.status.code(), Some(1), "{said}");
        let skipped = said.lines().find(|line| line.contains(" skipped  CR"));
        assert!(
            skipped.is_some_and(|line| line.contains(file.to_str().unwrap())),
            "{said}"
        );
        assert!(
            said.contains("replace the file, then run this again"),
            "{said}"
        );
        assert!(
            said.contains(" 0 failed") && !said.starts_with("0 units run"),
            "{said}"
        );
        assert_eq!(fs::read(&file).unwrap(), wrong, "the file is the user's");
    }
}
