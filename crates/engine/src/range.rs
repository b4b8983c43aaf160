//! The range of the numbers that pairs need.
//!
//! Products of four numbers up to the fourth root of the type's largest are finite, so that no later step has to look
//! for an overflow. Whatever no pair needs is replaced by zeros before anything is computed from it: nothing that is
//! hidden can reach a result.

use crate::Error;
use crate::mask::HeadMask;
use bochner_numerics::elementary::max_norm;
use bochner_numerics::{Buffer, Buffers, Mat, Real};

/// Returns the largest size of a number that some pair needs.
pub(crate) fn limit<T: Real>() -> T {
    T::max_value().sqrt().sqrt()
}

/// Checks the rows of one head, `[example, head]`. Where numbers are out of range in rows that no pair needs, returns a
/// copy with zeros in place of these rows.
pub(crate) fn admit<T: Real>(
    array: &'static str,
    [example, head]: [usize; 2],
    x: Mat<T>,
    needed: impl FnOnce() -> Vec<bool>,
    numbers: &Buffers<T>,
) -> Result<Option<Buffer<T>>, Error> {
    let limit = limit::<T>();
    // NaN is not in range.
    let fits = |x: T| x <= limit;
    if fits(max_norm(x.data())) {
        return Ok(None);
    }
    let (needed, (_, width)) = (needed(), x.shape());
    let mut copy = numbers.empty(x.data().len());
    copy.extend_from_slice(x.data());
    for (t, row) in copy.chunks_exact_mut(width).enumerate() {
        match row.iter().position(|x| !fits(x.abs())) {
            Some(column) if needed[t] => {
                return Err(Error::OutOfRange {
                    array,
                    index: [example, head, t, column],
                    got: row[column].as_f64(),
                    limit: limit.as_f64(),
                });
            }
            Some(_) => row.fill(T::zero()),
            None => {}
        }
    }
    Ok(Some(copy))
}

impl HeadMask<'_> {
    /// Whether any query sees each of the first keys.
    pub(crate) fn seen_keys(&self, keys: usize) -> Vec<bool> {
        let mut seen = vec![false; keys];
        for i in 0..self.queries {
            let range = self.range(i);
            match self.is_by_ranges() {
                true => seen[range].fill(true),
                false => range.for_each(|j| seen[j] |= self.keeps(i, j)),
            }
        }
        seen
    }
}
