//! Downloads by the machine's own `curl` or `wget`.
//!
//! The crate starts a program instead of using an HTTP crate: TLS in Rust means compiling C or linking a
//! system library, and these programs already know the proxies and certificates of the machine.

use crate::Error;
use crate::manifest::Entry;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio, id};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A program that writes the file at an address to its standard output.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    program: &'static str,
    options: &'static [&'static str],
}

impl Tool {
    /// Neither tool leaves https: `curl` refuses redirections to anything else, and `wget`, whose
    /// `--https-only` concerns recursive downloads alone, follows none.
    pub(crate) const ALL: &[Self] = &[
        Self {
            program: "curl",
            options: &[
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
        },
        Self {
            program: "wget",
            options: &[
                "--no-verbose",
                "--max-redirect=0",
                "--timeout=60",
                "--tries=1",
                "--output-document=-",
            ],
        },
    ];

    /// Runs the tool and returns at most `most` bytes of the file, and how the tool ended. A tool that
    /// reaches `most` bytes is stopped.
    fn run(&self, url: &str, most: u64) -> io::Result<(Vec<u8>, Output)> {
        let mut child = Command::new(self.program)
            .args(self.options)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut bytes = Vec::new();
        let output = child.stdout.take().expect("the output is piped");
        // A tool that fills one pipe while that pipe is not read never gets to the other.
        let mut complaints = child.stderr.take().expect("complaints are piped");
        let complaints = thread::spawn(move || {
            let mut text = Vec::new();
            complaints.read_to_end(&mut text).map(|_| text)
        });
        output.take(most).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == most {
            child.kill()?;
        }
        let mut run = child.wait_with_output()?;
        run.stderr = complaints.join().expect("reading does not panic")?;
        Ok((bytes, run))
    }
}

/// Fetches `entry` to `target` with the first tool there is.
///
/// Returns `None`, with the reason added to `tried`, if there is no place, tool or connection. The
/// target appears whole and verified, or not at all.
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
    let Some(bytes) = fetch(url, entry.pin.most(), tools, tried)? else {
        return Ok(None);
    };
    entry.verify(url, &bytes)?;
    fs::write(&partial.0, &bytes).map_err(Error::io(&partial.0))?;
    fs::rename(&partial.0, target).map_err(Error::io(target))?;
    Ok(Some(bytes))
}

/// The file at the address, fetched with the first tool that is installed and cut one byte after
/// `length`: a file that is too long fails its pin without its rest, too.
fn fetch(
    url: &str,
    length: u64,
    tools: &[Tool],
    tried: &mut Vec<String>,
) -> Result<Option<Vec<u8>>, Error> {
    let most = length.saturating_add(1);
    for tool in tools {
        let name = tool.program;
        match tool.run(url, most) {
            Ok((bytes, run)) if run.status.success() || bytes.len() as u64 == most => {
                return Ok(Some(bytes));
            }
            Ok((_, run)) => {
                tried.push(format!("{name}: {}", complaint(&run)));
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tried.push(format!("{name}: not installed"));
            }
            Err(error) => return Err(Error::io(Path::new(name))(error)),
        }
    }
    Ok(None)
}

fn complaint(run: &Output) -> String {
    let text = String::from_utf8_lossy(&run.stderr);
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => line.trim().to_owned(),
        None => run.status.to_string(),
    }
}

/// A temporary file, removed when this value is dropped unless the file was renamed before.
struct Partial(PathBuf);

impl Partial {
    /// Chooses a name next to `target` that no other process or thread uses.
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
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    const MISSING: Tool = Tool {
        program: "no-such-program-here",
        options: &[],
    };

    /// A tool that runs a script with `$1` the address.
    macro_rules! script {
        ($script:literal) => {
            Tool {
                program: "sh",
                options: &["-c", $script, "sh"],
            }
        };
    }

    type Outcome = Result<Option<Vec<u8>>, Error>;

    /// The outcome, what was tried, and the files left behind.
    fn attempt(tools: &[Tool]) -> (Outcome, Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("toy/a.csv");
        let mut tried = Vec::new();
        let outcome = download(&Entry::toy(b"good"), &target, tools, &mut tried);
        let left = fs::read_dir(folder.path().join("toy")).unwrap();
        let left = left
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        (outcome, tried, left)
    }

