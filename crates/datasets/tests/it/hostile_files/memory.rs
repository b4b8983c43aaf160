//! Files that state more than they hold.

use crate::hostile_files::writer::{Features, Writer, labels, outcomes, start_of_graph};

/// Files of a few bytes, or a few hundred thousand, that state far more.
fn bombs() -> Vec<Vec<u8>> {
    let huge = i32::MAX;
    let mut shared = start_of_graph().raw(b"K\0](");
    for _ in 0..100_000 {
        shared = shared.int(1);
    }
    shared = shared.raw(b"eq\x05");
    for node in 1..50_000 {
        shared = shared.int(node).raw(b"h\x05");
    }
    let lists = start_of_graph().raw(&vec![b']'; 20_000_000]).stop();
    let features = |shape: [i32; 2]| {
        let features = Features {
            shape: shape.into(),
            ..Features::valid()
        };
        features.write()
    };
    vec![
        labels(&[huge, 0], &[]),
        labels(&[0, huge], &[]),
        labels(&[huge, huge], &[]),
        features([huge, huge]),
        features([3, huge]),
        Writer::new().raw(b"T\xff\xff\xff\x7f").stop(),
        Writer::new().raw(b"T\xff\xff\xff\xff").stop(),
        Writer::new().raw(b"Nr\xff\xff\xff\xff").stop(),
        shared.raw(b"u").stop(),
        lists,
    ]
}

#[test]
#[ignore = "run by `nothing_is_allocated_that_is_not_there`, in limited memory"]
fn bombs_go_off() {
    for bomb in bombs() {
        // Only the matrix of three short rows with many columns is a value.
        let read = outcomes(&bomb)
            .iter()
            .filter(|outcome| outcome.is_ok())
            .count();
        assert!(read <= 1);
    }
}

/// In 600 MB of address space, of which the largest of the bombs takes 20 itself. Without the
/// check of lists that are shared, one of them would need 80 GB, and so would rows of labels
/// without classes.
#[test]
#[cfg(target_os = "linux")]
fn nothing_is_allocated_that_is_not_there() {
    let program = std::env::current_exe().unwrap();
    let script =
        r#"ulimit -v 600000 && exec "$0" --exact memory::bombs_go_off --ignored --test-threads 1"#;
    let mut shell = std::process::Command::new("sh");
    let run = shell.args(["-c", script]).arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{text}{complaint}");
    assert!(text.contains("1 passed"), "{text}");
}
