//! The pinned files: name, digest, address and licence of each.

use crate::Error;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../manifest.json")).expect("the embedded manifest is valid")
});

/// Every pinned file, set by set.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The pinned file of the given name, such as `housing/housing.data`.
///
/// # Errors
/// [`Error::UnknownFile`].
pub fn entry(file: &str) -> Result<&'static Entry, Error> {
    ENTRIES
        .iter()
        .find(|entry| entry.file == file)
        .ok_or_else(|| Error::UnknownFile {
            file: file.to_owned(),
        })
}

/// One pinned file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The data set it belongs to.
    pub set: String,
    /// Its path below the data directory, with `/` between the parts and none of them `.` or `..`.
    #[serde(deserialize_with = "path_below")]
    pub file: String,
    /// The digest of its bytes.
    #[serde(flatten)]
    pub pin: Pin,
    /// The https address that it is downloaded from, at a fixed commit; `None` for a file derived from
    /// others.
    #[serde(deserialize_with = "https")]
    pub url: Option<String>,
    /// Addresses of the files that a derived file was made from.
    #[serde(default)]
    pub derived_from: Vec<String>,
    /// The licence of the file, as far as it is known.
    pub licence: String,
    /// A description of its contents.
    pub note: String,
}

impl Entry {
    /// The path of the file below a data directory.
    pub fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(self.file.split('/').collect::<PathBuf>())
    }

    /// The shell command that fetches the file into a data directory; `None` if it is published
    /// nowhere.
    ///
    /// ```
    /// use bochner_datasets::manifest;
    ///
    /// let command = manifest::entry("housing/housing.data")?.fetch_command("data".as_ref());
    /// assert!(command.unwrap().starts_with("curl --proto '=https' --fail"));
    /// # Ok::<(), bochner_datasets::Error>(())
    /// ```
    pub fn fetch_command(&self, directory: &Path) -> Option<String> {
        fetch_command([self], directory)
    }

    /// The options of `curl` that fetch this file.
    fn transfer(&self, directory: &Path) -> Option<String> {
        let url = quote(self.url.as_ref()?);
        let output = quote(&self.path_in(directory).to_string_lossy());
        Some(format!(" --output {output} {url}"))
    }

    /// Checks bytes that were read from `place` against the pin.
    ///
    /// # Errors
    /// [`Error::Checksum`].
    pub fn verify(&self, place: &str, bytes: &[u8]) -> Result<(), Error> {
        let found = self.pin.alike(bytes);
        if found == self.pin {
            return Ok(());
        }
        Err(Error::Checksum {
            file: self.file.clone(),
            place: place.to_owned(),
            expected: self.pin.clone(),
            found,
        })
    }
}

/// The pinned contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[non_exhaustive]
pub enum Pin {
    /// The length and the digest of the bytes.
    Sha256 {
        /// Length in bytes.
        bytes: u64,
        /// SHA-256 in lower-case hexadecimal digits.
        sha256: String,
    },
    /// The digest that git uses as a name for the contents, for files of which only the commit is published. Their
    /// length, which the digest covers, is not known before the file is read.
    GitBlob {
        /// SHA-1 of `blob `, the length, a zero byte and the bytes, in lower-case hexadecimal digits.
        git_blob: String,
    },
}

/// The serialised form of a pin.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git_blob: Option<String>,
}

impl Pin {
    /// The most bytes that are read of a file whose length is not known: 64 MiB.
    const UNKNOWN_LENGTH: u64 = 1 << 26;

