//! `cargo xtask test`, `ci` and `docs`.

use crate::cargo::{Counts, cargo, finish, finish_tests, root, run, steps};
use crate::{Ending, tidy};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

/// The packages and features of every build, always the same, so that nothing is built twice.
const WORKSPACE: [&str; 3] = ["--workspace", "--features", "bochner-graph/petgraph"];

/// The programs of tests: those of the libraries and of the folders `tests`. The examples beside them are checked
/// by clippy, and built by `ci --full`.
const PROGRAMS: [&str; 1] = ["--tests"];

/// The tests that are run with every instruction set: reference values, and conformance of kernels and mechanisms.
/// How work is cut for threads does not depend on them.
const EVERY_INSTRUCTION_SET: [&str; 7] = [
    "--test",
    "it",
    "--",
    "conformance",
    "every_case_passes",
    "--skip",
    "threads_change_nothing",
];

/// The variable that holds a process to slower instruction sets than the processor's best.
const INSTRUCTIONS: &str = "BOCHNER_INSTRUCTIONS";

/// The folder of the modules that a macro declares, which rustfmt does not find by itself.
const MECHANISMS: &str = "crates/attention/src/mechanism";

/// The variable that names the directory of the data files, for the tests that need them.
const DATA: &str = "BOCHNER_DATA";

/// The ignored tests that take minutes and need the right to mount a file system.
const ENDURANCE: &str = "endurance::";

/// The prefix of tests that are ignored only because they are slow. Cargo looks for it anywhere in a name.
const LONG: &str = "long_";

/// The crates with optional features, and the flag that turns these off.
const WITHOUT_FEATURES: [&str; 7] = [
    "--package",
    "bochner-attention",
    "--package",
    "bochner-copula",
    "--package",
    "bochner-graph",
    "--no-default-features",
];

/// Generated cases of a property in `ci --full`; proptest's own number is 256.
const MANY_CASES: (&str, &str) = ("PROPTEST_CASES", "2048");

/// `cargo xtask test`.
pub(crate) fn test() -> Ending {
    let tests = Tests::default();
    let ending = tests.all()?;
    tests.say();
    Ok(ending)
}

/// `cargo xtask ci`: the tests come first, since they say most; their count is the last line.
pub(crate) fn ci(full: bool) -> Ending {
    let tests = Tests::default();
    let daily: [&dyn Fn() -> Ending; 8] = [
        &|| tests.all(),
        &|| tests.with_data(),
        &|| tests.slower_instructions(),
        &tidy::run,
        &|| format(&["--check"]),
        &|| with_tool("clippy", &lint(&WORKSPACE)),
        &|| with_tool("clippy", &lint(&WITHOUT_FEATURES)),
        &docs,
    ];
    let long: [&dyn Fn() -> Ending; 9] = [
        &|| tests.call(&[&["test", "--tests"], &WITHOUT_FEATURES]),
        &|| run(&[&["build", "--examples"][..], &WORKSPACE].concat()),
        &|| tests.long(),
        &|| tests.endurance(),
        &|| tests.many_cases(),
        &|| tests.lapack(),
        &|| tests.miri(),
        &|| with_tool("deny", &["deny", "check", "licenses", "bans", "sources"]),
        &job_array,
    ];
    let ending = steps(&[&daily[..], if full { &long } else { &[] }].concat());
    tests.say();
    ending
}

/// The instruction sets of this processor but the one that is chosen by itself.
fn slower_instructions() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return &["avx2", "portable"];
    }
    &["portable"]
}

fn lint<'a>(what: &[&'a str]) -> Vec<&'a str> {
    [
        &["clippy"],
        what,
        &["--all-targets", "--", "-D", "warnings"],
    ]
    .concat()
}

/// The calls that run tests, and what they counted.
#[derive(Default)]
struct Tests {
    counts: RefCell<Counts>,
}

impl Tests {
    fn run(&self, command: &mut Command) -> Ending {
        finish_tests(command, &mut self.counts.borrow_mut())
    }

