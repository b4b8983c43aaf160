//! From a cotangent of the output to gradients of queries, keys, values and points.

use super::attend::{Kept, Prepared};
use super::backward::{Cotangent, HeadGradients};
use super::rescaling::{Units, copy_or, divided, fill_multiplied};
use super::{Arguments, HeadAt, RowMajor, linear_time, log2_largest, slab};
use crate::attend::AttentionGradients;
use crate::score::{AlongPoints, Given, Gradient, PairKernel, PointsGradients, Side};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{ArrayD, ArrayView1, ArrayView4};

/// The gradients of a call, given what its forward pass kept.
pub(super) fn pull_back<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    kept: &Kept<T, K::Score>,
    output: ArrayView4<T>,
    cotangent: ArrayView4<T>,
) -> AttentionGradients<T> {
    let points = kernel.points().map(|points| points.zero_gradients());
    over_heads(call, [output, cotangent], points, |h, given, out| {
        let head = HeadBack {
            kernel,
            at: call.at(h),
            prepared: &kept.heads[h],
        };
        head.pull_back(h, kept, given, out)
    })
}

/// The gradients of a call whose head `h` has those that `of_head` writes and returns, given the head's output
/// and cotangent; the gradients of the kernel's points, if it has any, begin with zeros.
///
/// A head goes all the way at once: what reaches its operands is still in the cache then, and the next
/// one takes the same memory.
pub(super) fn over_heads<T: Real>(
    call: &Arguments<T>,
    given: [ArrayView4<T>; 2],
    points: Option<PointsGradients<T>>,
    of_head: impl Fn(usize, [Mat<T>; 2], [&mut [T]; 3]) -> Along<T> + Sync,
) -> AttentionGradients<T> {
    let numbers = &call.workspace.numbers;
    let given = given.map(|x| RowMajor::new(x, numbers));
    let heads = call.all_heads();
    let [width, value_width] = [call.width, call.value_width];
    let sizes = [
        call.queries * width,
        call.keys * width,
        call.keys * value_width,
    ];
    let lengths = sizes.map(|size| heads * size);
    let mut along = vec![Along::default(); heads];
    let [q, k, v] = written_by(lengths, |all| {
        let mut sizes = sizes.into_iter();
        let [q, k, v] = all.map(|all| all.chunks(sizes.next().expect("three sizes")));
        let heads = q.zip(k).zip(v).zip(&mut along).enumerate();
        parallel::for_each(heads.collect(), |(h, (((q, k), v), along))| {
            let given = given.each_ref().map(|x| slab(x.view(), h));
            *along = of_head(h, given, [q, k, v].map(Unwritten::zeros));
        });
    });
    AttentionGradients {
        q: call.array(call.queries, width, q),
        k: call.shared_array(width, k),
        v: call.shared_array(value_width, v),
        points: points.map(|zeros| sum_along_points(zeros, &along)),
        bias: sum_along_bias(call, &along),
    }
}

/// Gradients of one head along what heads share.
#[derive(Clone)]
pub(super) struct Along<T> {
    pub(super) points: AlongPoints<T>,
    pub(super) bias: Vec<T>,
}

impl<T> Default for Along<T> {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            bias: Vec::new(),
        }
    }
}

/// One head on its way back.
struct HeadBack<'a, T: Real, K: PairKernel<T>> {
    kernel: &'a K,
    at: HeadAt<'a, T>,
    prepared: &'a Prepared<T, K::Score>,
}

