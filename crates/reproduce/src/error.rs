//! The errors of running experiments.

use crate::trial::AnyError;
use bochner_report::Unit;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An error of the reproduction runs.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read or written.
    #[error("cannot {action} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// The action: "write", "read", "create".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// A result file is not what was written there.
    #[error(
        "the file {} is damaged ({reason}); move away the row of its unit, the file of this name in the directory `units`, \
         and the unit is run again",
        path.display()
    )]
    CorruptResult {
        /// The file.
        path: PathBuf,
        /// The fault, with line and column where known.
        reason: String,
    },
    /// A result file holds the result of another unit than its name says.
    #[error(
        "the result file {} holds the unit {found}, not the one it is named after; rename it or \
         move it away",
        path.display()
    )]
    ForeignResult {
        /// The file.
        path: PathBuf,
        /// The unit that the file's content names.
        found: String,
    },
    /// A result file holds a field that this program does not have.
    #[error(
        "the result file {} has the field {field:?}, which this program does not know: a newer one wrote it. Use that one, or \
         move the file away and its unit is run again",
        path.display()
    )]
    NewerResult {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
    },
    /// A directory to import from is no output directory.
    #[error(
        "{} has no directory `units`, so that no rows can be imported from it; name the --out of another run",
        path.display()
    )]
    NoResults {
        /// The directory.
        path: PathBuf,
    },
    /// An archive holds no rows of a suite of training runs.
    #[error(
        "{} {}, so that no page can be written from them; name a directory such as docs/results/table4-paper",
        path.display(),
        suite.as_ref().map_or("holds no rows".to_owned(), |suite| {
            format!("holds rows of {suite:?}, which is no suite of training runs that this program has")
        })
    )]
    NoSuite {
        /// The directory.
        path: PathBuf,
        /// The suite that its first row names, if it has one.
        suite: Option<String>,
    },
    /// This run, or this shard of it, already holds the output directory.
    #[error(
        "this run, or this shard of it, is writing to {} already; wait for it, or give this one another directory with \
         --out",
        path.display()
    )]
    Locked {
        /// The output directory.
        path: PathBuf,
    },
    /// Another run holds the output directory.
    #[error(
        "{running} is writing to {}, and this is {given}; only shards of one run, with equal options, share a directory. \
         Wait for it, or give this one another directory with --out and merge the two with --import",
        path.display()
    )]
    OtherRun {
        /// The output directory.
        path: PathBuf,
        /// The shard and the run that hold it.
        running: String,
        /// The shard and the run that were refused.
        given: String,
    },
    /// Several shards cannot share a directory whose file system has no locks.
    #[error(
        "the file system of {} has no file locks, so that shards cannot share it; give each shard its --out, and merge \
         them with --import",
        path.display()
    )]
    NoLocks {
        /// The output directory.
        path: PathBuf,
    },
    /// Rows could not be read, or a claim names what its suite does not have.
    #[error(transparent)]
    Report(#[from] bochner_report::Error),
    /// A data set is there and wrong.
    #[error(transparent)]
    Data(#[from] bochner_datasets::Error),
    /// A model could not be built, trained or evaluated.
    #[error("unit {unit}: {message}")]
    Trial {
        /// The unit's id.
        unit: String,
        /// The message of the model.
        message: String,
    },
    /// A model could not be saved or restored.
    #[error(
        "cannot save or resume the checkpoint {}: {message}; on a full disk free some space, or copy the directory \
         elsewhere and name it with --out: finished units are kept. If the file is damaged, delete it with the `.json` \
         beside it, and its unit starts again",
        path.display()
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The message of the model.
        message: String,
    },
    /// A mechanism would see an order of rows that have none.
    #[error(
        "{mechanism} sees the order of rows, and the rows of {set} have none: a result would hang on how the file was \
         sorted. Take a mechanism whose card says `Symmetry::Permutations` or `Symmetry::JointPermutations`, or a set that is a \
         series"
    )]
    SeesOrder {
        /// The mechanism.
        mechanism: &'static str,
        /// The set.
        set: &'static str,
    },
    /// A run was interrupted in the middle of a unit.
    #[error("the run was interrupted; run it again, and it goes on")]
    Interrupted,
    /// A training run left the finite numbers.
    #[error(
        "unit {unit}: {what} is {value} in epoch {epoch}; the run is not recorded. A smaller \
         learning rate or clipping norm may keep it finite, unless the value is a mean over nothing"
    )]
    NotFinite {
        /// The unit's id.
        unit: String,
        /// The quantity.
        what: Cow<'static, str>,
        /// Its value.
        value: f64,
        /// The epoch, counted from one.
        epoch: usize,
    },
    /// An option has a value that cannot be used.
    #[error("{option} was given as {given:?}; expected {expected}")]
    InvalidOption {
        /// The option.
        option: &'static str,
        /// The given value.
        given: String,
        /// The values that would do.
        expected: String,
    },
    /// Two series that belong together have different lengths, or are too short.
    #[error(transparent)]
    Argument(#[from] bochner_numerics::ArgumentError),
    /// Attention refused what a suite gave it.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// A kernel refused what a suite gave it.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
    /// A layer refused what a suite gave it.
    #[error(transparent)]
    Layer(#[from] bochner_nn::Error),
    /// Graph attention refused what a suite gave it.
    #[error(transparent)]
    Graph(#[from] bochner_graph::Error),
    /// A model refused what a suite gave it.
    #[error(transparent)]
    Model(#[from] bochner_models::Error),
    /// A read-out of attention refused what a suite gave it.
    #[error(transparent)]
    Interpret(#[from] bochner_interpret::Error),
    /// A factorisation refused what a suite gave it.
    #[error(transparent)]
    Dense(#[from] bochner_dense::Error),
    /// The threads of a run could not be started.
    #[error("cannot start the worker threads: {source}; try fewer with --threads")]
    Threads {
        /// The message of the pool.
        #[from]
        source: rayon::ThreadPoolBuildError,
    },
}

impl Error {
    /// An [`Error::Io`] made from what the system answered.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// An [`Error::Checkpoint`] made from what a model said.
    pub(crate) fn checkpoint(path: &Path, error: &dyn fmt::Display) -> Self {
        Self::Checkpoint {
            path: path.to_owned(),
            message: error.to_string(),
        }
    }

    /// The error of a unit: one of this crate as it is, any other one with the unit's name.
    pub(crate) fn of_unit(unit: &Unit) -> impl FnOnce(AnyError) -> Self {
        let unit = unit.id();
        |error| match error.downcast() {
            Ok(error) => *error,
            Err(error) => Self::Trial {
                unit,
                message: error.to_string(),
            },
        }
    }

    /// Whether the error concerns one unit only, so that the others can go on.
    pub(crate) fn concerns_one_unit(&self) -> bool {
        matches!(self, Self::Trial { .. } | Self::NotFinite { .. })
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or copy the directory elsewhere and name it with --out: finished \
             units are kept"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory that can be written with --out"
        }
        _ => "check the path; finished units are kept",
    }
}