    fn call(&self, arguments: &[&[&str]]) -> Ending {
        self.run(&mut cargo(&arguments.concat()))
    }

    fn say(&self) {
        let counts = self.counts.borrow();
        println!("\n{} ignored", counts.ignored);
        println!("{} passed, {} failed", counts.passed, counts.failed);
    }

    fn all(&self) -> Ending {
        steps(&[
            &|| self.call(&[&["test", "--no-fail-fast"], &WORKSPACE, &PROGRAMS]),
            &|| self.call(&[&["test", "--no-fail-fast"], &WORKSPACE, &["--doc"]]),
        ])
    }

    /// Kills at random moments and a full disk; nothing is built again.
    fn endurance(&self) -> Ending {
        self.call(&[
            &["test"],
            &WORKSPACE,
            &["--test", "it", "--", "--ignored", ENDURANCE],
        ])
    }

    fn long(&self) -> Ending {
        let these = ["--", "--ignored", LONG];
        self.call(&[&["test", "--no-fail-fast"], &WORKSPACE, &PROGRAMS, &these])
    }

    /// The tests that need the data files, which are ignored otherwise; nothing is built again.
    fn with_data(&self) -> Ending {
        if env::var_os(DATA).is_none() {
            println!(
                "{DATA} does not name the directory of the data files: their tests are left out"
            );
            return Ok(ExitCode::SUCCESS);
        }
        let these = ["--", "--ignored", "--skip", ENDURANCE, "--skip", LONG];
        self.call(&[&["test", "--no-fail-fast"], &WORKSPACE, &PROGRAMS, &these])
    }

    /// Runs the tests of computations with the instruction sets that are not chosen by default. Nothing is built again.
    fn slower_instructions(&self) -> Ending {
        for set in slower_instructions() {
            let mut command = cargo(
                &[
                    &["test", "--no-fail-fast"],
                    &WORKSPACE[..],
                    &EVERY_INSTRUCTION_SET,
                ]
                .concat(),
            );
            let code = self.run(command.env(INSTRUCTIONS, set))?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn many_cases(&self) -> Ending {
        let mut command = cargo(&[&["test"], &WORKSPACE[..], &PROGRAMS].concat());
        self.run(command.env(MANY_CASES.0, MANY_CASES.1))
    }

    /// The crates whose linear algebra the system's OpenBLAS can do, with it; left out where it is
    /// missing, and said so, since the default build must not need it.
    fn lapack(&self) -> Ending {
        if !has_openblas() {
            println!(
                "OpenBLAS (Debian: libopenblas-dev) is not installed: feature lapack left out"
            );
            return Ok(ExitCode::SUCCESS);
        }
        let crates = [
            "--package",
            "bochner-dense",
            "--package",
            "bochner-copula",
            "--package",
            "bochner-gp",
            "--features",
            "lapack",
        ];
        steps(&[&|| with_tool("clippy", &lint(&crates)), &|| {
            self.call(&[&["test"], &crates])
        }])
    }

    /// The crate with the unsafe code, and the engine on it, in Miri, where a nightly toolchain has it: small
    /// sizes on every instruction set that Miri knows, which it takes for there if they are compiled for.
    fn miri(&self) -> Ending {
        // Without an input it asks for no permission to install what it lacks.
        let setup = in_miri(&["setup"]).stdin(Stdio::null()).output();
        if !setup.is_ok_and(|setup| setup.status.success()) {
            println!("Miri (rustup: nightly with miri and rust-src) is not installed: left out");
            return Ok(ExitCode::SUCCESS);
        }
        let miri = |package: &str, flags: &str, arguments: &[&str]| {
            let mut command = in_miri(&["test", "--package", package]);
            // The standard library's functions without the errors that Miri gives them at random.
            let flags = format!("-Zmiri-deterministic-floats -Zmiri-disable-isolation {flags}");
            command.args(arguments).env("MIRIFLAGS", flags);
            command
        };
        let numerics = |flags: &str, arguments: &[&str]| miri("bochner-numerics", flags, arguments);
        // Rayon's threads outlive the tests, and what they share keeps to the newer rules of borrowing.
        let rayon = "-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks";
        let tests = ["--test", "it", "--"];
        let without = ["--skip", "parallel::", "--skip", "operations::"];
        let each_set = || {
            for set in IN_MIRI {
                let mut command = numerics("", &[&tests[..], &without].concat());
                let code = self.run(command.env(INSTRUCTIONS, set))?;
                if code != ExitCode::SUCCESS {
                    return Ok(code);
                }
            }
            Ok(ExitCode::SUCCESS)
        };
        steps(&[
            &each_set,
            &|| {
                self.run(&mut numerics(
                    "",
                    &["--doc", "--", "allocations::", "memory::"],
                ))
            },
            &|| {
                self.run(&mut numerics(
                    rayon,
                    &[&tests[..], &["parallel::"]].concat(),
                ))
            },
            // The engine is safe code over numerics' unsafe code.
            &|| {
                self.run(&mut miri(
                    "bochner-engine",
                    rayon,
                    &["--test", "it", "--", "numbers::"],
                ))
            },
        ])
    }
}

/// Whether the C compiler, which links for Rust, finds the library.
fn has_openblas() -> bool {
    let library = "libopenblas.so";
    let found = Command::new("cc")
        .arg(format!("-print-file-name={library}"))
        .output();
    // What is not found is printed as it was asked for.
    found.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).trim() != library)
}

