//! The forms of the computation.

use crate::Blocks;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// The form in which attention is computed: squared kernels and features have two.
///
/// A squared kernel of R frequencies is an inner product of R (2R + 1) features, and feature maps have features to
/// begin with, so that sums over the keys can be taken before any query is looked at. In exact arithmetic both forms
/// give the same numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The form that is expected to be faster, for each example by its own length; for a [`Decoder`](crate::Decoder),
    /// which does not know how long a sequence will be, [`Form::Pairwise`].
    ///
    /// The outputs of a squared kernel lose no accuracy: a head in which some query's mean similarity is below 1/64,
    /// where the linear-time form would be off by more than 64 of the type's epsilons times the largest value, is
    /// computed again pair by pair. In the other heads gradients along queries and keys may be off by 512 epsilons,
    /// $64^{3/2}$, times the largest value, cotangent and frequency, and gradients along values by 64 epsilons times the
    /// largest cotangent; gradients along frequencies sum these up over all positions. With positive features both
    /// forms are as accurate; with features of either sign neither is where they cancel.
    #[default]
    Automatic,
    /// Pair by pair, in O(Tq Tk (R + dv)) time and O(T (R + dv)) memory: for everything.
    #[doc(alias = "quadratic")]
    Pairwise,
    /// [`Form::Pairwise`] in blocks of this size instead of [`Blocks::of`] the type.
    Blocked(Blocks),
    /// Key by key, then query by query: of a squared kernel in O(T R² dv) time and O(T (R + dv) + R² dv) memory, of m
    /// features in O(T m dv) time and O(T dv + m dv) memory.
    ///
    /// For squared kernels with a floor of at least 1e-6 and for feature maps, under key lengths and plain
    /// causality. Whatever needs the pairs is refused: a matrix, a window, a prefix, causal blocks, packed sequences, a
    /// bias, and dropout.
    ///
    /// The error of a squared kernel is one of rounding, but absolute in $f^2$, about 1e-7 of the largest
    /// $e^{m_j} f_{ij}^2$ of a row in `f32`, where that of the pairwise form is relative to each
    /// pair's own. It shows where all kept keys of a query lie near zeros of f: there the
    /// normaliser is little more than its floor part, below which it is never let fall, and an
    /// output may be off by the type's machine epsilon over the floor times the largest value. A
    /// gradient there is off by epsilon / floor^(3/2) times the largest value and cotangent.
    LinearTime,
}

/// The smallest floor at which the linear-time form's rounding errors are still small beside it.
const LOWEST_FLOOR: f64 = 1e-6;

/// Refuses a floor at which the linear-time form is not accurate.
///
/// # Errors
/// [`ArgumentError::OutOfRange`] below 1e-6.
pub fn check_floor(floor: f64) -> Result<(), ArgumentError> {
    let name = "floor of the linear-time form";
    argument::in_range(floor >= LOWEST_FLOOR, name, floor, "at least 1e-6")
}
