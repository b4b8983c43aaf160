//! Attention by a pairwise kernel: each head in its own form.

use crate::call::{Call, HeadAt, Inputs, copy_or};
use crate::gradients::{Along, Gradients, Wanted, over_heads};
use crate::kernel::{PairKernel, Side};
use crate::linear::squares::{self, Starts};
use crate::normaliser::Row;
use crate::pairwise::{self, Cotangent, HeadGradients, Operands, OutputRows};
use crate::{Error, Form};
use bochner_numerics::memory::{Unwritten, overwritten_by};
use bochner_numerics::{Buffer, Mat, Real, parallel};
use ndarray::ArrayView4;

/// The numbers that a backward pass needs besides the output: O(T) of each head.
#[derive(Clone, Debug)]
pub(crate) struct PairsState<T> {
    heads: Vec<HeadState<T>>,
    /// The state of each row of each head.
    pub(crate) rows: Buffer<Row<T>>,
}

#[derive(Clone, Debug)]
struct HeadState<T> {
    operands: Operands<T>,
    /// The sums that the parts of the head start from; empty for a head that went pair by pair.
    starts: Starts<T>,
}

/// Attention of all heads; returns what a backward pass needs.
pub(crate) fn attend<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    output: Unwritten<T>,
) -> Result<PairsState<T>, Error> {
    let (queries, heads) = (call.shape.queries, call.all_heads());
    let mut rows = call.workspace.pool().filled(heads * queries, Row::new(0.0));
    let mut results: Vec<Option<Result<HeadState<T>, Error>>> = (0..heads).map(|_| None).collect();
    let out = OutputRows {
        output,
        rows: &mut rows,
    };
    parallel::for_each_piece(
        (out, &mut results[..]),
        heads,
        |(rows, results), h, next| {
            let (rows, more_rows) = rows.split_at((next - h) * queries);
            let (results, more) = results.split_at_mut(next - h);
            ((rows, results), (more_rows, more))
        },
        |h, (rows, result)| {
            result[0] = Some(attend_head(kernel, call.at(h), rows));
        },
    );
    let heads = results.into_iter().flatten().collect::<Result<_, _>>()?;
    pairwise::fault(kernel, call)?;
    Ok(PairsState { heads, rows })
}

/// Attention of one head: in linear time where that is its form, but pair by pair if linear time is not accurate enough
/// and was not asked for.
fn attend_head<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: HeadAt<T>,
    out: OutputRows<T>,
) -> Result<HeadState<T>, Error> {
    let admitted = match at.admit() {
        Ok(admitted) => admitted,
        Err(error) => {
            out.output.zeros();
            return Err(error);
        }
    };
    let inputs = admitted.inputs(&at);
    let operands = Operands::new(kernel, &at, &inputs);
    if at.form() != Form::LinearTime {
        pairwise::attend(kernel, &at, &inputs, &operands, out);
        let starts = Vec::new();
        return Ok(HeadState { operands, starts });
    }
    let (output, rows) = (out.output.zeros(), out.rows);
    let starts = overwritten_by(output, |output| {
        let rows = &mut *rows;
        squares::attend(kernel, &at, &inputs, &operands, OutputRows { output, rows })
    });
    let weights = operands.weights();
    if at.call.settings.form == Form::Automatic && !squares::is_accurate(&at, weights, rows) {
        overwritten_by(output, |output| {
            pairwise::attend(kernel, &at, &inputs, &operands, OutputRows { output, rows });
        });
        let starts = Vec::new();
        return Ok(HeadState { operands, starts });
    }
    // The operands of all heads at once would take 2R / d times the memory of queries and keys.
    let operands = Operands {
        key_weights: operands.key_weights,
        ..Operands::default()
    };
    Ok(HeadState { operands, starts })
}

/// Returns the gradients of a call, given what its forward pass saved.
pub(crate) fn pull_back<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    state: &PairsState<T>,
    given: [ArrayView4<T>; 2],
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    if !state.heads.iter().all(|own| own.fits(kernel, call)) {
        return Err(Error::Saved { what: "settings" });
    }
    let (parameters, queries) = (kernel.parameters(), call.shape.queries);
    over_heads(
        call,
        given,
        parameters,
        wanted,
        |at, [output, cotangent], out| {
            let (admitted, of_cotangent) = (at.admit()?, at.admit_cotangent(cotangent)?);
            let (inputs, own) = (admitted.inputs(&at), &state.heads[at.h]);
            let given = Cotangent {
                rows: &state.rows[at.h * queries..(at.h + 1) * queries],
                output,
                cotangent: copy_or(&of_cotangent, cotangent),
            };
            let part = match own.starts.is_empty() {
                true => {
                    pairwise::pull_back(kernel, &at, &inputs, &own.operands, &given, wanted.bias)
                }
                false => {
                    let weights = own.operands.weights();
                    squares::pull_back(kernel, &at, &inputs, weights, &own.starts, &given)
                }
            };
            Ok(finish(kernel, &at, &inputs, part, out))
        },
    )
}

impl<T: Real> HeadState<T> {
    /// Whether a forward pass with such a kernel can have saved the state.
    fn fits(&self, kernel: &dyn PairKernel<T>, call: &Call<T>) -> bool {
        let (left, shape) = (self.operands.left.len(), call.shape);
        let of_queries = left == 0 || left == shape.queries * kernel.operand_width(shape.width);
        let of_keys = self.operands.weights().is_some() == call.settings.key_weight.is_some();
        of_queries && of_keys && (self.starts.is_empty() || kernel.square().is_some())
    }
}

/// Writes the gradients along queries, keys and values; returns the others.
fn finish<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    part: HeadGradients<T>,
    [q, k, v]: [&mut [T]; 3],
) -> Along<T> {
    v[..part.values.len()].copy_from_slice(&part.values);
    let mut parameters = vec![T::zero(); kernel.parameters()[1]];
    parameters[..part.parameters.len()].copy_from_slice(&part.parameters);
    let k = &mut k[..inputs.k.data().len()];
    pull_side(
        kernel,
        at,
        (Side::Queries, inputs.q),
        &part.left,
        q,
        &mut parameters,
    );
    pull_side(
        kernel,
        at,
        (Side::Keys, inputs.k),
        &part.right,
        k,
        &mut parameters,
    );
    if let Some(weight) = &at.call.settings.key_weight
        && part.keys.iter().any(|&c| c != T::zero())
    {
        weight.pull(at.rows_of(Side::Keys, inputs.k), &part.keys, k);
    }
    let [of_row, of_all] = &part.bias;
    Along {
        parameters,
        bias: [&of_row[..], of_all].concat(),
        sink: part.sink,
    }
}

/// Rows that go all the way back at a time.
const ROWS: usize = 1024;

/// Writes the gradients along queries or keys, some rows at a time.
fn pull_side<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    (side, x): (Side, Mat<T>),
    gradient: &[T],
    out: &mut [T],
    parameters: &mut [T],
) {
    let (rows, width) = x.shape();
    if rows == 0 {
        return;
    }
    let own = gradient.len() / rows;
    let pieces = parallel::map_chunks(out, ROWS * width, |i, out| {
        let rows = i * ROWS..i * ROWS + out.len() / width;
        let gradient = Mat::new(&gradient[rows.start * own..rows.end * own], rows.len(), own);
        let mut along = vec![T::zero(); parameters.len()];
        let rows = at.rows_of(side, x.row_range(rows));
        kernel.pull_operands(rows, gradient, out, &mut along);
        along
    });
    for piece in &pieces {
        crate::lanes::add(parameters, piece);
    }
}
