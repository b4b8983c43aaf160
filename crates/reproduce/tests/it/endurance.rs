//! Tests that take minutes or a file system of its own: kills at random moments over all suites, and a disk that is full.
//! `cargo xtask ci --full` runs these tests.

use crate::killed_runs_resume_bit_identically::{files, results as timeless, without_seconds};
use crate::program::{answer, program, start, succeed};
use bochner_datasets::SplitMix64;
use bochner_reproduce::suites::{Entry, SUITES};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Deaths that the killed runs must survive.
const KILLS: usize = 200;

/// The deaths of a suite before it may end, in one directory, and the longest life before one.
const KILLS_OF_A_SUITE: usize = 20;
const LONGEST_LIFE: Duration = Duration::from_secs(2);

/// The variable that names the directory of data files. Without it suites are left out that have no set without files.
const DATA: &str = "BOCHNER_DATA";

/// Words in the names of measures that a clock takes: they differ from run to run.
const TIMED: [&str; 2] = ["seconds", "softmax over CAT"];

const SIGKILL: i32 = 9;

type Files = BTreeMap<String, String>;

/// A suite at scale `smoke` with few epochs and a checkpoint after each.
fn reproduce(suite: Entry, out: &Path) -> Command {
    let mut command = program(&[suite.name(), "--checkpoint-every", "0"], out);
    // What is measured in one go has no epochs and reads no files.
    if suite.trained().is_some() {
        command.args(["--epochs", "4"]);
        if let Some(data) = std::env::var_os(DATA) {
            command.arg("--data").arg(data);
        }
    }
    command
}

/// Runs a suite to its end; `false`, with nothing left of it, if it has no set without files and there are none.
fn finish_if_possible(suite: Entry, out: &Path) -> bool {
    let run = answer(&mut reproduce(suite, out));
    if run.code == Some(0) {
        return true;
    }
    let lacks_files = std::env::var_os(DATA).is_none() && run.out.contains("nothing was run");
    assert!(lacks_files, "{suite:?}: {}{}", run.out, run.err);
    fs::remove_dir_all(out.join("smoke").join(suite.name())).unwrap();
    false
}

/// Starts a suite and kills it after a time; `false` if it ended before.
fn is_killed(suite: Entry, out: &Path, after: Duration) -> bool {
    let mut child = start(&mut reproduce(suite, out));
    sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let killed = status.signal() == Some(SIGKILL);
    assert!(killed || status.success(), "{suite:?}: {status}");
    killed
}

/// All that a run leaves, without the time it took.
fn results(out: &Path) -> Files {
    let files = files(out, &["units", "artefacts", "smoke"]).into_iter();
    files
        .map(|(name, text)| (name, without_seconds(&without_timed(&text))))
        .collect()
}

fn without_timed(rows: &str) -> String {
    let is_timed = |row: &str| {
        let row: Value = serde_json::from_str(row).unwrap_or_default();
        let what = row["what"].as_str().unwrap_or_default();
        TIMED.iter().any(|timed| what.contains(timed))
    };
    let kept: Vec<&str> = rows.lines().filter(|row| !is_timed(row)).collect();
    kept.join("\n")
}

/// Every line of the results is whole, and what was finished before has not changed by a byte, so that it was not run again.
fn assert_kept(before: &Files, now: &Files) {
    for (name, text) in now {
        let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert!(
            text.ends_with('\n') && text.lines().all(is_whole),
            "{name}: {text}"
        );
    }
    for (name, text) in before {
        assert_eq!(now.get(name), Some(text), "{name}");
    }
}

fn finished(out: &Path) -> Files {
    files(out, &["units", "artefacts"])
}

