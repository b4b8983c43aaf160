//! The forward pass over all heads of a call.

use super::fault;
use super::{Operands, OutputRows, Packed};
use crate::call::{Call, blocks};
use crate::kernel::PairKernel;
use crate::linear::ResultRows;
use crate::linear::squares::{self, Starts};
use crate::normaliser::Row;
use crate::{Error, Form};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Real, parallel};
use ndarray::Array4;

/// The numbers that a backward pass needs besides the output: O(T) of each head.
#[derive(Clone, Debug)]
pub(crate) struct PairsState<T> {
    pub(crate) heads: Vec<Operands<T>>,
    /// The state of each row of each head.
    pub(crate) rows: Vec<Row<T>>,
    /// The sums that the parts of each head start from; empty for heads that went pair by pair.
    pub(crate) starts: Vec<Starts<T>>,
}

/// Attention of all heads, with what a backward pass needs.
pub(crate) fn attend<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    output: Unwritten<T>,
) -> Result<PairsState<T>, Error> {
    let heads = call.all_heads();
    let mut rows = vec![Row::new(0.0); heads * call.shape.queries];
    let in_linear_time: Vec<bool> = (0..heads)
        .map(|h| call.at(h).form() == Form::LinearTime)
        .collect();
    let (heads, starts) = match in_linear_time.contains(&true) {
        true => squares::attend(
            kernel,
            call,
            &in_linear_time,
            OutputRows {
                output,
                rows: &mut rows,
            },
        )?,
        false => {
            let out = OutputRows {
                output,
                rows: &mut rows,
            };
            (
                pair_by_pair(kernel, call, true, out)?,
                vec![Vec::new(); heads],
            )
        }
    };
    fault::fault(kernel, call)?;
    Ok(PairsState {
        heads,
        rows,
        starts,
    })
}

/// Attention of all heads, without what a backward pass needs.
pub(crate) fn attend_once<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    output: Unwritten<T>,
) -> Result<(), Error> {
    let heads = call.all_heads();
    if (0..heads).any(|h| call.at(h).form() == Form::LinearTime) {
        return attend(kernel, call, output).map(drop);
    }
    let mut rows = call
        .workspace
        .pool()
        .filled(heads * call.shape.queries, Row::new(0.0));
    pair_by_pair(
        kernel,
        call,
        false,
        OutputRows {
            output,
            rows: &mut rows,
        },
    )?;
    fault::fault(kernel, call)
}

/// Operands of a head are made when its turn comes, so that they come from the cache; if they are
/// not kept, the next head's take the same memory.
fn pair_by_pair<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    keep: bool,
    out: OutputRows<T>,
) -> Result<Vec<Operands<T>>, Error> {
    let (queries, heads) = (call.shape.queries, call.all_heads());
    let mut results: Vec<Option<Result<Operands<T>, Error>>> = (0..heads).map(|_| None).collect();
    parallel::for_each_piece(
        (out, &mut results[..]),
        heads,
        |(rows, results), h, next| {
            let (rows, more_rows) = rows.split_at((next - h) * queries);
            let (results, more) = results.split_at_mut(next - h);
            ((rows, results), (more_rows, more))
        },
        |h, (rows, result)| {
            let operands = attend_head(kernel, call, h, rows);
            result[0] =
                Some(operands.map(|operands| if keep { operands } else { Operands::default() }));
        },
    );
    results.into_iter().flatten().collect()
}

/// Attention of one head, pair by pair; returns its operands.
pub(crate) fn attend_head<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    h: usize,
    rows: OutputRows<T>,
) -> Result<Operands<T>, Error> {
    let (at, chunk) = (call.at(h), call.chunk());
    let admitted = match at.admit() {
        Ok(admitted) => admitted,
        Err(error) => {
            rows.output.zeros();
            return Err(error);
        }
    };
    let inputs = admitted.inputs(&at);
    let operands = Operands::new(kernel, &at, &inputs);
    let [_, right] = operands.matrices(&inputs);
    let packed = Packed::new(kernel, right, at.workspace());
    let head = operands.head(kernel, &at, &inputs, &packed);
    parallel::for_each_piece(
        rows,
        call.shape.queries.div_ceil(chunk),
        |rows, i, next| rows.split_at((next - i) * chunk),
        |i, rows| {
            if let Some(row) = head.forward(i * chunk, rows) {
                call.note_fault(h, row);
            }
        },
    );
    Ok(operands)
}

/// Returns the normalised weights of all pairs, before dropout, `[B, M, Tq, Tk]`.
pub(crate) fn weights<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
) -> Result<Array4<T>, Error> {
    let (queries, keys) = (call.shape.queries, call.shape.keys);
    let mut weights = vec![T::zero(); call.all_heads() * queries * keys];
    let block = call.blocks.queries;
    let results = parallel::map_chunks(&mut weights, queries * keys, |h, weights| {
        let at = call.at(h);
        let admitted = at.admit()?;
        let inputs = admitted.inputs(&at);
        let operands = Operands::new(kernel, &at, &inputs);
        let [_, right] = operands.matrices(&inputs);
        let packed = Packed::new(kernel, right, at.workspace());
        let head = operands.head(kernel, &at, &inputs, &packed);
        for (rows, weights) in blocks(0..queries, block).zip(weights.chunks_mut(block * keys)) {
            let own = head.weights(rows.clone());
            if own.keys.is_empty() {
                continue;
            }
            let all = weights
                .chunks_exact_mut(keys)
                .zip(own.weights.chunks_exact(own.keys.len()));
            for (i, (row, own_row)) in rows.zip(all) {
                row[own.keys.clone()].copy_from_slice(own_row);
                if own_row.iter().any(|x| !x.is_finite()) {
                    call.note_fault(h, i);
                }
            }
        }
        Ok(())
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    fault::fault(kernel, call)?;
    let shape = [call.shape.batch, call.shape.heads, queries, keys];
    Ok(Array4::from_shape_vec(shape, weights).expect("one slab a head"))
}
