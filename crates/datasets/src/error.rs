//! What can go wrong between a data set's name and its numbers.

use crate::manifest::Pin;
use crate::nodes::GraphDefect;
use bochner_numerics::ArgumentError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a data set could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape, is empty, or holds a number that is not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The operating system refused a file operation.
    #[error("cannot access {}: {source}; check the path and its permissions", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
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
    /// No data set has this name.
    #[error("`{given}` is not one of {known}")]
    UnknownName {
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
        /// The pin.
        expected: Pin,
        /// What was read; at most one byte more than the pin allows, if it came from the network.
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
        /// The shell command that fetches the file, and whatever else of its data set is published and
        /// missing, to where it is looked for; `None` for a file that was derived from others and is
        /// published nowhere.
        command: Option<String>,
    },
    /// A line is not what the format asks for.
    #[error("{file}, line {line}: expected {expected}, found {found}")]
    Malformed {
        /// Where the text came from.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// What the format asks for.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A pickle is not one of those that are read.
    #[error("{file}, byte {offset}: expected {expected}, found {found}")]
    Pickle {
        /// Where the bytes came from.
        file: String,
        /// Position of the opcode, from 0.
        offset: usize,
        /// What is read there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A file is well formed, but what it holds is not part of a graph with classes.
    #[error("{file}: {defect}")]
    Graph {
        /// Where the bytes came from, or a name for what was generated.
        file: String,
        /// What is wrong with it.
        defect: GraphDefect,
    },
    /// A part of a split asks for more rows than there are.
    #[error("{part} needs {wanted} rows, but only {available} are left; ask for fewer")]
    TooFewRows {
        /// The part; for training rows, of which class.
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
        /// Train, validation or test.
        part: &'static str,
        /// One row in how many is kept.
        every: usize,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
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
