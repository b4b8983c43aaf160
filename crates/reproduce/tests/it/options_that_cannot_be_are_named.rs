//! The command line names an option that cannot be, and what could be given instead.

use std::process::Command;

fn refused(arguments: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(!run.status.success(), "{arguments:?}");
    String::from_utf8(run.stderr).unwrap()
}

#[test]
fn a_negative_number_is_the_value_of_its_option() {
    let said = refused(&["--epochs", "-3"]);
    assert!(
        said.contains("invalid value '-3' for '--epochs <N>'"),
        "{said}"
    );
}

/// Names of models hold commas, so that commas between them would not tell them apart.
#[test]
fn names_of_models_are_told_apart() {
    let said = refused(&["regression", "--model", "nothing"]);
    assert!(said.contains("IKA-NS; IKA-S; IKAN; IKAN-direct"), "{said}");
}
