//! The search for the pair whose score is not finite.

use super::Head;
use super::attend::with_head;
use crate::Error;
use crate::call::Call;
use crate::kernel::PairKernel;
use bochner_numerics::Real;

/// Returns the error of the first row whose weights are not finite, if there is one.
pub(crate) fn fault<T: Real>(kernel: &dyn PairKernel<T>, call: &Call<T>) -> Result<(), Error> {
    let Some((h, query)) = call.fault() else {
        return Ok(());
    };
    with_head(kernel, call.at(h), |head| Err(head.fault(query)))?
}

impl<T: Real> Head<'_, T> {
    /// Returns the error of a row whose weights are not finite.
    pub(crate) fn fault(&self, query: usize) -> Error {
        let (example, head) = (self.example, self.head);
        let (scores, keys) = self.row_scores(query);
        let is_wrong = |x: T| x.is_nan() || x == T::infinity();
        let visible = |j: &usize| self.rows.range(query).contains(j) && self.rows.keeps(query, *j);
        match keys
            .clone()
            .filter(visible)
            .find(|&j| is_wrong(scores[j - keys.start]))
        {
            Some(key) => {
                let got = scores[key - keys.start].as_f64();
                Error::Score {
                    example,
                    head,
                    query,
                    key: key + self.first_key,
                    got,
                }
            }
            None => Error::RowSum {
                example,
                head,
                query,
            },
        }
    }
}
