//! All queries of one head, and the weights of all pairs.

use super::{Cotangent, Head, HeadGradients, Operands, OutputRows, fault};
use crate::Error;
use crate::call::{Call, HeadAt, Inputs, blocks};
use crate::kernel::PairKernel;
use bochner_numerics::{Real, parallel};
use ndarray::Array4;

/// Attention of one head.
pub(crate) fn attend<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    operands: &Operands<T>,
    rows: OutputRows<T>,
) {
    let (call, chunk) = (at.call, at.call.chunk());
    let packed = operands.packed(kernel, at, inputs);
    let head = operands.head(kernel, at, inputs, &packed);
    parallel::for_each_piece(
        rows,
        call.shape.queries.div_ceil(chunk),
        |rows, i, next| rows.split_at((next - i) * chunk),
        |i, rows| {
            if let Some(row) = head.forward(i * chunk, rows) {
                call.note_fault(at.h, row);
            }
        },
    );
}

/// Returns the gradients of one head along operands, values, log-weights and what heads share.
pub(crate) fn pull_back<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    operands: &Operands<T>,
    given: &Cotangent<T>,
    wants_bias: bool,
) -> HeadGradients<T> {
    let packed = operands.packed(kernel, at, inputs);
    let packed = packed.with_values(inputs.v, at.workspace());
    let (head, chunks) = (operands.head(kernel, at, inputs, &packed), at.chunks());
    let part = |i: usize| head.backward(chunks[i].clone(), given, wants_bias);
    let parts = parallel::map(chunks.len(), part).into_iter();
    parts
        .reduce(HeadGradients::join)
        .expect("there are queries")
}

/// Calls `f` with a head of a call.
pub(super) fn with_head<T: Real, R>(
    kernel: &dyn PairKernel<T>,
    at: HeadAt<T>,
    f: impl FnOnce(Head<T>) -> R,
) -> Result<R, Error> {
    let admitted = at.admit()?;
    let inputs = admitted.inputs(&at);
    let operands = Operands::new(kernel, &at, &inputs);
    let packed = operands.packed(kernel, &at, &inputs);
    Ok(f(operands.head(kernel, &at, &inputs, &packed)))
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
        with_head(kernel, call.at(h), |head| {
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
        })
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    fault(kernel, call)?;
    let shape = [call.shape.batch, call.shape.heads, queries, keys];
    Ok(Array4::from_shape_vec(shape, weights).expect("one slab a head"))
}
