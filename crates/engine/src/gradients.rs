//! The gradients of a call, and what heads add to those that they share.

use crate::call::{Call, HeadAt, slab};
use crate::{Error, Shape};
use bochner_numerics::elementary::max_norm;
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{Array1, Array3, Array4, ArrayD, ArrayView4};

/// Gradients of [`attend`](crate::attend()), shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients<T> {
    /// Along the queries.
    pub q: Array4<T>,
    /// Along the keys.
    pub k: Array4<T>,
    /// Along the values.
    pub v: Array4<T>,
    /// Along the kernel's parameters, `[sets, heads, n]`, if they were wanted.
    pub kernel: Option<Array3<T>>,
    /// Along the numbers of the bias, shaped as they are, if they were wanted.
    pub bias: Option<ArrayD<T>>,
    /// Along the sink, `[M]`, if it was wanted.
    pub sink: Option<Array1<T>>,
}

/// The gradients that are wanted besides those of queries, keys and values. Defaults to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Along the kernel's parameters.
    pub kernel: bool,
    /// Along the numbers of the bias.
    pub bias: bool,
    /// Along the sink.
    pub sink: bool,
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
        sink: wanted.sink.then(|| sum_sinks(call, &along)),
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
