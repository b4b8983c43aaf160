//! Which keys a query may attend to.

mod reading;
mod rows;

use crate::Error;
use bochner_numerics::argument;
use ndarray::{ArrayView2, ArrayView4, Axis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which keys each query may attend to: the conjunction of key lengths, causality, a window, packed
/// sequences and matrices. Each of them is said once: a setter that is called again replaces what it set before.
///
/// One polarity everywhere: `true` means *may attend*. A query without any kept key has zero
/// weights, a zero output and zero gradients; masked keys and values never influence anything,
/// not even when they are NaN. Clones share their lengths and their matrices, so that they cost nothing.
///
/// Query `i` stands at key `i + Tk - Tq`: the last query is aligned with the last key, so that decoding
/// step by step agrees with the full pass. `Tk` counts padding.
///
/// ```
/// use bochner_attention::Mask;
///
/// // Two sentences of 3 and 5 words, padded to 5, each word seeing only its past.
/// let mask = Mask::none().with_key_lengths(vec![3, 5]).with_causality();
/// let keeps = |example, query, key| mask.keeps([example, 0, query, key], [5, 5]);
/// assert!(keeps(0, 2, 1));
/// assert!(!keeps(0, 1, 2)); // the future
/// assert!(!keeps(0, 4, 3)); // padding
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Mask {
    causal: bool,
    #[serde(alias = "key-lengths")]
    key_lengths: Option<Arc<Vec<usize>>>,
    #[serde(alias = "query-lengths")]
    query_lengths: Option<Arc<Vec<usize>>>,
    /// The rows of one matrix after the other.
    matrix: Option<Arc<Vec<Vec<bool>>>>,
    /// For how many examples and for how many heads there are matrices.
    #[serde(default = "Mask::one_matrix", skip_serializing_if = "is_one_matrix")]
    matrices: [usize; 2],
    /// Where causality is relaxed: the first keys are seen by all.
    #[serde(default, skip_serializing_if = "is_zero")]
    prefix: usize,
    /// Where causality is relaxed: positions of a block see each other; less one.
    #[serde(alias = "more-of-block", default, skip_serializing_if = "is_zero")]
    more_of_block: usize,
    /// How far a query sees to the left and to the right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<[usize; 2]>,
    /// Where each of the packed sequences ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<Arc<Vec<usize>>>,
}

fn is_zero(x: &usize) -> bool {
    *x == 0
}

fn is_one_matrix(matrices: &[usize; 2]) -> bool {
    *matrices == Mask::one_matrix()
}

impl Default for Mask {
    fn default() -> Self {
        Self::bare(false)
    }
}

impl Mask {
    /// Causality alone.
    pub(crate) const CAUSAL: &'static Self = &Self::bare(true);

    /// [`Mask::none`], for callers that need a reference.
    #[cfg(feature = "dfdx")]
    pub(crate) const NONE: &'static Self = &Self::bare(false);

    const fn bare(causal: bool) -> Self {
        Self {
            causal,
            key_lengths: None,
            query_lengths: None,
            matrix: None,
            matrices: Self::one_matrix(),
            prefix: 0,
            more_of_block: 0,
            window: None,
            ends: None,
        }
    }

    const fn one_matrix() -> [usize; 2] {
        [1, 1]
    }

    /// Every query may attend to every key.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds causality: query `i` sees key `j` only if `j <= i + Tk - Tq`.
    ///
    /// With more queries than keys the first `Tq - Tk` queries see nothing.
    pub fn with_causality(self) -> Self {
        Self {
            causal: true,
            ..self
        }
    }

    /// Adds causality after a prefix: every query sees the first `prefix` keys, and as many more as
    /// causality lets it. In packed sequences, the first keys of its own.
    pub fn with_causality_after(self, prefix: usize) -> Self {
        Self {
            prefix,
            ..self.with_causality()
        }
    }

    /// Adds causality by blocks: query `i` sees key `j` only if
    /// `floor(j / size) <= floor((i + Tk - Tq) / size)`. Blocks of packed sequences begin with these.
    ///
    /// # Errors
    /// [`Error::Argument`] for blocks of no positions.
    pub fn with_causal_blocks(self, size: usize) -> Result<Self, Error> {
        argument::at_least_one("positions of a causal block", size)?;
        Ok(Self {
            more_of_block: size - 1,
            ..self.with_causality()
        })
    }

    /// Keeps only the keys of a window around the query: from `left` positions before to `right` positions
    /// after it. With causality none after it are seen; [`usize::MAX`] is no bound. A window without positions
    /// to the right is causal; one without positions to the left is refused under plain causality, which would leave
    /// each query itself alone.
    ///
    /// Work and time follow the window, not the sequence.
    ///
    /// # Errors
    /// [`Error::Argument`] for a window of no positions on either side, which would be the identity.
    pub fn with_window(self, left: usize, right: usize) -> Result<Self, Error> {
        check_window([left, right])?;
        Ok(Self {
            window: Some([left, right]),
            ..self
        })
    }

    /// Keeps only the keys of a window, within the mask's own. The two together may leave each query itself
    /// alone.
    #[cfg(feature = "dfdx")]
    pub(crate) fn within(self, [left, right]: [usize; 2]) -> Self {
        let own = self.window.unwrap_or([usize::MAX; 2]);
        let window = [own[0].min(left), own[1].min(right)];
        Self {
            window: Some(window),
            causal: self.causal || window[1] == 0,
            ..self
        }
    }

    /// Packs sequences into one example: queries and keys are sequences of these lengths, one after the
    /// other, that do not see each other.
    ///
    /// A packed batch equals the padded one to rounding, without the padding's work.
    pub fn with_packed(self, lengths: &[usize]) -> Self {
        let ends = lengths.iter().scan(0, |end: &mut usize, &length| {
            *end = end.saturating_add(length);
            Some(*end)
        });
        Self {
            ends: Some(Arc::new(ends.collect())),
            ..self
        }
    }

    /// Sets the key lengths, in the memory of the previous ones unless a clone shares it.
    pub(crate) fn set_key_lengths(&mut self, lengths: impl Iterator<Item = usize>) {
        let own = Arc::make_mut(self.key_lengths.get_or_insert_default());
        own.clear();
        own.extend(lengths);
    }

    /// Keeps only the first `lengths[b]` keys of example `b`.
    pub fn with_key_lengths(self, lengths: Vec<usize>) -> Self {
        Self {
            key_lengths: Some(Arc::new(lengths)),
            ..self
        }
    }

    /// States how many queries of each example are not padding.
    ///
    /// The inference network's mean over the queries uses it, and the choice of a form: the rows of padded queries are
    /// computed like any other. Where a layer attends from a sequence to itself, the key lengths
    /// stand for it unless it is given.
    pub fn with_query_lengths(self, lengths: Vec<usize>) -> Self {
        Self {
            query_lengths: Some(Arc::new(lengths)),
            ..self
        }
    }

    /// Keeps only the pairs that are `true` in `matrix`, of shape `[Tq, Tk]`.
    pub fn with_matrix(self, matrix: ArrayView2<bool>) -> Self {
        self.with_matrices(matrix.insert_axis(Axis(0)).insert_axis(Axis(0)))
    }

    /// Keeps only the pairs that are `true` in the matrix of their example and head, `[1 or B, 1 or M, Tq, Tk]`.
    pub fn with_matrices(self, matrices: ArrayView4<bool>) -> Self {
        let (examples, heads, ..) = matrices.dim();
        let rows = matrices.rows().into_iter().map(|row| row.to_vec());
        Self {
            matrix: Some(Arc::new(rows.collect())),
            matrices: [examples, heads],
            ..self
        }
    }

    /// The mask that keeps what both it and the matrices of another keep.
    pub(crate) fn and_matrices_of(&self, other: &Self) -> Self {
        let (Some(own), Some(more)) = (&self.matrix, &other.matrix) else {
            let (matrix, matrices) = match &self.matrix {
                Some(_) => (&self.matrix, self.matrices),
                None => (&other.matrix, other.matrices),
            };
            return Self {
                matrix: matrix.clone(),
                matrices,
                ..self.clone()
            };
        };
        let [examples, heads] = [0, 1].map(|n| self.matrices[n].max(other.matrices[n]));
        let rows = own.len() / (self.matrices[0] * self.matrices[1]);
        debug_assert_eq!(rows, more.len() / (other.matrices[0] * other.matrices[1]));
        let row = |n: usize| {
            let (b, m, i) = (n / (heads * rows), n / rows % heads, n % rows);
            let both = [self, other].map(|mask| mask.matrix_row(b, m, i).expect("a matrix"));
            let pairs = both[0].iter().zip(both[1]);
            pairs.map(|(&a, &b)| a && b).collect()
        };
        Self {
            matrix: Some(Arc::new((0..examples * heads * rows).map(row).collect())),
            matrices: [examples, heads],
            ..self.clone()
        }
    }

    /// The mask of sequences that attend to themselves: as many queries as keys are not padding.
    #[cfg(feature = "dfdx")]
    pub(crate) fn of_itself(&self) -> Self {
        let mut mask = self.clone();
        mask.query_lengths = mask.query_lengths.or_else(|| mask.key_lengths.clone());
        mask
    }

    /// Whether a causal restriction is part of the mask: causality, or a window that keeps nothing to the right.
    pub fn is_causal(&self) -> bool {
        self.causal || matches!(self.window, Some([_, 0]))
    }

    /// Whether the mask is more than lengths and plain causality, so that only what goes pair by pair can
    /// obey it.
    pub(crate) fn is_by_pairs(&self) -> bool {
        let relaxed = self.prefix > 0 || self.more_of_block > 0;
        self.matrix.is_some() || relaxed || self.has_starts()
    }

    /// Whether rows keep keys from another one than the first on.
    pub(crate) fn has_starts(&self) -> bool {
        self.window.is_some() || self.is_packed()
    }

    /// Whether several sequences are packed into one.
    pub(crate) fn is_packed(&self) -> bool {
        self.ends.is_some()
    }

    /// Whether a window reaches to later positions.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.window.is_some() && !self.is_causal()
    }

    /// Whether a decoder can obey the mask position by position, lengths aside.
    pub(crate) fn is_of_positions(&self) -> bool {
        let window = Self {
            window: None,
            ..self.clone()
        };
        !window.is_by_pairs()
    }

    /// The mask without lengths.
    pub(crate) fn without_lengths(&self) -> Self {
        Self {
            key_lengths: None,
            query_lengths: None,
            ..self.clone()
        }
    }

    /// The key lengths, if there are any.
    #[cfg(feature = "dfdx")]
    pub(crate) fn key_lengths(&self) -> Option<&[usize]> {
        self.key_lengths.as_ref().map(|lengths| &lengths[..])
    }

    /// The position behind the last one of each packed sequence, if there are any.
    #[cfg(feature = "dfdx")]
    pub(crate) fn packed_ends(&self) -> Option<&[usize]> {
        self.ends.as_ref().map(|ends| &ends[..])
    }

    /// Whether lengths of the keys or the queries are part of the mask.
    pub(crate) fn has_lengths(&self) -> bool {
        self.key_lengths.is_some() || self.query_lengths.is_some()
    }

    /// Checks the mask against the sizes of a call.
    ///
    /// # Errors
    /// [`Error::Mask`] if a list of lengths does not have one entry an example, if a length is
    /// beyond the sequence, if matrices are not `[1 or B, 1 or M, Tq, Tk]`, if packed sequences are in
    /// several examples or do not fill the one, or if causality empties a window.
    pub fn validate(
        &self,
        batch: usize,
        heads: usize,
        queries: usize,
        keys: usize,
    ) -> Result<(), Error> {
        for (what, lengths, positions) in [
            ("key lengths", &self.key_lengths, keys),
            ("query lengths", &self.query_lengths, queries),
        ] {
            if let Some(lengths) = lengths {
                check_lengths(what, lengths, batch, positions)?;
            }
        }
        self.check_reach()?;
        self.check_packed(batch, queries, keys)?;
        let Some(rows) = &self.matrix else {
            return Ok(());
        };
        let [examples, of_heads] = self.matrices;
        let fits = |given, all| given == 1 || given == all;
        if !fits(examples, batch) || !fits(of_heads, heads) {
            return Err(Error::Mask {
                what: "number of matrices",
                expected: format!(
                    "{} for the examples and {} for the heads",
                    one_or(batch),
                    one_or(heads)
                ),
                got: format!("{examples} for the examples and {of_heads} for the heads"),
            });
        }
        match rows.iter().map(Vec::len).find(|&len| len != keys) {
            None if rows.len() == examples * of_heads * queries => Ok(()),
            wrong => Err(Error::Mask {
                what: "matrix",
                expected: format!("{queries} rows of {keys}"),
                got: format!(
                    "{} rows of {}",
                    rows.len() / (examples * of_heads).max(1),
                    wrong.unwrap_or(keys)
                ),
            }),
        }
    }

    /// Refuses a window whose only positions are the later ones, which plain causality takes away: nobody asks for the
    /// identity in this way.
    pub(crate) fn check_reach(&self) -> Result<(), Error> {
        let plain = self.causal && self.prefix == 0 && self.more_of_block == 0;
        match self.window {
            Some([0, right]) if plain && right > 0 => Err(Error::Mask {
                what: "positions of a window under a causal mask",
                expected: "to the left of the query: the mask hides those to its right".to_owned(),
                got: format!("0 to the left and {right} to the right"),
            }),
            _ => Ok(()),
        }
    }

    fn check_packed(&self, batch: usize, queries: usize, keys: usize) -> Result<(), Error> {
        let Some(ends) = &self.ends else {
            return Ok(());
        };
        let total = ends.last().copied().unwrap_or(0);
        let misfit = |expected, got| {
            Err(Error::Mask {
                what: "packed sequences",
                expected,
                got,
            })
        };
        if batch != 1 || queries != keys {
            let expected = "of one example with as many queries as keys".to_owned();
            return misfit(expected, format!("of {batch} with {queries} and {keys}"));
        }
        if total != keys || !ends.is_sorted() {
            let expected = format!("of lengths that add up to {keys}, the length of the example");
            return misfit(expected, format!("to {total}"));
        }
        Ok(())
    }
}

fn check_window([left, right]: [usize; 2]) -> Result<(), Error> {
    let sides = "positions of a window, beside the query's own";
    Ok(argument::at_least_one(sides, left.saturating_add(right))?)
}

/// How many of something there may be that is either shared by all or one for each.
pub(crate) fn one_or(all: usize) -> String {
    match all {
        1 => "1".to_owned(),
        _ => format!("1 or {all}"),
    }
}

/// `Ok` if there is one an example, and none beyond the sequence.
pub(crate) fn check_lengths(
    what: &'static str,
    lengths: &[usize],
    batch: usize,
    positions: usize,
) -> Result<(), Error> {
    if lengths.len() != batch {
        return Err(Error::Mask {
            what,
            expected: format!("one for each of {batch} examples"),
            got: format!("{}", lengths.len()),
        });
    }
    match lengths.iter().find(|&&length| length > positions) {
        None => Ok(()),
        Some(length) => Err(Error::Mask {
            what,
            expected: format!("at most {positions}, the length of the sequence"),
            got: length.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
