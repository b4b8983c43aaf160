//! The errors of this crate.

use crate::manifest::Pin;
use crate::nodes::GraphDefect;
use bochner_numerics::ArgumentError;
use std::io;
use std::path::{Path, PathBuf};

/// The reason that a data set could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape, is empty, out of range, or holds a number that is not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A text is empty or not UTF-8.
    #[error(transparent)]
    Text(#[from] bochner_text::Error),
    /// The operating system refused a file operation.
    #[error("cannot access {}: {source}; check the path and its permissions", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The data directory does not exist or is a file.
    #[error("{} is not a directory; give the directory that holds one folder per data set", path.display())]
    NotADirectory {
        /// The path given.
        path: PathBuf,
    },
    /// No pinned file has this name.
    #[error("no data file is called `{file}`; see `manifest::entries()` for the names")]
    UnknownFile {
        /// The name given.
        file: String,
    },
    /// No data set or protocol has this name.
    #[error("no {what} is called `{given}`: there are {known}")]
    UnknownName {
        /// The kind of name that was looked up, such as `protocol of passenger`.
        what: String,
        /// The name given.
        given: String,
        /// The names there are.
        known: String,
    },
    /// A file was found, but its bytes are not the pinned ones.
    #[error(
        "{place} is not the pinned `{file}`: expected {expected}, found {found}; remove or replace it"
    )]
    Checksum {
        /// The name in the manifest.
        file: String,
        /// The path or address it was read from.
        place: String,
        /// The pinned digest.
        expected: Pin,
        /// The digest of the bytes that were read. A download is cut one byte after the pinned length.
        found: Pin,
    },
    /// A file is in none of the places searched.
    #[error(
        "`{file}` of the data set {set} is not available ({}); {}",
        tried.join("; "),
        remedy(command)
    )]
    Unavailable {
        /// The name in the manifest.
        file: String,
        /// The data set it belongs to.
        set: String,
        /// The places searched, each with what was found there.
        tried: Vec<String>,
        /// The shell command that fetches the file and all other missing files of its data set to the
        /// place where they are looked for; `None` for a file that was derived from others and is
        /// published nowhere.
        command: Option<String>,
    },
    /// A line is not what the format asks for.
    #[error(
        "{file}, line {line}: expected {expected}, found {found}; replace the file, or correct the line"
    )]
    Malformed {
        /// The place of the text.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The text that the format asks for.
        expected: String,
        /// The text in the file.
        found: String,
    },
    /// A file has no column of this name.
    #[error(
        "{file} has no column called `{column}`: its first line names {known}; give one of these, or say that the file has \
         no line of names"
    )]
    UnknownColumn {
        /// The place of the text.
        file: String,
        /// The name that was asked for.
        column: String,
        /// The names in the file.
        known: String,
    },
    /// Two files whose lines belong together have different numbers of them.
    #[error(
        "{} has {} lines and {} {}: {}; a line may be missing anywhere before, so align the files again",
        files[0], lines[0], files[1], lines[1], without_partner(files, *lines)
    )]
    UnequalLines {
        /// The places of the texts.
        files: [String; 2],
        /// The number of lines of each.
        lines: [usize; 2],
    },
    /// A line whose partner is in another file is empty.
    #[error(
        "{file}, line {line} is empty, and cannot be the partner of line {line} of {other}; remove both lines, or drop such \
         pairs with `Blank::Drop`"
    )]
    EmptySide {
        /// The place of the text with the empty line.
        file: String,
        /// The place of the other text.
        other: String,
        /// Line number, from 1.
        line: usize,
    },
    /// A pickle holds something that the Planetoid files do not have.
    #[error(
        "{file}, byte {offset}: the reader does not know this opcode with the values before it; \
         only the published Planetoid files can be read"
    )]
    Pickle {
        /// The place of the bytes.
        file: String,
        /// The position of the opcode, from 0.
        offset: usize,
    },
    /// A file can be read, but its contents are not part of a graph with classes.
    #[error("{file}: {defect}")]
    Graph {
        /// The place of the bytes.
        file: String,
        /// The defect.
        defect: GraphDefect,
    },
    /// A part of a split asks for more rows than there are.
    #[error("{part} needs {wanted} rows, but only {available} are left; ask for fewer")]
    TooFewRows {
        /// The part; for training rows, with the class.
        part: String,
        /// Rows asked for.
        wanted: usize,
        /// Rows there are.
        available: usize,
    },
    /// A split has no rows in one of its parts.
    #[error(
        "split {split} of {set} has no {part} rows when only every {every}th row is kept; \
         keep more rows"
    )]
    EmptySplit {
        /// The data set.
        set: &'static str,
        /// The split, from 0.
        split: usize,
        /// The part: train, validation or test.
        part: &'static str,
        /// Every how many rows one is kept.
        every: usize,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// The lines of the longer of two files that have no partner in the other.
fn without_partner(files: &[String; 2], [first, second]: [usize; 2]) -> String {
    let (file, shorter, longer) = match first > second {
        true => (&files[0], second, first),
        false => (&files[1], first, second),
    };
    match longer - shorter {
        1 => format!("line {longer} of {file} has no partner"),
        _ => format!(
            "lines {} to {longer} of {file} have no partner",
            shorter + 1
        ),
    }
}

fn remedy(command: &Option<String>) -> String {
    match command {
        Some(command) => format!("fetch what is missing with: {command}"),
        None => "it is derived from other files and published nowhere: \
                 put it in the data directory"
            .to_owned(),
    }
}
