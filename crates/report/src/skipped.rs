//! Data sets that could not be had.

use std::fmt;

/// A data set that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in tables.
    pub set: String,
    /// The places where it was looked for, or the fault in its files.
    pub reason: String,
    /// The remedy, before the same run again.
    pub remedy: Remedy,
}

/// The remedy for a missing data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A command that fetches all files of the set that are missing.
    Fetch(String),
    /// A file that has to be put into the directory given by `--data`.
    Supply(String),
    /// A file is there and wrong: it has to be replaced.
    Repair,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(command) => write!(f, "get it with `{command}`, then run this again"),
            Self::Supply(file) => write!(f, "put {file} into the directory given by --data"),
            Self::Repair => write!(f, "replace the file, then run this again"),
        }
    }
}

impl Skipped {
    /// The set that an error of its data keeps out.
    pub fn new(set: &str, error: &bochner_datasets::Error) -> Self {
        use bochner_datasets::Error::Unavailable;
        let (reason, remedy) = match error {
            Unavailable {
                file,
                tried,
                command,
                ..
            } => (
                format!("{file}: {}", tried.join("; ")),
                match command {
                    Some(command) => Remedy::Fetch(command.clone()),
                    None => Remedy::Supply(file.clone()),
                },
            ),
            wrong => (wrong.to_string(), Remedy::Repair),
        };
        Self {
            set: set.to_owned(),
            reason,
            remedy,
        }
    }
}
