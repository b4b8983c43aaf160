//! Outputs and weights at once.

use super::attend::{Kept, Prepared};
use super::product::add_product;
use super::units::{divided, or};
use super::{Arguments, Level, RowStatistics, blocks, multiply_finite};
use crate::score::PairKernel;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::Array4;

/// Attention pair by pair that keeps the normalised weights of each block, `[B, M, Tq, Tk]`, before dropout:
/// one product of queries and keys makes both.
pub(super) fn attend<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    output: Unwritten<T>,
) -> (Kept<T, K::Score>, Array4<T>) {
    let (queries, keys, width) = (call.queries, call.keys, call.value_width);
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = (call.workspace.pool()).filled(call.all_heads() * queries, none);
    let mut weights = vec![T::zero(); call.all_heads() * queries * keys];
    let mut heads = call.workspace.pool().empty(call.all_heads());
    heads.resize_with(call.all_heads(), Prepared::default);
    let places = output.zeros().chunks_exact_mut(queries * width);
    let places = places
        .zip(weights.chunks_exact_mut(queries * keys))
        .zip(statistics.chunks_exact_mut(queries).zip(&mut heads[..]))
        .enumerate();
    parallel::for_each(
        places.collect(),
        |(h, ((output, weights), (statistics, place)))| {
            let at = call.at(h);
            let prepared = Prepared::new(kernel, &at, kernel.score(&at));
            let values = divided(at.values(), prepared.unit, at.numbers());
            let values = or(&values, at.values());
            let head = prepared.head(kernel, &at, values);
            let (packed, kept) = (head.pack(), at.kept());
            let head = head.with(&packed);
            for rows in blocks(0..queries, call.blocks.queries) {
                let (mut own, row_statistics) = head.weights(rows.clone());
                statistics[rows.clone()].copy_from_slice(&row_statistics);
                if kept == 0 {
                    continue;
                }
                let all = weights[rows.start * keys..rows.end * keys].chunks_exact_mut(keys);
                for (all, own) in all.zip(own.chunks_exact(kept)) {
                    all[..kept].copy_from_slice(own);
                }
                head.drop_out(rows.clone(), &(0..kept), &mut own);
                let output = &mut output[rows.start * width..rows.end * width];
                let own = Mat::new(&own, rows.len(), kept);
                add_product(at.numbers(), own, values, head.finite.values, output);
                multiply_finite(output, prepared.unit);
            }
            drop(packed);
            *place = prepared;
        },
    );
    let kept = Kept {
        heads,
        statistics,
        starts: None,
    };
    (kept, call.array(queries, keys, weights))
}
