//! A run that finds no data at all says so and fails; one that finds some of them does not.

use crate::program::{answer, program};

#[test]
fn nothing_to_run_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let run = answer(&mut program(&["nodes"], directory.path()));
    assert_eq!(run.code, Some(1));
    let said = run.out;
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("nothing was run"), "{said}");
    for file in ["allx", "ally", "graph", "test.index", "tx", "ty", "x", "y"] {
        let address = format!("/ind.cora.{file}'");
        assert!(said.contains(&address), "{file}: {said}");
    }
}