    /// Length and SHA-256 of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Sha256 {
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        }
    }

    /// The digest by which git names these bytes.
    pub fn git_blob(bytes: &[u8]) -> Self {
        let head = format!("blob {}\0", bytes.len());
        Self::GitBlob {
            git_blob: hex(&Sha1::new()
                .chain_update(head)
                .chain_update(bytes)
                .finalize()),
        }
    }

    /// The pin of these bytes of the kind of this one.
    fn alike(&self, bytes: &[u8]) -> Self {
        match self {
            Self::Sha256 { .. } => Self::of(bytes),
            Self::GitBlob { .. } => Self::git_blob(bytes),
        }
    }

    /// The most bytes that the file can have.
    pub(crate) fn most(&self) -> u64 {
        match self {
            Self::Sha256 { bytes, .. } => *bytes,
            Self::GitBlob { .. } => Self::UNKNOWN_LENGTH,
        }
    }

    /// SHA-256 of bytes that match this pin.
    pub(crate) fn sha256_of(&self, bytes: &[u8]) -> String {
        match self {
            Self::Sha256 { sha256, .. } => sha256.clone(),
            Self::GitBlob { .. } => sha256(bytes),
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256 { bytes, sha256 } => write!(f, "{bytes} bytes with SHA-256 {sha256}"),
            Self::GitBlob { git_blob } => write!(f, "bytes that git calls {git_blob}"),
        }
    }
}

impl TryFrom<Written> for Pin {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match (written.bytes, written.sha256, written.git_blob) {
            (Some(bytes), Some(sha256), None) => {
                digits("sha256", &sha256, 64)?;
                Ok(Self::Sha256 { bytes, sha256 })
            }
            (None, None, Some(git_blob)) => {
                digits("git_blob", &git_blob, 40)?;
                Ok(Self::GitBlob { git_blob })
            }
            _ => Err("a file has `bytes` and `sha256`, or `git_blob` alone".to_owned()),
        }
    }
}

impl From<Pin> for Written {
    fn from(pin: Pin) -> Self {
        let (bytes, sha256, git_blob) = match pin {
            Pin::Sha256 { bytes, sha256 } => (Some(bytes), Some(sha256), None),
            Pin::GitBlob { git_blob } => (None, None, Some(git_blob)),
        };
        Self {
            bytes,
            sha256,
            git_blob,
        }
    }
}

/// SHA-256 of some bytes in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses what is no digest of so many hexadecimal digits.
fn digits(name: &str, digest: &str, length: usize) -> Result<(), String> {
    let known = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match digest.len() == length && digest.bytes().all(known) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is {digest:?}, but must be {length} lower-case hexadecimal digits"
        )),
    }
}

fn path_below<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':']);
    if path.split('/').all(plain) {
        return Ok(path);
    }
    let expected = "names with `/` between, none of them empty, `.` or `..`";
    Err(D::Error::custom(format!(
        "`file` is {path:?}, but must be {expected}"
    )))
}

fn https<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let url = Option::<String>::deserialize(from)?;
    match &url {
        Some(url) if !url.starts_with("https://") => Err(D::Error::custom(format!(
            "`url` is {url:?}, but must start with https://"
        ))),
        _ => Ok(url),
    }
}

/// The shell command that fetches some files into a data directory, as far as they are published, and stops at the
/// first that fails or is larger than the largest of them; `None` if none is published.
pub(crate) fn fetch_command<'a>(
    wanted: impl IntoIterator<Item = &'a Entry>,
    directory: &Path,
) -> Option<String> {
    let (mut transfers, mut largest) = (String::new(), 0);
    for entry in wanted {
        if let Some(transfer) = entry.transfer(directory) {
            transfers += &transfer;
            largest = largest.max(entry.pin.most());
        }
    }
    let options = format!(
        "--proto '=https' --fail --fail-early --max-filesize {largest} --location --create-dirs"
    );
    (!transfers.is_empty()).then(|| format!("curl {options}{transfers}"))
}

