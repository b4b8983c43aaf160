//! What can be wrong with the arguments, and what to do about it.

use bochner_numerics::{Real, parallel};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An edge names a node that there is not.
    #[error(
        "edge {edge} has {end} {got}, but there are {nodes} {end}s; nodes are counted from 0, edges are pairs (source, target)"
    )]
    NodeOutOfRange {
        /// The edge, in the caller's order.
        edge: usize,
        /// Which end of it, `"source"` or `"target"`.
        end: &'static str,
        /// The node it names.
        got: usize,
        /// How many nodes there are at this end.
        nodes: usize,
    },
    /// Offsets do not cut a list into rows.
    #[error(
        "offset {at} of {what} must be {required}, but {}; there is one offset a row and one at the end",
        .got.map_or("is missing".to_owned(), |got| format!("is {got}"))
    )]
    Offsets {
        /// Whose offsets.
        what: &'static str,
        /// Which of them.
        at: usize,
        /// What holds for a valid one.
        required: String,
        /// What was given, if it is there.
        got: Option<usize>,
    },
    /// A stored value stands in a column that there is not.
    #[error("stored value {at} stands in column {got}, but there are {columns} columns")]
    ColumnOutOfRange {
        /// The stored value.
        at: usize,
        /// Its column.
        got: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A list of rows names one that there is not.
    #[error("entry {at} asks for row {got}, but there are {count} rows; rows are counted from 0")]
    RowOutOfRange {
        /// The entry.
        at: usize,
        /// The row that it names.
        got: usize,
        /// How many rows there are.
        count: usize,
    },
    /// There is more of something than 32 bits can number.
    #[error("{got} {what} are more than {limit}; cut the graph into parts")]
    TooMany {
        /// What.
        what: &'static str,
        /// How many.
        got: usize,
        /// How many there can be.
        limit: usize,
    },
    /// Something that only a graph with one kind of node has.
    #[error(
        "{what} needs a graph whose targets are its sources, but it has {targets} targets and {sources} sources"
    )]
    NotSquare {
        /// What was asked for.
        what: &'static str,
        /// How many targets there are.
        targets: usize,
        /// How many sources there are.
        sources: usize,
    },
    /// A list of new numbers is not a permutation.
    #[error(
        "entry {at} of the permutation of {what} is {got}; each of 0..{count} must be there once"
    )]
    NotAPermutation {
        /// Of what.
        what: &'static str,
        /// The first entry that is too large or there twice.
        at: usize,
        /// Its value.
        got: usize,
        /// How many entries there are.
        count: usize,
    },
    /// A list of targets names one that there is not, or one twice.
    #[error("target {at} is {got}; each of 0..{nodes} may be asked for once")]
    NotATarget {
        /// The first entry that is too large or there twice.
        at: usize,
        /// Its value.
        got: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A graph is not equal to the one that attention went along: it has other edges, or lists them in
    /// another order.
    #[error("what was attended belongs to another graph; give the one that was given to attend")]
    AnotherGraph,
    /// Two arrays do not fit together.
    #[error("{what} must have shape {expected:?}, but has {got:?}")]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments call for.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// An axis has length zero.
    #[error("{what} has no elements along its {axis} axis; it needs at least one")]
    Empty {
        /// The argument.
        what: &'static str,
        /// The axis.
        axis: &'static str,
    },
    /// A setting lies outside its range.
    #[error("{name} must be {range}, but is {got}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        got: f64,
    },
    /// An array holds NaN, infinity, or a number so large that products with it leave the type's
    /// range.
    #[error(
        "element {at} of {what} is {got:?}, but must be a number of at most {limit:e} in absolute value"
    )]
    NotANumber {
        /// The array.
        what: &'static str,
        /// The element, in row-major order; of sparse features, the stored value.
        at: usize,
        /// What it is.
        got: f64,
        /// The largest absolute value allowed.
        limit: f64,
    },
    /// From the feature maps.
    #[error(transparent)]
    Kernels(#[from] bochner_kernels::Error),
}

/// `Ok` if `got == expected`.
pub(crate) fn same_shape(
    what: &'static str,
    expected: &[usize],
    got: &[usize],
) -> Result<(), Error> {
    if expected == got {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        what,
        expected: expected.to_vec(),
        got: got.to_vec(),
    })
}

/// `Ok` if `value` is finite and positive.
pub(crate) fn positive(name: &'static str, got: f64) -> Result<(), Error> {
    let range = "finite and above 0";
    in_range(got > 0.0 && got.is_finite(), name, range, got)
}

/// `Ok` if `value` is finite and not negative.
pub(crate) fn non_negative(name: &'static str, got: f64) -> Result<(), Error> {
    let range = "finite and at least 0";
    in_range(got >= 0.0 && got.is_finite(), name, range, got)
}

/// `Ok` if `holds`.
pub(crate) fn in_range(
    holds: bool,
    name: &'static str,
    range: &'static str,
    got: f64,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::OutOfRange { name, range, got })
}

/// `Ok` if there are no more than 32 bits can number.
pub(crate) fn countable(what: &'static str, got: usize) -> Result<(), Error> {
    let limit = u32::MAX as usize;
    if got <= limit {
        return Ok(());
    }
    Err(Error::TooMany { what, got, limit })
}

/// The largest number that may be given: products of three of them, and sums of these, are finite.
pub(crate) fn largest<T: Real>() -> T {
    T::max_value().sqrt().sqrt()
}

/// `Ok` if no element is NaN or beyond [`largest`].
pub(crate) fn numbers<T: Real>(what: &'static str, x: &[T]) -> Result<(), Error> {
    let limit = largest::<T>();
    if within(x, limit) {
        return Ok(());
    }
    let at = x.iter().position(|x| x.abs() > limit || x.is_nan());
    let at = at.expect("one is beyond the limit");
    Err(Error::NotANumber {
        what,
        at,
        got: x[at].as_f64(),
        limit: limit.as_f64(),
    })
}

/// Whether no element is NaN or has an absolute value beyond the limit.
pub(crate) fn within<T: Real>(x: &[T], limit: T) -> bool {
    parallel::max_norm(x) <= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_found_where_it_stands() {
        let mut x = vec![1.0_f32; 200_000];
        assert_eq!(numbers("x", &x), Ok(()));
        for place in [2500, 1 << 16, 199_999] {
            for bad in [f32::NAN, f32::NEG_INFINITY, -1e20] {
                x[place] = bad;
                let found = numbers("x", &x);
                assert!(matches!(found, Err(Error::NotANumber { at, .. }) if at == place));
            }
            x[place] = 1.0;
        }
    }
}
