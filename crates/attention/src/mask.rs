//! Which keys a query may attend to.

use crate::Error;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which keys each query may attend to: the conjunction of key lengths, causality and a matrix.
///
/// One polarity everywhere: `true` means *may attend*. A query without any kept key has zero
/// weights, a zero output and zero gradients; masked keys and values never influence anything,
/// not even when they are NaN. Clones share their lengths and their matrix, so that they cost nothing.
///
/// ```
/// use bochner_attention::Mask;
///
/// // Two sentences of 3 and 5 words, padded to 5, each word seeing only its past.
/// let mask = Mask::none().with_key_lengths(vec![3, 5]).with_causality();
/// assert!(mask.keeps(0, 2, 1, 5, 5));
/// assert!(!mask.keeps(0, 1, 2, 5, 5)); // the future
/// assert!(!mask.keeps(0, 4, 3, 5, 5)); // padding
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    causal: bool,
    key_lengths: Option<Arc<Vec<usize>>>,
    query_lengths: Option<Arc<Vec<usize>>>,
    matrix: Option<Arc<Vec<Vec<bool>>>>,
}

impl Mask {
    /// Causality alone.
    pub(crate) const CAUSAL: &'static Self = &Self::bare(true);

    /// [`Mask::none`], to be borrowed for as long as one likes.
    pub(crate) const NONE: &'static Self = &Self::bare(false);

    const fn bare(causal: bool) -> Self {
        Self {
            causal,
            key_lengths: None,
            query_lengths: None,
            matrix: None,
        }
    }