#[test]
#[ignore = "takes minutes: run by cargo xtask ci --full"]
fn two_hundred_kills_lose_no_finished_unit_and_change_no_bit() {
    let whole = tempdir().unwrap();
    let timed = SUITES.iter().copied().filter_map(|suite| {
        let start = Instant::now();
        let ran = finish_if_possible(suite, whole.path());
        if !ran {
            println!("{DATA} is not set: {suite:?} is left out");
        }
        ran.then(|| (suite, start.elapsed()))
    });
    let timed: Vec<(Entry, Duration)> = timed.collect();
    let expected = results(whole.path());
    assert!(expected.len() > 100, "{} files", expected.len());

    let (mut random, mut kills, mut rounds) = (SplitMix64::new(2021), BTreeMap::new(), 0);
    while kills.values().sum::<usize>() < KILLS {
        let killed = tempdir().unwrap();
        for &(suite, time) in &timed {
            let life = LONGEST_LIFE.min(time / 2);
            for _ in 0..KILLS_OF_A_SUITE {
                let before = finished(killed.path());
                let share = random.next().unwrap() as f64 / u64::MAX as f64;
                let died = is_killed(suite, killed.path(), life.mul_f64(share));
                assert_kept(&before, &finished(killed.path()));
                if !died {
                    break;
                }
                *kills.entry(suite.name()).or_insert(0) += 1;
            }
            let before = finished(killed.path());
            succeed(&mut reproduce(suite, killed.path()));
            assert_kept(&before, &finished(killed.path()));
        }
        rounds += 1;
        assert_eq!(results(killed.path()), expected);
    }
    println!(
        "{kills:?} in {rounds} rounds, {} files each",
        expected.len()
    );
}

/// Runs in a file system of its own, first with room, then without any, then with too little, then with room again; what
/// the program says and what it leaves is copied out.
const FULL_DISK: &str = r#"
mount -t tmpfs -o size=16m tmpfs "$DISK" || exit 1
run() {
    name=$1; shift
    "$REPRODUCE" regression --set passenger --offline --epochs 8 --checkpoint-every 0 --out "$DISK/results" "$@" \
        >"$SEEN/$name.out" 2>"$SEEN/$name.err"
    echo $? >"$SEEN/$name.code"
    cp -r "$DISK/results" "$SEEN/$name"
}
run before --model Transformer
dd if=/dev/zero of="$DISK/ballast" bs=4096 2>/dev/null
run full
truncate -s -1048576 "$DISK/ballast"
run tight
rm "$DISK/ballast"
run again
"#;

/// The ways to a mount table of a process's own: as root, or in a user namespace.
const NAMESPACES: [&str; 2] = ["-m", "-Urm"];

#[test]
#[ignore = "mounts a file system: run by cargo xtask ci --full"]
fn a_full_disk_is_named_and_loses_nothing_until_there_is_room_again() {
    let (disk, seen, whole) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let in_namespace = |namespace: &&str| {
        let mut command = Command::new("unshare");
        command.args([namespace, "sh", "-c", FULL_DISK]);
        command.env("REPRODUCE", env!("CARGO_BIN_EXE_reproduce"));
        command.env("DISK", disk.path()).env("SEEN", seen.path());
        command.env("GIT_DIR", "/dev/null");
        start(&mut command).wait().unwrap().success()
    };
    assert!(
        NAMESPACES.iter().any(in_namespace),
        "this machine mounts no tmpfs for this user: run the test as root"
    );
    assert_eq!(
        fs::read_dir(disk.path()).unwrap().count(),
        0,
        "the mount leaked"
    );

    let read = |name: &str| fs::read_to_string(seen.path().join(name)).unwrap();
    let code = |step: &str| read(&format!("{step}.code")).trim().parse::<i32>().unwrap();
    let kept = |step: &str| finished(&seen.path().join(step));
    assert_eq!(
        ["before", "full", "tight", "again"].map(code),
        [0, 1, 1, 0],
        "{}",
        read("tight.err")
    );
    for step in ["full", "tight"] {
        let said = read(&format!("{step}.err"));
        let is_named = said.contains("No space left on device") && said.contains("free some space");
        assert!(
            is_named && said.contains(disk.path().to_str().unwrap()),
            "{said}"
        );
    }
    assert!(!kept("before").is_empty());
    assert!(
        kept("tight").len() > kept("full").len(),
        "units are finished until there is no room"
    );
    for (before, after) in [("before", "full"), ("full", "tight"), ("tight", "again")] {
        assert_kept(&kept(before), &kept(after));
    }
    let again = ["regression", "--set", "passenger", "--epochs", "8"];
    succeed(&mut program(&again, whole.path()));
    assert_eq!(timeless(&seen.path().join("again")), timeless(whole.path()));
}