/// The instruction sets that Miri knows.
const IN_MIRI: &[&str] = if cfg!(target_arch = "x86_64") {
    &["avx512", "avx2", "portable"]
} else {
    &["portable"]
};

/// A call of nightly's Miri, whatever toolchain runs this.
fn in_miri(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]);
    command.args(arguments).current_dir(crate::cargo::root());
    if cfg!(target_arch = "x86_64") {
        let sets = "-C target-feature=+avx2,+fma,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vpopcntdq";
        command.env("RUSTFLAGS", sets).env("RUSTDOCFLAGS", sets);
    }
    // Where a panic is on purpose, looking up its lines takes seconds.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// `cargo xtask fmt`, and its check.
pub(crate) fn format(flags: &[&str]) -> Ending {
    let mut hidden = Vec::new();
    for entry in fs::read_dir(crate::cargo::root().join(MECHANISMS))? {
        let path = entry?.path();
        hidden.push(if path.is_dir() {
            path.join("mod.rs")
        } else {
            path
        });
    }
    hidden.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let hidden: Vec<_> = hidden.iter().filter_map(|path| path.to_str()).collect();
    with_tool("fmt", &[&["fmt", "--all", "--"], flags, &hidden].concat())
}

/// `cargo xtask docs`.
pub(crate) fn docs() -> Ending {
    // The variable replaces the flags of `.cargo/config.toml`, so the header is named again.
    let flags = "--html-in-header docs/katex-header.html -D warnings";
    let mut command = cargo(&[&["doc", "--no-deps"], &WORKSPACE[..]].concat());
    finish(command.env("RUSTDOCFLAGS", flags))
}

/// Runs the script of docs/machines.md on a cluster that is this machine, or leaves it out, and says so.
fn job_array() -> Ending {
    let program = ["build", "--package", "bochner-reproduce"];
    let code = run(&program)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = named.unwrap_or_else(|| root().join("target"));
    let mut script = Command::new(root().join(".ci/slurm"));
    finish(
        script
            .arg(target.join("debug/reproduce"))
            .current_dir(root()),
    )
}

/// Runs a part of cargo that some machines lack; there it is left out, and said so.
fn with_tool(tool: &str, arguments: &[&str]) -> Ending {
    let probe = cargo(&[tool, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if probe.success() {
        return run(arguments);
    }
    println!("cargo {tool} is not installed: left out");
    Ok(ExitCode::SUCCESS)
}