    /// Every query may attend to every key.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds causality: query `i` sees key `j` only if `j <= i + Tk - Tq`.
    ///
    /// The last query is aligned with the last key, so that decoding step by step agrees with the
    /// full pass. With more queries than keys the first `Tq - Tk` queries see nothing. `Tk` counts
    /// padding.
    pub fn with_causality(self) -> Self {
        Self {
            causal: true,
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
    /// Only the inference network's mean over the queries uses it: the rows of padded queries are
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
        let rows = matrix.rows().into_iter().map(|row| row.to_vec()).collect();
        Self {
            matrix: Some(Arc::new(rows)),
            ..self
        }
    }

    /// Whether query `i` of example `b` may attend to key `j`, in sequences of `queries` and
    /// `keys` positions.
    ///
    /// # Panics
    /// If the mask has lengths but none for `b`, or a matrix without the pair.
    pub fn keeps(&self, b: usize, i: usize, j: usize, queries: usize, keys: usize) -> bool {
        j < self.row_limit(b, i, queries, keys) && self.matrix_row(i).is_none_or(|row| row[j])
    }

    /// The mask of sequences that attend to themselves: as many queries as keys are not padding.
    #[cfg(feature = "dfdx")]
    pub(crate) fn of_itself(&self) -> Self {
        let mut mask = self.clone();
        mask.query_lengths = mask.query_lengths.or_else(|| mask.key_lengths.clone());
        mask
    }

    /// Whether a causal restriction is part of the mask.
    pub fn is_causal(&self) -> bool {
        self.causal
    }

    /// Whether a boolean matrix is part of the mask.
    pub(crate) fn has_matrix(&self) -> bool {
        self.matrix.is_some()
    }

    /// The key lengths, if there are any.
    #[cfg(feature = "dfdx")]
    pub(crate) fn key_lengths(&self) -> Option<&[usize]> {
        self.key_lengths.as_ref().map(|lengths| &lengths[..])
    }

    /// Whether lengths of the keys or the queries are part of the mask.
    pub(crate) fn has_lengths(&self) -> bool {
        self.key_lengths.is_some() || self.query_lengths.is_some()
    }

    /// The keys before this index are kept by lengths and causality.
    pub(crate) fn row_limit(&self, b: usize, i: usize, queries: usize, keys: usize) -> usize {
        let length = self.key_limit(b, keys);
        if self.causal {
            length.min((i + 1 + keys).saturating_sub(queries))
        } else {
            length
        }
    }

    /// The keys before this index are kept by the lengths.
    pub(crate) fn key_limit(&self, b: usize, keys: usize) -> usize {
        self.key_lengths.as_ref().map_or(keys, |lengths| lengths[b])
    }

    /// Row `i` of the matrix, if there is one.
    pub(crate) fn matrix_row(&self, i: usize) -> Option<&[bool]> {
        self.matrix.as_ref().map(|rows| rows[i].as_slice())
    }

    /// The positions that count in a mean over the queries, `[B, Tq]`; `None` if all do.
    pub(crate) fn kept_queries(&self, batch: usize, queries: usize) -> Option<Array2<bool>> {
        kept(self.query_lengths.as_ref(), batch, queries)
    }

    /// The positions that count in a mean over the keys, `[B, Tk]`; `None` if all do.
    pub(crate) fn kept_keys(&self, batch: usize, keys: usize) -> Option<Array2<bool>> {
        kept(self.key_lengths.as_ref(), batch, keys)
    }

    /// Checks the mask against the sizes of a call.
    ///
    /// # Errors
    /// [`Error::Mask`] if a list of lengths does not have one entry an example, if a length is
    /// beyond the sequence, or if the matrix is not `[Tq, Tk]`.
    pub fn validate(&self, batch: usize, queries: usize, keys: usize) -> Result<(), Error> {
        for (what, lengths, positions) in [
            ("key lengths", &self.key_lengths, keys),
            ("query lengths", &self.query_lengths, queries),
        ] {
            if let Some(lengths) = lengths {
                check_lengths(what, lengths, batch, positions)?;
            }
        }
        let Some(rows) = &self.matrix else {
            return Ok(());
        };
        match rows.iter().map(Vec::len).find(|&len| len != keys) {
            None if rows.len() == queries => Ok(()),
            wrong => Err(Error::Mask {
                what: "matrix",
                expected: format!("{queries} rows of {keys}"),
                got: format!("{} rows of {}", rows.len(), wrong.unwrap_or(keys)),
            }),
        }
    }
}

fn kept(lengths: Option<&Arc<Vec<usize>>>, batch: usize, positions: usize) -> Option<Array2<bool>> {
    lengths.map(|lengths| Array2::from_shape_fn((batch, positions), |(b, t)| t < lengths[b]))
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
            expected: format!("{batch} lengths, one an example"),
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
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn causality_aligns_the_last_query_with_the_last_key() {
        let mask = Mask::none().with_causality();
        let kept = |queries, keys| -> Vec<usize> {
            (0..queries)
                .map(|i| mask.row_limit(0, i, queries, keys))
                .collect()
        };
        assert_eq!(kept(3, 3), [1, 2, 3]);
        assert_eq!(kept(2, 4), [3, 4]);
        assert_eq!(kept(4, 2), [0, 0, 1, 2]);
    }

    #[test]
    fn parts_are_joined_by_and() {
        let mask = Mask::none()
            .with_key_lengths(vec![2])
            .with_causality()
            .with_matrix(
                array![[true, true, true], [false, true, true], [true, true, true]].view(),
            );
        let kept: Vec<Vec<bool>> = (0..3)
            .map(|i| (0..3).map(|j| mask.keeps(0, i, j, 3, 3)).collect())
            .collect();
        assert_eq!(
            kept,
            [
                [true, false, false],
                [false, true, false],
                [true, true, false]
            ]
        );
    }

    #[test]
    fn clones_share_everything_until_one_changes() {
        let all = Array2::from_elem((2, 2), true);
        let mask = Mask::none().with_key_lengths(vec![1, 2]);
        let mask = mask.with_matrix(all.view());
        let mut clone = mask.clone();
        let rows = [&mask, &clone].map(|mask| mask.matrix_row(1).unwrap().as_ptr());
        assert_eq!(rows[0], rows[1]);
        let lengths = |mask: &Mask| mask.key_lengths.as_ref().unwrap().as_ptr();
        assert_eq!(lengths(&mask), lengths(&clone));
        clone.set_key_lengths([2, 0].into_iter());
        let limits = |mask: &Mask| [0, 1].map(|b| mask.key_limit(b, 2));
        assert_eq!((limits(&mask), limits(&clone)), ([1, 2], [2, 0]));
        let own = lengths(&clone);
        clone.set_key_lengths([0, 1].into_iter());
        assert_eq!((lengths(&clone), limits(&clone)), (own, [0, 1]));
    }

    #[test]
    fn misfits_are_named() {
        let wrong = [
            Mask::none().with_key_lengths(vec![1]),
            Mask::none().with_key_lengths(vec![1, 5]),
            Mask::none().with_query_lengths(vec![4, 1]),
            Mask::none().with_matrix(Array2::from_elem((3, 3), true).view()),
            Mask::none().with_matrix(Array2::from_elem((2, 4), true).view()),
        ];
        for mask in wrong {
            assert!(
                matches!(mask.validate(2, 3, 4), Err(Error::Mask { .. })),
                "{mask:?}"
            );
        }
        assert!(
            Mask::none()
                .with_key_lengths(vec![0, 4])
                .validate(2, 3, 4)
                .is_ok()
        );
    }
}