/// Quotes a text, so that a POSIX shell takes it as one word.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
impl Entry {
    /// A file `toy/a.csv` with these bytes.
    pub(crate) fn toy(bytes: &[u8]) -> Self {
        Self {
            set: "toy".into(),
            file: "toy/a.csv".into(),
            pin: Pin::of(bytes),
            url: Some("https://example.org/a.csv".into()),
            derived_from: vec![],
            licence: String::new(),
            note: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_digest_is_sha_256() {
        // FIPS 180-4, example of one block.
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn entries_are_well_formed() {
        let names: HashSet<_> = entries().iter().map(|entry| &entry.file).collect();
        assert_eq!((entries().len(), names.len()), (86, 86));
        for entry in entries() {
            assert!(entry.file.starts_with(&format!("{}/", entry.set)));
        }
    }

    #[test]
    fn entries_that_lead_elsewhere_are_refused() {
        let entry = |key: &str, value: &str| {
            let mut json = serde_json::to_value(entry("co2/train.csv").unwrap()).unwrap();
            json[key] = value.into();
            serde_json::from_value::<Entry>(json)
        };
        assert!(entry("file", "co2/deeper/train.csv").is_ok());
        for path in [
            "../train.csv",
            "co2/../../a",
            "/etc/passwd",
            "co2//a",
            "co2/.",
            "a\\b",
            "C:/a",
            "",
        ] {
            let error = entry("file", path).unwrap_err().to_string();
            assert!(error.contains("`file` is"), "{path}: {error}");
        }
        for url in ["http://example.org/a", "file:///etc/passwd", "-o/a"] {
            assert!(
                entry("url", url)
                    .unwrap_err()
                    .to_string()
                    .contains("https://")
            );
        }
        for digest in ["abc".to_owned(), "A".repeat(64), "g".repeat(64)] {
            assert!(
                entry("sha256", &digest)
                    .unwrap_err()
                    .to_string()
                    .contains("64 lower-case")
            );
        }
        // A file has one kind of pin.
        let both = entry("git_blob", &"a".repeat(40)).unwrap_err().to_string();
        assert!(both.contains("`git_blob` alone"), "{both}");
    }

    #[test]
    fn pins_are_written_as_they_are_read() {
        for file in ["co2/train.csv", "iwslt14-full/train.de"] {
            let entry = entry(file).unwrap();
            let json = serde_json::to_value(entry).unwrap();
            assert_eq!(&serde_json::from_value::<Entry>(json).unwrap(), entry);
        }
        let short = serde_json::json!({"git_blob": "abc"});
        let error = serde_json::from_value::<Pin>(short)
            .unwrap_err()
            .to_string();
        assert!(error.contains("40 lower-case"), "{error}");
    }

    #[test]
    fn what_git_calls_a_file_is_its_pin_too() {
        // `echo hello | git hash-object --stdin`.
        let git_blob = "ce013625030ba8dba906f756967f9e9ca394464a".to_owned();
        let pinned = Entry {
            pin: Pin::GitBlob { git_blob },
            ..Entry::toy(b"")
        };
        assert!(pinned.verify("here", b"hello\n").is_ok());
        let message = pinned.verify("here", b"hallo\n").unwrap_err().to_string();
        assert!(message.contains("git calls ce013625"), "{message}");
        let Pin::Sha256 { sha256, .. } = Pin::of(b"hello\n") else {
            panic!("a SHA-256");
        };
        assert_eq!(pinned.pin.sha256_of(b"hello\n"), sha256);
    }

    #[test]
    fn one_changed_byte_is_found() {
        let pinned = Entry::toy(b"1,2\n");
        assert!(pinned.verify("here", b"1,2\n").is_ok());
        let message = pinned.verify("here", b"1,3\n").unwrap_err().to_string();
        assert!(message.contains("toy/a.csv") && message.contains(&sha256(b"1,2\n")));
        assert!(message.contains(&sha256(b"1,3\n")));
    }

    #[test]
    fn commands_survive_a_shell() {
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
        let derived = entry("housing/folds10.txt").unwrap();
        assert_eq!(derived.fetch_command(Path::new("/d")), None);
        let raw = entry("housing/housing.data").unwrap();
        let command = raw.fetch_command(Path::new("/d")).unwrap();
        assert!(command.starts_with("curl --proto '=https' "), "{command}");
        let limit = format!(" --max-filesize {} ", raw.pin.most());
        assert!(command.contains(&limit), "{command}");
    }

    #[test]
    fn unknown_names_are_errors() {
        assert!(matches!(entry("a/b"), Err(Error::UnknownFile { .. })));
    }
}