impl<T: Real, K: PairKernel<T>> HeadBack<'_, T, K> {
    /// Writes the gradients of queries, keys and values; returns those along points and bias.
    fn pull_back(
        &self,
        h: usize,
        kept: &Kept<T, K::Score>,
        [output, cotangent]: [Mat<T>; 2],
        [q, k, v]: [&mut [T]; 3],
    ) -> Along<T> {
        let (at, numbers) = (&self.at, self.at.numbers());
        let mut units = Units::of(at.values(), cotangent, self.log2_largest());
        // The values of the linear-time form's sums are divided already.
        units.values = units.values.max(self.prepared.unit);
        let values = divided(at.values(), units.values, numbers);
        let copies = (
            divided(output, units.values, numbers),
            divided(cotangent, units.cotangents, numbers),
        );
        let queries = at.arguments.queries;
        let given = Cotangent {
            statistics: &kept.statistics[h * queries..(h + 1) * queries],
            output: copy_or(&copies.0, output),
            cotangent: copy_or(&copies.1, cotangent),
        };
        let values = copy_or(&values, at.values());
        let part = match &kept.starts {
            Some(starts) if !starts[h].is_empty() => {
                let more = units.values - self.prepared.unit;
                let (kernel, prepared) = (self.kernel, self.prepared);
                linear_time::pull_back(kernel, at, prepared, values, (&starts[h], more), &given)
            }
            _ => self.pair_by_pair(values, &given),
        };
        fill_multiplied(&mut v[..part.values.len()], units.cotangents, |i| {
            part.values[i].as_f64()
        });
        let unit = units.product();
        let along_keys = self.pull_side(Side::Keys, at.keys(), &part, unit, k);
        let along_queries = self.pull_side(Side::Queries, at.queries(), &part, unit, q);
        let sum = |(q, k): (&Vec<T>, &Vec<T>)| {
            let mut sum = vec![T::zero(); q.len()];
            fill_multiplied(&mut sum, unit, |i| q[i].as_f64() + k[i].as_f64());
            sum
        };
        let points = along_queries.iter().zip(&along_keys).map(sum).collect();
        let along_bias = [&part.bias.0, &part.bias.1].map(|x| x.as_slice()).concat();
        let mut bias = vec![T::zero(); along_bias.len()];
        fill_multiplied(&mut bias, unit, |i| along_bias[i].as_f64());
        Along { points, bias }
    }

    /// The logarithm of the largest number that cotangents are multiplied with on their way, besides
    /// the values.
    fn log2_largest(&self) -> f64 {
        let of = |x: Mat<T>| bochner_numerics::scaling::log2_largest(x.data());
        let operands = self.kernel.log2_largest(&self.at).unwrap_or_else(|| {
            let copies = [&self.prepared.left, &self.prepared.right];
            let of = |x| log2_largest(ArrayView1::from(x));
            (copies.into_iter().flatten())
                .map(|x| of(x.as_slice()))
                .fold(0.0, f64::max)
        });
        operands.max(of(self.at.queries())).max(of(self.at.keys()))
    }

    fn pair_by_pair(&self, values: Mat<T>, given: &Cotangent<T>) -> HeadGradients<T> {
        let chunks = self.at.chunks();
        let head = self.prepared.head(self.kernel, &self.at, values);
        let packed = head.pack_for_backward();
        let head = head.with(&packed);
        let part = |i: usize| head.backward(chunks[i].clone(), given);
        let mut parts = parallel::map(chunks.len(), part).into_iter();
        let mut whole = parts.next().expect("there are queries");
        parts.for_each(|part| whole.join(part));
        whole
    }

    /// Writes the gradients of queries or keys, some rows at a time; returns what belongs to the points.
    fn pull_side(
        &self,
        side: Side,
        x: Mat<T>,
        part: &HeadGradients<T>,
        unit: i32,
        out: &mut [T],
    ) -> AlongPoints<T> {
        let (rows, width) = x.shape();
        let operand_width = self.kernel.operand_width(width);
        let (operand, exponents) = match side {
            Side::Queries => (&part.left, None),
            Side::Keys => (
                &part.right,
                self.prepared.exponents.as_ref().and(Some(&part.keys)),
            ),
        };
        let out = &mut out[..rows * width];
        let pieces = parallel::map_chunks(out, ROWS * width, |i, out| {
            let rows = i * ROWS..i * ROWS + out.len() / width;
            let given = Given {
                side,
                x: x.row_range(rows.clone()),
                operand: &operand[rows.start * operand_width..rows.end * operand_width],
                exponents: exponents.map(|all| &all[rows.clone()]),
                rows,
            };
            let out = Gradient {
                through_magnitude: self.through_magnitude(&given),
                out,
                unit,
            };
            (self.kernel).pull_back(&self.at, &self.prepared.score, &given, out)
        });
        let sum = |mut sum: AlongPoints<T>, piece: AlongPoints<T>| {
            let pairs = sum.iter_mut().flatten().zip(piece.iter().flatten());
            pairs.for_each(|(sum, &x)| *sum += x);
            sum
        };
        pieces.into_iter().reduce(sum).unwrap_or_default()
    }

    /// The gradients that flow through the magnitudes of keys, if there are any.
    fn through_magnitude(&self, given: &Given<T>) -> Option<Vec<f64>> {
        let (magnitude, exponents) = (self.at.arguments.settings.magnitude, given.exponents?);
        let p = magnitude.p()?;
        if exponents.iter().all(|&c| c == T::zero()) {
            return None;
        }
        let divisor = magnitude.divisor(self.at.width());
        let cotangents: Vec<f64> = exponents.iter().map(|c| c.as_f64() / divisor).collect();
        let data = given.x.data();
        Some(SquaredNorms::new(data, self.at.width(), p).pull_back(data, &cotangents))
    }
}

/// Rows that go all the way back at a time.
const ROWS: usize = 1024;

/// The sums over the heads that share points, in the order of the examples.
fn sum_along_points<T: Real>(
    mut all: PointsGradients<T>,
    parts: &[Along<T>],
) -> PointsGradients<T> {
    let (_, _, count, width) = all.w1.dim();
    let size = count * width;
    let arrays = [Some(&mut all.w1), all.w2.as_mut()];
    for (n, array) in arrays.into_iter().flatten().enumerate() {
        let sums = array.as_slice_mut().expect("row-major");
        // The sums of one example, or as many as there are heads.
        let distinct = sums.len() / size;
        parallel::for_each_chunk(sums, size, |i, sum| {
            // A head without kept keys has none.
            let parts = parts.iter().skip(i).step_by(distinct);
            for part in parts.filter_map(|part| part.points.get(n)) {
                let pairs = sum.iter_mut().zip(part);
                pairs.for_each(|(sum, x)| *sum = multiplied(sum.as_f64() + x.as_f64(), 0));
            }
        });
    }
    all
}

/// The sums over the heads that share a bias, in the order of the examples.
fn sum_along_bias<T: Real>(call: &Arguments<T>, parts: &[Along<T>]) -> Option<ArrayD<T>> {
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
            let (b, m) = (h / call.heads, h % call.heads);
            if slot == (b % examples) * heads + m % heads {
                let pairs = sum.iter_mut().zip(&part.bias);
                pairs.for_each(|(sum, x)| *sum = multiplied(sum.as_f64() + x.as_f64(), 0));
            }
        }
    });
    Some(all)
}
