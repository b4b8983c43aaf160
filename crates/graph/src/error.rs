//! The errors of this crate.

use bochner_numerics::argument::{self, ArgumentError, Name};
use bochner_numerics::{Real, parallel};
use ndarray::{ArrayView, Dimension};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape, is empty, out of range, or not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// An edge names a node that does not exist.
    #[error(
        "edge {edge} has {end} {got}, but there are {nodes} {end}s: edges are pairs (source, target) of \
         nodes counted from 0"
    )]
    NodeOutOfRange {
        /// The edge, in the caller's order.
        edge: usize,
        /// The end of the edge, `"source"` or `"target"`.
        end: &'static str,
        /// The node that the edge names.
        got: usize,
        /// The number of nodes at this end.
        nodes: usize,
    },
    /// Offsets do not cut a list into rows.
    #[error(
        "offset {at} of {what} must be {required}, but {}: give one offset for each row and one for the end",
        .got.map_or("is missing".to_owned(), |got| format!("is {got}"))
    )]
    Offsets {
        /// The list that the offsets belong to.
        what: &'static str,
        /// The place of the wrong offset.
        at: usize,
        /// The condition that a valid offset meets.
        required: String,
        /// The offset that was given, if it is there.
        got: Option<usize>,
    },
    /// A list of numbers that must be distinct and below a limit is not.
    #[error("entry {at} of {what} is {got}, but entries must be distinct and below {limit}")]
    NotDistinct {
        /// The list.
        what: &'static str,
        /// The first entry that is too large or repeats an earlier one.
        at: usize,
        /// Its value.
        got: usize,
        /// The number that all entries must stay below.
        limit: usize,
    },
    /// There are more things of a kind, such as edges, than 32 bits can number.
    #[error("there are {got} {what}, but at most {limit} are supported: cut the graph into parts")]
    TooMany {
        /// The things that are counted.
        what: &'static str,
        /// The number of them.
        got: usize,
        /// The largest number that is supported.
        limit: usize,
    },
    /// An operation needs a graph whose targets are its sources.
    #[error(
        "{what} needs a graph whose targets are its sources, but it has {targets} targets and {sources} sources: \
         make one of a single set of nodes with `Graph::from_edges`"
    )]
    NotSquare {
        /// The operation that was asked for.
        what: &'static str,
        /// The number of targets.
        targets: usize,
        /// The number of sources.
        sources: usize,
    },
    /// A number is so large that what is computed from it would leave the range of its type.
    #[error(
        "{what} is {got:e} at {index:?}, but must stay within {limit:e}, so that products with it do not \
         overflow: scale it down{}", if *.limit < 1e30 { ", or compute in double precision" } else { "" }
    )]
    TooLarge {
        /// The array.
        what: &'static str,
        /// The first such element's index.
        index: Vec<usize>,
        /// Its value.
        got: f64,
        /// The largest absolute value that is allowed.
        limit: f64,
    },
    /// An optional array that the settings need is missing.
    #[error("`{name}` is missing, but {needed_by} needs it: give it, or change what needs it")]
    Missing {
        /// The array.
        name: Name,
        /// The setting that needs it.
        needed_by: &'static str,
    },
    /// An optional array is given that the settings have no use for.
    #[error(
        "`{name}` is given, but {refused_by} does not take it: leave it out, or change what does not take it"
    )]
    Superfluous {
        /// The array.
        name: Name,
        /// The setting that does not take it.
        refused_by: &'static str,
    },
    /// The feature maps refused the inputs or the spectral points.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
}

/// Refuses an optional array that is missing where it is needed, or given where it is not.
pub(crate) fn expect_presence(
    name: impl Into<Name>,
    needed: bool,
    given: bool,
    by: &'static str,
) -> Result<(), Error> {
    let name = name.into();
    match (needed, given) {
        (true, false) => Err(Error::Missing {
            name,
            needed_by: by,
        }),
        (false, true) => Err(Error::Superfluous {
            name,
            refused_by: by,
        }),
        _ => Ok(()),
    }
}

/// Refuses more than 32 bits can number.
pub(crate) fn countable(what: &'static str, got: usize) -> Result<(), Error> {
    let limit = u32::MAX as usize;
    if got <= limit {
        return Ok(());
    }
    Err(Error::TooMany { what, got, limit })
}

/// The largest number that scores are computed from. Products of three such numbers and sums of these
/// are finite, which is what a gradient takes.
pub(crate) fn largest<T: Real>() -> T {
    T::max_value().sqrt().sqrt()
}

/// Refuses NaN, infinity, and numbers beyond [`largest`].
pub(crate) fn scorable<T: Real, D: Dimension>(
    what: &'static str,
    x: ArrayView<T, D>,
) -> Result<(), Error> {
    let limit = largest();
    let standard = x.as_standard_layout();
    let slice = standard.as_slice().expect("brought to row-major order");
    if within(slice, limit) {
        return Ok(());
    }
    argument::finite(what, x.shape(), slice)?;
    too_large(what, x, limit)
}

/// The error for an array of which an element is beyond the limit.
pub(crate) fn too_large<T: Real, D: Dimension>(
    what: &'static str,
    x: ArrayView<T, D>,
    limit: T,
) -> Result<(), Error> {
    let x = x.into_dyn();
    let beyond = |x: &T| x.abs() > limit || x.is_nan();
    let (index, got) = x
        .indexed_iter()
        .find(|(_, x)| beyond(x))
        .expect("one is beyond the limit");
    Err(Error::TooLarge {
        what,
        index: index.as_array_view().to_vec(),
        got: got.as_f64(),
        limit: limit.as_f64(),
    })
}

/// Refuses NaN and infinity.
pub(crate) fn finite<T: Real>(what: &'static str, shape: &[usize], x: &[T]) -> Result<(), Error> {
    if within(x, T::max_value()) {
        return Ok(());
    }
    Ok(argument::finite(what, shape, x)?)
}

/// Whether no element is NaN or has an absolute value beyond the limit.
pub(crate) fn within<T: Real>(x: &[T], limit: T) -> bool {
    parallel::max_norm(x) <= limit
}
