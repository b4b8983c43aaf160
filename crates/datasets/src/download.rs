//! Downloads by the machine's own `curl` or `wget`.
//!
//! A subprocess and not an HTTP crate: TLS in Rust means compiling C or linking a system library,
//! and the tools already know the proxies and certificates of the machine.

use crate::Error;
use crate::manifest::Entry;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio, id};
use std::sync::atomic::{AtomicU64, Ordering};

/// A program that can fetch an address into a file.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) program: OsString,
    pub(crate) options: Vec<String>,
    /// The option that is followed by the output file.
    pub(crate) output: &'static str,
}

impl Tool {
    pub(crate) fn defaults() -> Vec<Self> {
        let tool = |program: &str, options: &[&str], output| Self {
            program: program.into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            output,
        };
        vec![
            tool(
                "curl",
                &[
                    "--fail",
                    "--silent",
                    "--show-error",
                    "--location",
                    "--proto",
                    "=https",
                    "--connect-timeout",
                    "20",
                    "--speed-limit",
                    "100",
                    "--speed-time",
                    "60",
                ],
                "--output",
            ),
            tool(
                "wget",
                &["--no-verbose", "--https-only", "--timeout=60", "--tries=1"],
                "--output-document",
            ),
        ]
    }

    fn run(&self, url: &str, output: &Path) -> io::Result<Output> {
        Command::new(&self.program)
            .args(&self.options)
            .arg(self.output)
            .arg(output)
            .arg(url)
            .stdin(Stdio::null())
            .output()
    }
}

/// Fetches `entry` to `target` with the first tool there is.
///
/// `None`, with the reason added to `tried`, if there is no place, tool or connection. `target`
/// appears whole and verified or not at all.
pub(crate) fn download(
    entry: &Entry,
    target: &Path,
    tools: &[Tool],
    tried: &mut Vec<String>,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(url) = &entry.url else {
        return Ok(None);
    };
    let partial = match Partial::beside(target) {
        Ok(partial) => partial,
        Err(error) => {
            tried.push(error.to_string());
            return Ok(None);
        }
    };
    if !fetch(url, &partial.0, tools, tried)? {
        return Ok(None);
    }
    let bytes = fs::read(&partial.0).map_err(Error::io(&partial.0))?;
    entry.verify(url, &bytes)?;
    fs::rename(&partial.0, target).map_err(Error::io(target))?;
    Ok(Some(bytes))
}

fn fetch(url: &str, output: &Path, tools: &[Tool], tried: &mut Vec<String>) -> Result<bool, Error> {
    for tool in tools {
        let name = tool.program.to_string_lossy();
        match tool.run(url, output) {
            Ok(run) if run.status.success() => return Ok(true),
            Ok(run) => {
                tried.push(format!("{name}: {}", complaint(&run)));
                return Ok(false);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tried.push(format!("{name}: not installed"));
            }
            Err(error) => return Err(Error::io(Path::new(&tool.program))(error)),
        }
    }
    Ok(false)
}

fn complaint(run: &Output) -> String {
    let text = String::from_utf8_lossy(&run.stderr);
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => line.trim().to_owned(),
        None => run.status.to_string(),
    }
}

/// A file that vanishes with its owner unless it was renamed.
struct Partial(PathBuf);

impl Partial {
    /// A name next to `target` that no other process or thread uses.
    fn beside(target: &Path) -> Result<Self, Error> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let parent = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self(parent.join(format!(".{name}.{}.{number}.part", id()))))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::manifest::Pin;

    fn entry() -> Entry {
        Entry {
            set: "toy".into(),
            file: "toy/a.csv".into(),
            pin: Pin::of(b"good"),
            url: Some("https://example.org/a.csv".into()),
            derived_from: vec![],
            licence: String::new(),
            note: String::new(),
        }
    }

    /// A tool that runs `script` with `$1` the output file and `$2` the address.
    fn tool(script: &str) -> Tool {
        Tool {
            program: "sh".into(),
            options: vec!["-c".into(), script.into()],
            output: "sh",
        }
    }

    fn missing() -> Tool {
        Tool {
            program: "no-such-program-here".into(),
            ..tool("")
        }
    }

    type Outcome = Result<Option<Vec<u8>>, Error>;

    /// The outcome, what was tried, and the files left behind.
    fn attempt(tools: &[Tool]) -> (Outcome, Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("toy/a.csv");
        let mut tried = Vec::new();
        let outcome = download(&entry(), &target, tools, &mut tried);
        let left = fs::read_dir(folder.path().join("toy")).unwrap();
        let left = left
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        (outcome, tried, left)
    }

    #[test]
    fn a_verified_download_takes_its_place() {
        let fetches = tool(r#"test "$2" = https://example.org/a.csv && printf good > "$1""#);
        let (bytes, tried, left) = attempt(&[missing(), fetches]);
        assert_eq!(bytes.unwrap().unwrap(), b"good");
        assert_eq!(tried, ["no-such-program-here: not installed"]);
        assert_eq!(left, ["a.csv"]);
    }

    #[test]
    fn wrong_bytes_leave_nothing_behind() {
        let (outcome, _, left) = attempt(&[tool(r#"printf bad > "$1""#)]);
        assert!(
            matches!(outcome, Err(Error::Checksum { place, .. }) if place.starts_with("https"))
        );
        assert!(left.is_empty());
    }

    #[test]
    fn a_failed_download_says_why_and_leaves_nothing_behind() {
        let fails = tool(r#"printf go > "$1"; echo 'curl: (6) no such host' >&2; exit 6"#);
        let (outcome, tried, left) = attempt(&[fails]);
        assert_eq!(outcome.unwrap(), None);
        assert_eq!(tried, ["sh: curl: (6) no such host"]);
        assert!(left.is_empty());
    }

    #[test]
    fn the_real_tools_take_their_options() {
        for tool in Tool::defaults() {
            let unreachable = Entry {
                url: Some("https://localhost:1/a".into()),
                ..entry()
            };
            let folder = tempfile::tempdir().unwrap();
            let mut tried = Vec::new();
            let target = folder.path().join("a");
            let outcome = download(&unreachable, &target, &[tool], &mut tried).unwrap();
            assert_eq!((outcome, tried.len()), (None, 1));
            assert!(!tried[0].contains("option"), "{}", tried[0]);
        }
    }
}
