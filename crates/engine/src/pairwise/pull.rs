//! From a cotangent of the output to gradients of queries, keys, values and parameters.

use super::{Cotangent, HeadGradients, Operands, Packed, PairsState};
use crate::attend::{Gradients, Wanted};
use crate::call::{Call, HeadAt, Inputs, copy_or, slab};
use crate::kernel::{PairKernel, Side};
use crate::linear::squares;
use crate::{Error, Shape};
use bochner_numerics::elementary::max_norm;
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{Array1, Array3, ArrayD, ArrayView4};

/// Returns the gradients of a call, given what its forward pass saved.
pub(crate) fn pull_back<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    state: &PairsState<T>,
    given: [ArrayView4<T>; 2],
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    let parameters = kernel.parameters();
    if !fits(kernel, call, state) {
        return Err(Error::Saved { what: "settings" });
    }
    over_heads(
        call,
        given,
        parameters,
        wanted,
        |at, [output, cotangent], out| {
            let admitted = at.admit()?;
            let of_cotangent = at.admit_cotangent(cotangent)?;
            let queries = call.shape.queries;
            let given = Cotangent {
                rows: &state.rows[at.h * queries..(at.h + 1) * queries],
                output,
                cotangent: copy_or(&of_cotangent, cotangent),
            };
            let head = HeadBack {
                kernel,
                at,
                inputs: admitted.inputs(&at),
                operands: &state.heads[at.h],
                wanted,
            };
            let part = match state.starts[at.h].is_empty() {
                true => head.pair_by_pair(&given),
                false => squares::pull_back(
                    kernel,
                    &at,
                    &head.inputs,
                    head.operands,
                    &state.starts[at.h],
                    &given,
                ),
            };
            Ok(head.finish(part, out))
        },
    )
}

/// Whether a forward pass with such a kernel can have saved a state.
fn fits<T: Real>(kernel: &dyn PairKernel<T>, call: &Call<T>, state: &PairsState<T>) -> bool {
    let width = kernel.operand_width(call.shape.width);
    let of_queries =
        |own: &Operands<T>| own.left.is_empty() || own.left.len() == call.shape.queries * width;
    let weighs = call.settings.key_weight.is_some();
    let of_keys = |own: &Operands<T>| own.key_weights.is_some() == weighs;
    let in_linear_time = state.starts.iter().any(|starts| !starts.is_empty());
    state
        .heads
        .iter()
        .all(|own| of_queries(own) && of_keys(own))
        && (!in_linear_time || kernel.square().is_some())
}

/// The gradients of one head along what heads share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Along<T> {
    /// Along the kernel's parameters.
    pub(crate) parameters: Vec<T>,
    /// Along the bias.
    pub(crate) bias: Vec<T>,
    /// Along the sink.
    pub(crate) sink: T,
}

/// Returns the gradients of a call, each head of which has those that `of_head` writes and returns, given its output
/// and cotangent.
///
/// A head goes all the way at once: what reaches its operands is still in the cache then, and the next
/// one takes the same memory.
pub(crate) fn over_heads<T: Real>(
    call: &Call<T>,
    given: [ArrayView4<T>; 2],
    parameters: [usize; 2],
    wanted: Wanted,
    of_head: impl Fn(HeadAt<T>, [Mat<T>; 2], [&mut [T]; 3]) -> Result<Along<T>, Error> + Sync,
) -> Result<Gradients<T>, Error> {
    let numbers = &call.workspace.numbers;
    let given = given.map(|x| RowMajor::new(x, numbers));
    let heads = call.all_heads();
    let Shape {
        queries,
        keys,
        width,
        value_width,
        ..
    } = call.shape;
    let sizes = [queries * width, keys * width, keys * value_width];
    let mut along: Vec<Result<Along<T>, Error>> =
        (0..heads).map(|_| Ok(Along::default())).collect();
    let [q, k, v] = written_by(sizes.map(|size| heads * size), |all| {
        let mut sizes = sizes.into_iter();
        let [q, k, v] = all.map(|all| all.chunks(sizes.next().expect("three sizes")));
        let heads = q.zip(k).zip(v).zip(&mut along).enumerate();
        parallel::for_each(heads.collect(), |(h, (((q, k), v), along))| {
            let given = given.each_ref().map(|x| slab(x.view(), h));
            let [q, k, v] = [q, k, v].map(Unwritten::zeros);
            let at = call.at(h);
            *along = of_head(at, given, [&mut *q, &mut *k, &mut *v])
                .and_then(|along| check_finite(&at, [("q", &*q), ("k", k), ("v", v)], along));
        });
    });
    let along = along.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Gradients {
        q: call.query_array(width, q),
        k: call.kv_array(width, k),
        v: call.kv_array(value_width, v),
        kernel: wanted
            .kernel
            .then(|| sum_parameters(call, parameters, &along)),
        bias: if wanted.bias {
            sum_bias(call, &along)
        } else {
            None
        },
        sink: (wanted.sink && call.settings.sink.is_some()).then(|| sum_sinks(call, &along)),
    })
}

