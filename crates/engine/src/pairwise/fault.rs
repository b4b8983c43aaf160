//! The search for the pair whose score is not finite.

use super::{Operands, Packed};
use crate::Error;
use crate::call::Call;
use crate::kernel::PairKernel;
use bochner_numerics::Real;

/// Returns the error of the first row whose weights are not finite, if there is one.
pub(crate) fn fault<T: Real>(kernel: &dyn PairKernel<T>, call: &Call<T>) -> Result<(), Error> {
    let Some((h, query)) = call.fault() else {
        return Ok(());
    };
    let at = call.at(h);
    let (example, head) = (at.example(), at.head());
    let admitted = at.admit()?;
    let inputs = admitted.inputs(&at);
    let operands = Operands::new(kernel, &at, &inputs);
    let [_, right] = operands.matrices(&inputs);
    let packed = Packed::new(kernel, right, at.workspace());
    let (scores, keys) = operands.head(kernel, &at, &inputs, &packed).row_scores(query);
    let rows = at.rows();
    let is_wrong = |x: T| x.is_nan() || x == T::infinity();
    let mut visible = keys.clone().filter(|&j| rows.range(query).contains(&j) && rows.keeps(query, j));
    match visible.find(|&j| is_wrong(scores[j - keys.start])) {
        Some(key) => {
            let got = scores[key - keys.start].as_f64();
            Err(Error::Score { example, head, query, key, got })
        }
        None => Err(Error::RowSum { example, head, query }),
    }
}
