//! Masks: which keys a query may attend to.

mod check;
mod pattern;
mod rows;

pub use check::check_lengths;
pub(crate) use pattern::{HeadPattern, Pattern};
pub(crate) use rows::HeadMask;

use crate::Error;
use bochner_numerics::argument;
use ndarray::{ArrayView2, ArrayView4, Axis};
use pattern::PairRule;
use std::sync::Arc;

/// The keys that each query may attend to: the conjunction of key lengths, causality, a sliding window, packed
/// sequences, matrices and functions of positions. A setter that is called again replaces what it set before.
///
/// In matrices and functions `true` means *may attend*. A query that sees no key has zero weights, a zero output and
/// zero gradients; hidden keys and values never influence anything, not even when they are NaN. Blocks of pairs that
/// are hidden as a whole are skipped. Clones share their lengths, matrices and functions.
///
/// Query `i` stands at key `i + Tk - Tq`: the last query is aligned with the last key, so that decoding
/// step by step agrees with the full pass. `Tk` counts padding.
///
/// ```
/// use bochner_engine::Mask;
///
/// // Two sentences of 3 and 5 words, padded to 5, each word seeing only its past.
/// let mask = Mask::none().with_key_lengths(vec![3, 5]).with_causality();
/// let keeps = |example, query, key| mask.keeps([example, 0, query, key], [5, 5]);
/// assert!(keeps(0, 2, 1));
/// assert!(!keeps(0, 1, 2)); // the future
/// assert!(!keeps(0, 4, 3)); // padding
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[doc(alias = "attn_mask")]
#[doc(alias = "block_mask")]
pub struct Mask {
    causal: bool,
    key_lengths: Option<Arc<Vec<usize>>>,
    query_lengths: Option<Arc<Vec<usize>>>,
    matrices: Option<Arc<Pattern>>,
    pairs: Option<PairRule>,
    /// The number of first keys that all queries see in spite of causality.
    prefix: usize,
    /// The positions of a block that see each other in spite of causality, less one.
    more_of_block: usize,
    /// The reach of a query to the left and to the right.
    window: Option<[usize; 2]>,
    /// The ends of the packed sequences.
    ends: Option<Arc<Vec<usize>>>,
}

impl Mask {
    /// The causal mask, for callers that need a reference.
    pub const CAUSAL: &'static Self = &Self::bare(true);
    /// The mask that hides nothing, for callers that need a reference.
    pub const NONE: &'static Self = &Self::bare(false);

    const fn bare(causal: bool) -> Self {
        Self {
            causal,
            key_lengths: None,
            query_lengths: None,
            matrices: None,
            pairs: None,
            prefix: 0,
            more_of_block: 0,
            window: None,
            ends: None,
        }
    }

    /// Returns the mask that hides nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the causal mask.
    pub fn causal() -> Self {
        Self::none().with_causality()
    }

    /// Adds causality: query `i` sees key `j` only if `j <= i + Tk - Tq`.
    ///
    /// With more queries than keys the first `Tq - Tk` queries see nothing.
    #[doc(alias = "is_causal")]
    pub fn with_causality(self) -> Self {
        Self {
            causal: true,
            ..self
        }
    }

    /// Adds causality after a prefix: every query sees the first `prefix` keys, and as many more as
    /// causality lets it. In packed sequences, the first keys of its own sequence.
    #[doc(alias = "prefix_lm")]
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

    /// Adds a sliding window: a query sees the keys from `left` positions before it to `right` positions after it.
    /// [`usize::MAX`] is no bound. A window without positions to the right is causal.
    ///
    /// Work and memory grow with the window, not with the sequence.
    ///
    /// # Errors
    /// [`Error::Argument`] for a window of no positions on either side, which would be the identity. Under plain
    /// causality a window without positions to the left is refused where the mask is used.
    #[doc(alias = "sliding_window")]
    #[doc(alias = "local_attention")]
    pub fn with_window(self, left: usize, right: usize) -> Result<Self, Error> {
        let sides = "positions of a window, beside the query's own";
        argument::at_least_one(sides, left.saturating_add(right))?;
        Ok(Self {
            window: Some([left, right]),
            ..self
        })
    }