/// Refuses gradients that are not finite: some slope was not.
fn check_finite<T: Real>(
    at: &HeadAt<T>,
    arrays: [(&'static str, &[T]); 3],
    along: Along<T>,
) -> Result<Along<T>, Error> {
    let of_kernel = ("the kernel's parameters", &along.parameters[..]);
    for (array, numbers) in arrays.into_iter().chain([of_kernel]) {
        if !max_norm(numbers).is_finite() {
            return Err(Error::Slope {
                array,
                example: at.example(),
                head: at.head(),
            });
        }
    }
    Ok(along)
}

/// One head on its way back.
struct HeadBack<'a, T: Real> {
    kernel: &'a dyn PairKernel<T>,
    at: HeadAt<'a, T>,
    inputs: Inputs<'a, T>,
    operands: &'a Operands<T>,
    wanted: Wanted,
}

impl<T: Real> HeadBack<'_, T> {
    fn pair_by_pair(&self, given: &Cotangent<T>) -> HeadGradients<T> {
        let chunks = self.at.chunks();
        let [_, right] = self.operands.matrices(&self.inputs);
        let packed = Packed::new(self.kernel, right, self.at.workspace());
        let packed = packed.with_values(self.inputs.v, self.at.workspace());
        let head = self
            .operands
            .head(self.kernel, &self.at, &self.inputs, &packed);
        let part = |i: usize| head.backward(chunks[i].clone(), given, self.wanted.bias);
        let mut parts = parallel::map(chunks.len(), part).into_iter();
        let mut whole = parts.next().expect("there are queries");
        parts.for_each(|part| whole.join(part));
        whole
    }

    /// Writes the gradients along queries, keys and values; returns the others.
    fn finish(&self, part: HeadGradients<T>, [q, k, v]: [&mut [T]; 3]) -> Along<T> {
        v[..part.values.len()].copy_from_slice(&part.values);
        let mut parameters = vec![T::zero(); self.kernel.parameters()[1]];
        parameters[..part.parameters.len()].copy_from_slice(&part.parameters);
        let k = &mut k[..self.inputs.k.data().len()];
        self.pull_side(Side::Queries, self.inputs.q, &part.left, q, &mut parameters);
        self.pull_side(Side::Keys, self.inputs.k, &part.right, k, &mut parameters);
        if let Some(weight) = &self.at.call.settings.key_weight
            && part.keys.iter().any(|&c| c != T::zero())
        {
            weight.pull(self.at.rows_of(Side::Keys, self.inputs.k), &part.keys, k);
        }
        let [of_row, of_all] = &part.bias;
        Along {
            parameters,
            bias: [&of_row[..], of_all].concat(),
            sink: part.sink,
        }
    }

    /// Writes the gradients along queries or keys, some rows at a time.
    fn pull_side(
        &self,
        side: Side,
        x: Mat<T>,
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
            let rows = self.at.rows_of(side, x.row_range(rows));
            self.kernel.pull_operands(rows, gradient, out, &mut along);
            along
        });
        pieces
            .iter()
            .for_each(|piece| crate::lanes::add(parameters, piece));
    }
}

/// Rows that go all the way back at a time.
const ROWS: usize = 1024;

/// The sums over the heads that share parameters, in the order of the examples.
fn sum_parameters<T: Real>(
    call: &Call<T>,
    [sets, count]: [usize; 2],
    parts: &[Along<T>],
) -> Array3<T> {
    let heads = call.shape.heads;
    let mut all = Array3::zeros((sets, heads, count));
    for (h, part) in parts.iter().enumerate() {
        let mut row = all.slice_mut(ndarray::s![h / heads % sets, h % heads, ..]);
        row.iter_mut()
            .zip(&part.parameters)
            .for_each(|(sum, &x)| *sum += x);
    }
    all
}

fn sum_sinks<T: Real>(call: &Call<T>, parts: &[Along<T>]) -> Array1<T> {
    let mut all = Array1::zeros(call.shape.heads);
    parts
        .iter()
        .enumerate()
        .for_each(|(h, part)| all[h % call.shape.heads] += part.sink);
    all
}

/// The sums over the heads that share a bias, in the order of the examples.
fn sum_bias<T: Real>(call: &Call<T>, parts: &[Along<T>]) -> Option<ArrayD<T>> {
    let mut all = call.settings.bias.as_ref()?.zero_gradients()?;
    // A table has a row a head; an array of pairs may be shared by heads, by examples or by both.
    let [examples, heads] = match all.shape() {
        &[examples, heads, ..] if all.ndim() == 4 => [examples, heads],
        shape => [1, shape[0]],
    };
    let sums = all.as_slice_mut().expect("row-major");
    let size = sums.len() / (examples * heads);
    parallel::for_each_chunk(sums, size, |slot, sum| {
        for (h, part) in parts.iter().enumerate() {
            let (b, m) = (h / call.shape.heads, h % call.shape.heads);
            if slot == (b % examples) * heads + m % heads {
                crate::lanes::add(sum, &part.bias);
            }
        }
    });
    Some(all)
}
