//! Sizes of blocks.

use crate::Error;
use bochner_numerics::{Real, argument};
use serde::{Deserialize, Serialize};

/// The numbers of queries and keys of a block in [`Form::Pairwise`](crate::Form::Pairwise).
///
/// A block's scores are made, weighed and summed up before the next one's: they are all that is
/// held of the pairs, backwards beside as many gradients. Sums over keys are taken block by block,
/// and so are gradients over queries: other blocks round differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Blocks {
    /// Queries of a block.
    pub queries: usize,
    /// Keys of a block; rounded up to whole panels of packed keys, a multiple of
    /// [`Panels::ALIGNMENT`](bochner_numerics::Panels::ALIGNMENT).
    pub keys: usize,
}

bochner_numerics::checked_when_read!(Blocks, |blocks| blocks.checked().map(drop));

/// Bytes that a block's scores and their gradients may take: half of a core's second-level cache,
/// where that is small.
const ROOM: usize = 512 << 10;

impl Blocks {
    /// The blocks of [`Form::Pairwise`](crate::Form::Pairwise) and [`Form::Automatic`](crate::Form::Automatic): 128
    /// queries by 512 keys in `f32`, by 256 in `f64`, on every machine; for features 128 by 128, the blocks of their
    /// linear-time form.
    ///
    /// # Cost model
    /// $n_q$ queries by $n_k$ keys with operands of width w (2R features, or d) hold $2 n_q n_k$
    /// numbers, which have to stay within 512 KiB. A pair then moves $(w + d_v) / n_q$ numbers of
    /// keys and values and $(w + 2 d_v) / n_k$ of queries and outputs; the sum is least at
    /// $n_q / n_k = (w + d_v) / (w + 2 d_v)$, between a half and one for all widths, hence at 181
    /// to 256 queries in `f32` and 128 to 181 in `f64`. The power of two below leaves more blocks
    /// for threads to share.
    ///
    /// ```
    /// use bochner_engine::Blocks;
    ///
    /// assert_eq!(Blocks::of::<f32>(), Blocks { queries: 128, keys: 512 });
    /// assert_eq!(Blocks::of::<f64>(), Blocks { queries: 128, keys: 256 });
    /// ```
    pub fn of<T: Real>() -> Self {
        let pairs = ROOM / (2 * size_of::<T>());
        let queries = 1 << ((pairs / 2).ilog2() / 2);
        Self {
            queries,
            keys: pairs / queries,
        }
    }

    /// Returns the blocks, if they are not empty.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub fn checked(self) -> Result<Self, Error> {
        argument::at_least_one("queries of a block", self.queries)?;
        argument::at_least_one("keys of a block", self.keys)?;
        Ok(self)
    }
}