    /// Narrows the mask's own window to another one. The two together may leave each query itself alone.
    pub fn within(self, [left, right]: [usize; 2]) -> Self {
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
    #[doc(alias = "cu_seqlens")]
    #[doc(alias = "document_mask")]
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

    /// Keeps the first `lengths[b]` keys of example `b`; the others are padding.
    #[doc(alias = "key_padding_mask")]
    pub fn with_key_lengths(self, lengths: Vec<usize>) -> Self {
        Self {
            key_lengths: Some(Arc::new(lengths)),
            ..self
        }
    }

    /// States how many queries of each example are not padding.
    ///
    /// The choice of a form uses it, and means over the queries do; the rows of padded queries are computed like any
    /// other. Where a layer attends from a sequence to itself, the key lengths stand for it unless it is given.
    pub fn with_query_lengths(self, lengths: Vec<usize>) -> Self {
        Self {
            query_lengths: Some(Arc::new(lengths)),
            ..self
        }
    }

    /// Keeps the pairs that are `true` in `matrix`, of shape `[Tq, Tk]`.
    pub fn with_matrix(self, matrix: ArrayView2<bool>) -> Self {
        self.with_matrices(matrix.insert_axis(Axis(0)).insert_axis(Axis(0)))
    }

    /// Keeps the pairs that are `true` in the matrix of their example and head, `[1 or B, 1 or M, Tq, Tk]`.
    pub fn with_matrices(self, matrices: ArrayView4<bool>) -> Self {
        Self {
            matrices: Some(Arc::new(Pattern::from_matrices(matrices))),
            ..self
        }
    }

    /// Keeps the pairs of positions for which `keeps(query, key)` is `true`; the position of query `i` is
    /// `i + Tk - Tq`.
    ///
    /// The function is evaluated once for each pair of positions and size of a call, and remembered by the mask and
    /// its clones. A decoder evaluates it for the new positions alone.
    ///
    /// ```
    /// use bochner_engine::Mask;
    ///
    /// // Every third position, and the four before.
    /// let dilated = |query: i64, key: i64| (query - key) % 3 == 0 || query - key < 4;
    /// let mask = Mask::causal().with_pairs(dilated);
    /// assert!(mask.keeps([0, 0, 9, 3], [12, 12]) && !mask.keeps([0, 0, 9, 4], [12, 12]));
    /// ```
    #[doc(alias = "mask_mod")]
    pub fn with_pairs(self, keeps: impl Fn(i64, i64) -> bool + Send + Sync + 'static) -> Self {
        Self {
            pairs: Some(PairRule::new(Arc::new(keeps))),
            ..self
        }
    }

    /// Keeps the pairs whose blocks of `size` positions are `true` in `blocks`, `[query block, key block]`. Positions
    /// beyond the blocks are hidden.
    ///
    /// # Errors
    /// [`Error::Argument`] for blocks of no positions.
    #[doc(alias = "block_sparse")]
    pub fn with_blocks(self, size: usize, blocks: ArrayView2<bool>) -> Result<Self, Error> {
        argument::at_least_one("positions of a block", size)?;
        let blocks = blocks.to_owned();
        Ok(self.with_pairs(move |query, key| {
            let at = [query, key].map(|position| usize::try_from(position).map(|p| p / size).ok());
            matches!(at, [Some(i), Some(j)] if blocks.get([i, j]) == Some(&true))
        }))
    }

    /// Returns the mask of sequences that attend to themselves: as many queries as keys are not padding.
    pub fn for_self_attention(&self) -> Self {
        let mut mask = self.clone();
        mask.query_lengths = mask.query_lengths.or_else(|| mask.key_lengths.clone());
        mask
    }

    /// Whether a causal restriction is part of the mask: causality, or a window that keeps nothing to the right.
    pub fn is_causal(&self) -> bool {
        self.causal || matches!(self.window, Some([_, 0]))
    }

    /// Whether the mask is more than lengths and plain causality, so that the pairwise form alone can obey it.
    pub fn needs_pairs(&self) -> bool {
        let relaxed = self.prefix > 0 || self.more_of_block > 0;
        self.matrices.is_some() || self.pairs.is_some() || relaxed || self.has_starts()
    }

    /// Whether rows keep keys from another one than the first on.
    pub fn has_starts(&self) -> bool {
        self.window.is_some() || self.is_packed()
    }

    /// Whether several sequences are packed into one.
    pub fn is_packed(&self) -> bool {
        self.ends.is_some()
    }

    /// Whether matrices, or functions of positions, are part of the mask.
    pub fn has_matrices(&self) -> bool {
        self.matrices.is_some() || self.pairs.is_some()
    }

    /// The ends of the packed sequences, if sequences are packed.
    pub fn packed_ends(&self) -> Option<&[usize]> {
        self.ends.as_ref().map(|ends| &ends[..])
    }

    /// Whether packed sequences are all that [`needs_pairs`](Self::needs_pairs).
    pub fn is_only_packed(&self) -> bool {
        let unpacked = Self {
            ends: None,
            ..self.clone()
        };
        self.is_packed() && !unpacked.needs_pairs()
    }

    /// Whether a window reaches to later positions.
    pub fn looks_ahead(&self) -> bool {
        self.window.is_some() && !self.is_causal()
    }

    /// Whether a decoder can obey the mask position by position, lengths aside.
    pub fn follows_from_positions(&self) -> bool {
        let relaxed = self.prefix > 0 || self.more_of_block > 0;
        self.matrices.is_none() && !relaxed && !self.is_packed()
    }

    /// The mask without lengths.
    pub fn without_lengths(&self) -> Self {
        Self {
            key_lengths: None,
            query_lengths: None,
            ..self.clone()
        }
    }

    /// The key lengths, if there are any.
    pub fn key_lengths(&self) -> Option<&[usize]> {
        self.key_lengths.as_ref().map(|lengths| &lengths[..])
    }

    /// Whether lengths of the keys or the queries are part of the mask.
    pub fn has_lengths(&self) -> bool {
        self.key_lengths.is_some() || self.query_lengths.is_some()
    }

    /// The function of positions that hides pairs, if there is one.
    pub(crate) fn pairs(&self) -> Option<&PairRule> {
        self.pairs.as_ref()
    }
}
