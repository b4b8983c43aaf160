//! Weights, and outputs with them.

use super::attend::{Kept, Prepared};
use super::product::add_product;
use super::rescaling::{copy_or, divided};
use super::{Arguments, Level, RowStatistics, blocks, multiply_finite};
use crate::score::PairKernel;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::Array4;
use std::ops::Range;

/// The normalised weights of all pairs, before dropout, `[B, M, Tq, Tk]`.
pub(super) fn weights<T: Real, K: PairKernel<T>>(kernel: &K, call: &Arguments<T>) -> Array4<T> {
    let heads = prepared(kernel, call);
    let mut weights = vec![T::zero(); call.all_heads() * call.queries * call.keys];
    let size = call.blocks.queries * call.keys;
    let pieces = weights.chunks_exact_mut(call.queries * call.keys);
    let pieces = pieces.map(|head| head.chunks_mut(size));
    parallel::for_each(tasks(call, pieces), |(h, rows, weights)| {
        let at = call.at(h);
        let head = heads[h].head(kernel, &at, at.values());
        let own = head.weights(rows);
        own.write(weights, call.keys);
    });
    call.array(call.queries, call.keys, weights)
}

/// Attention pair by pair that gives the weights too: one product of queries and keys makes both.
pub(super) fn attend<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    output: Unwritten<T>,
) -> (Kept<T, K::Score>, Array4<T>) {
    let (queries, keys, width) = (call.queries, call.keys, call.value_width);
    let heads = prepared(kernel, call);
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = (call.workspace.pool()).filled(call.all_heads() * queries, none);
    let mut weights = vec![T::zero(); call.all_heads() * queries * keys];
    let values = |h: usize| {
        let at = call.at(h);
        divided(at.values(), heads[h].unit, at.numbers())
    };
    let values = parallel::map(call.all_heads(), values);
    let block = call.blocks.queries;
    let pieces = weights.chunks_exact_mut(queries * keys);
    let pieces = pieces
        .zip(output.zeros().chunks_exact_mut(queries * width))
        .zip(statistics.chunks_exact_mut(queries))
        .map(|((weights, output), statistics)| {
            let rows = weights
                .chunks_mut(block * keys)
                .zip(output.chunks_mut(block * width));
            rows.zip(statistics.chunks_mut(block))
        });
    parallel::for_each(
        tasks(call, pieces),
        |(h, rows, ((weights, output), statistics))| {
            let at = call.at(h);
            let values = copy_or(&values[h], at.values());
            let head = heads[h].head(kernel, &at, values);
            let mut own = head.weights(rows.clone());
            own.write(weights, keys);
            statistics.copy_from_slice(&own.statistics);
            if own.keys.is_empty() {
                return;
            }
            head.drop_out(rows.clone(), &own.keys, &mut own.weights);
            let seen = Mat::new(&own.weights, rows.len(), own.keys.len());
            let values = values.row_range(own.keys.clone());
            add_product(at.numbers(), seen, values, head.finite.values, output);
            multiply_finite(output, heads[h].unit);
        },
    );
    let mut kept = call.workspace.pool().empty(call.all_heads());
    kept.extend(heads);
    let kept = Kept {
        heads: kept,
        statistics,
        starts: None,
    };
    (kept, call.array(queries, keys, weights))
}

fn prepared<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
) -> Vec<Prepared<T, K::Score>> {
    parallel::map(call.all_heads(), |h| {
        let at = call.at(h);
        Prepared::new(kernel, &at, kernel.score(&at)).with_bits(kernel, &at)
    })
}

/// One task for each block of queries of each head: the head, the block, and its piece of that head's.
fn tasks<T: Real, P>(
    call: &Arguments<T>,
    heads: impl Iterator<Item = impl Iterator<Item = P>>,
) -> Vec<(usize, Range<usize>, P)> {
    let of_head = |(h, pieces)| {
        let rows = blocks(0..call.queries, call.blocks.queries);
        rows.zip(pieces).map(move |(rows, piece)| (h, rows, piece))
    };
    heads.enumerate().flat_map(of_head).collect()
}