    #[test]
    fn a_verified_download_takes_its_place() {
        let fetches = script!(r#"test "$1" = https://example.org/a.csv && printf good"#);
        let (bytes, tried, left) = attempt(&[MISSING, fetches]);
        assert_eq!(bytes.unwrap().unwrap(), b"good");
        assert_eq!(tried, ["no-such-program-here: not installed"]);
        assert_eq!(left, ["a.csv"]);
    }

    #[test]
    fn wrong_bytes_leave_nothing_behind() {
        let (outcome, _, left) = attempt(&[script!("printf bad")]);
        assert!(
            matches!(outcome, Err(Error::Checksum { place, .. }) if place.starts_with("https"))
        );
        assert!(left.is_empty());
    }

    #[test]
    fn a_download_that_does_not_end_is_stopped_after_the_pinned_length() {
        let (outcome, _, left) = attempt(&[script!("printf good; exec cat /dev/zero")]);
        let Err(Error::Checksum { found, .. }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(found, Pin::of(b"good\0"));
        assert!(left.is_empty());
    }

    #[test]
    fn a_failed_download_says_why_and_leaves_nothing_behind() {
        let fails = script!("printf go; echo 'curl: (6) no such host' >&2; exit 6");
        let (outcome, tried, left) = attempt(&[fails]);
        assert_eq!(outcome.unwrap(), None);
        assert_eq!(tried, ["sh: curl: (6) no such host"]);
        assert!(left.is_empty());
    }

    #[test]
    fn more_complaints_than_a_pipe_holds_do_not_stop_a_download() {
        let complains = script!("yes hm | head -c 300000 >&2; printf good");
        let (outcome, ..) = attempt(&[complains]);
        assert_eq!(outcome.unwrap().unwrap(), b"good");
    }

    /// The tools that are installed; at least one of them must be.
    fn installed() -> impl Iterator<Item = &'static Tool> {
        let answers = |tool: &&Tool| Command::new(tool.program).arg("--version").output().is_ok();
        let tools: Vec<&Tool> = Tool::ALL.iter().filter(answers).collect();
        assert!(
            !tools.is_empty(),
            "downloads need curl or wget: install one"
        );
        tools.into_iter()
    }

    #[test]
    fn the_real_tools_take_their_options() {
        for tool in installed() {
            let mut tried = Vec::new();
            let outcome = fetch(
                "https://localhost:1/a",
                4,
                std::slice::from_ref(tool),
                &mut tried,
            );
            assert_eq!((outcome.unwrap(), tried.len()), (None, 1));
            assert!(!tried[0].contains("option"), "{}", tried[0]);
        }
    }

    #[test]
    fn nothing_is_fetched_without_encryption_by_way_of_a_redirection() {
        for tool in installed() {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}", server.local_addr().unwrap());
            let answer = format!("HTTP/1.0 302 Found\r\nLocation: {address}/elsewhere\r\n\r\n");
            let serving = thread::spawn(move || {
                let mut asked = Vec::new();
                for connection in server.incoming() {
                    let mut connection = connection.unwrap();
                    let mut request = [0; 1024];
                    let length = connection.read(&mut request).unwrap();
                    let request = String::from_utf8_lossy(&request[..length]);
                    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                    if path == "/stop" {
                        break;
                    }
                    asked.push(path);
                    connection.write_all(answer.as_bytes()).unwrap();
                }
                asked
            });
            let outcome = fetch(
                &format!("{address}/a"),
                4,
                std::slice::from_ref(tool),
                &mut vec![],
            );
            assert_eq!(outcome.unwrap(), None, "{tool:?}");
            let mut stop = TcpStream::connect(&address["http://".len()..]).unwrap();
            stop.write_all(b"GET /stop HTTP/1.0\r\n\r\n").unwrap();
            let asked = serving.join().unwrap();
            assert!(
                !asked.contains(&"/elsewhere".to_owned()),
                "{tool:?} asked for {asked:?}"
            );
        }
    }
}
