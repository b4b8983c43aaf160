//! Linear maps with a bias.

use crate::operation::with_last;
use crate::operation::{BoxError, Operation, Slot, slices, slots};
use crate::rows::{LARGE, add, block_rows, sum_over};
use bochner_numerics::{
    ArgumentError, Buffers, Mat, MatMut, Panels, Real, argument, matmul, matmul_in, parallel,
};
use ndarray::ArrayViewD;
use std::iter::repeat;

/// $y = x W^\top + b$ for row-major `x` of `inputs` columns and `weight` of shape `[outputs, inputs]`.
///
/// `finish(i, piece)` then sees each block of `y`, which starts at element `i`, while it is still in the
/// cache.
///
/// ```
/// use bochner_ops::{affine, filled};
///
/// let (x, weight, bias) = ([1.0, 2.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 10.0, 0.0]);
/// let [y] = filled([3], |[y]| affine(&x, &weight, &bias, y, |_, _| ()));
/// assert_eq!(y, [1.0, 12.0, 3.0]);
/// ```
///
/// # Panics
/// If `weight` or `bias` is empty, or the lengths do not fit.
pub fn affine<T: Real>(
    x: &[T],
    weight: &[T],
    bias: &[T],
    y: Slot<'_, T>,
    finish: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let outputs = bias.len();
    let [rows, inputs] = sizes(x, weight, outputs);
    let x = Mat::new(x, rows, inputs);
    // Packed once for all blocks.
    let w = Panels::new(Mat::new(weight, outputs, inputs).t());
    y.by_blocks(rows, rows * inputs * outputs, |range, piece| {
        piece.write(|piece| {
            let piece = piece.copies_of(repeat(bias));
            let (start, target) = (range.start, MatMut::new(piece, range.len(), outputs));
            matmul(T::one(), x.row_range(range), &w, T::one(), target);
            finish(start * outputs, piece);
        });
    });
}

/// An [`affine`] map whose weight is packed once for many calls, and whose bias may be missing: for inference.
///
/// ```
/// use bochner_numerics::Buffers;
/// use bochner_ops::PackedAffine;
///
/// let map = PackedAffine::new(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 3, Some(&[0.0, 10.0, 0.0]));
/// let mut y = [0.0; 3];
/// map.apply(&[1.0, 2.0], &Buffers::default(), &mut y, |_| ());
/// assert_eq!(y, [1.0, 12.0, 3.0]);
/// ```
#[derive(Clone, Debug)]
pub struct PackedAffine<T> {
    weight: Panels<T>,
    bias: Option<Vec<T>>,
}

impl<T: Real> PackedAffine<T> {
    /// The map of a weight, `[outputs, inputs]`, and a bias, `[outputs]`.
    ///
    /// # Panics
    /// If the weight is empty, or the lengths do not fit.
    pub fn new(weight: &[T], outputs: usize, bias: Option<&[T]>) -> Self {
        let [_, inputs] = sizes(&[], weight, outputs);
        let fits = bias.is_none_or(|bias| bias.len() == outputs);
        assert!(fits, "a bias of another length than {outputs} outputs");
        Self {
            weight: Panels::new(Mat::new(weight, outputs, inputs).t()),
            bias: bias.map(<[T]>::to_vec),
        }
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.weight.shape().1
    }

    /// Writes the outputs for the rows of `x` to `y`, with the bits of [`affine`]; room for what has to be copied comes
    /// from the buffers. `finish` then sees each block of `y` while it is still in the cache.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn apply(
        &self,
        x: &[T],
        buffers: &Buffers<T>,
        y: &mut [T],
        finish: impl Fn(&mut [T]) + Send + Sync,
    ) {
        /// Rows that one task maps, at most.
        const MOST: usize = 128;
        let (inputs, outputs) = self.weight.shape();
        let rows = y.len() / outputs;
        let lengths = [rows * inputs, rows * outputs];
        assert_eq!([x.len(), y.len()], lengths, "rows of a map");
        let block = match rows * inputs * outputs < LARGE {
            true => rows.max(1),
            false => block_rows(rows).min(MOST),
        };
        let share = T::of(f64::from(u8::from(self.bias.is_some())));
        parallel::for_each_chunk(y, block * outputs, |i, y| {
            if let Some(bias) = &self.bias {
                y.chunks_exact_mut(outputs)
                    .for_each(|row| row.copy_from_slice(bias));
            }
            let rows = y.len() / outputs;
            let x = Mat::new(&x[i * block * inputs..][..rows * inputs], rows, inputs);
            let target = MatMut::new(&mut *y, rows, outputs);
            matmul_in(buffers, T::one(), x, &self.weight, share, target);
            finish(y);
        });
    }
}

/// The numbers of rows and inputs of a map.
///
/// # Panics
/// If `weight` or `outputs` is empty, or the lengths do not fit.
fn sizes<T>(x: &[T], weight: &[T], outputs: usize) -> [usize; 2] {
    assert!(
        outputs > 0 && !weight.is_empty() && weight.len().is_multiple_of(outputs),
        "a weight of {} numbers for {outputs} outputs: it takes one row of inputs for each output",
        weight.len()
    );
    let inputs = weight.len() / outputs;
    assert!(
        x.len().is_multiple_of(inputs),
        "x of {} numbers for a map of {inputs} inputs: it takes whole rows",
        x.len()
    );
    [x.len() / inputs, inputs]
}

/// The gradients of [`affine`] with respect to `x`, `weight` and a bias of `dy`'s width, as far as they are
/// wanted.
///
/// # Panics
/// If `weight` is empty or `outputs` is 0, or the lengths do not fit.
pub fn affine_vjp<T: Real>(
    x: &[T],
    weight: &[T],
    dy: &[T],
    outputs: usize,
    [dx, dweight, dbias]: [Option<Slot<'_, T>>; 3],
) {
    let [rows, inputs] = sizes(x, weight, outputs);
    assert!(
        dy.len() == rows * outputs,
        "a cotangent of {} numbers for {rows} rows of {outputs} outputs",
        dy.len()
    );
    let (w, x) = (Mat::new(weight, outputs, inputs), Mat::new(x, rows, inputs));
    let dy = Mat::new(dy, rows, outputs);
    if let Some(dx) = dx {
        dx.by_blocks(rows, rows * weight.len(), |range, piece| {
            piece.product(dy.row_range(range), w);
        });
    }
    if let Some(dbias) = dbias {
        let [sum] = sum_over(rows, rows * outputs, |range| {
            let mut sum = vec![T::zero(); outputs];
            add(&mut sum, dy.row_range(range).data());
            [sum]
        });
        dbias.put(sum);
    }
    if let Some(dweight) = dweight {
        weight_gradient(x, dy, dweight);
    }
}

/// The gradient of [`affine`] with respect to `weight`.
fn weight_gradient<T: Real>(x: Mat<T>, dy: Mat<T>, dweight: Slot<'_, T>) {
    /// From this number of outputs on, threads share the outputs, so that no partial sums have to be added
    /// up; below it, they share the rows.
    const WIDE: usize = 128;
    let ((rows, inputs), outputs) = (x.shape(), dy.shape().1);
    let work = rows * inputs * outputs;
    if outputs >= WIDE {
        return dweight.by_blocks(outputs, work, |range, piece| {
            piece.product(dy.columns(range).t(), x);
        });
    }
    let [sum] = sum_over(rows, work, |range| {
        let mut dw = vec![T::zero(); outputs * inputs];
        let (left, right) = (dy.row_range(range.clone()).t(), x.row_range(range));
        let target = MatMut::new(&mut dw, outputs, inputs);
        matmul(T::one(), left, right, T::zero(), target);
        [dw]
    });
    dweight.put(sum);
}

/// The shape of a map's output, from those of `x`, `weight` and `bias`.
///
/// # Errors
/// [`ArgumentError::Shape`] unless the last axis of `x` is the second of `weight`, and the first of `weight`
/// that of `bias`; `names` are what errors call the weight and the bias.
pub(crate) fn affine_shape(
    names: [&'static str; 2],
    x: &[usize],
    weight: &[usize],
    bias: &[usize],
) -> Result<Vec<usize>, ArgumentError> {
    let (inputs, outputs) = (x.last().copied(), bias.last().copied());
    let (inputs, outputs) = (inputs.unwrap_or(0), outputs.unwrap_or(0));
    argument::shape(names[1], &[outputs], bias)?;
    argument::shape(names[0], &[outputs, inputs], weight)?;
    Ok(with_last(x, outputs))
}

/// [`affine`] as an operation on `x`, `weight` and `bias`.
#[derive(Clone, Copy, Debug)]
pub struct Affine;

impl<T: Real> Operation<T> for Affine {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x, weight, bias] = crate::operation::given(inputs)?;
        Ok(vec![affine_shape(["weight", "bias"], x, weight, bias)?])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([x, weight, bias], [y]) = (slices(inputs), slots(outputs));
        affine(x, weight, bias, y, |_, _| ());
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([x, weight, bias], [dy]) = (slices(inputs), slices(cotangents));
        affine_vjp(x, weight, dy, bias.len(), slots(gradients));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filled;

    #[test]
    #[should_panic(expected = "x of 5 numbers for a map of 2 inputs")]
    fn rows_that_are_cut_off_are_refused() {
        filled([6], |[y]| {
            affine(&[1.0; 5], &[1.0; 6], &[0.0; 3], y, |_, _| ())
        });
    }

    #[test]
    #[should_panic(expected = "a weight of 0 numbers for 3 outputs")]
    fn a_map_without_inputs_is_refused() {
        filled([6], |[y]| affine(&[1.0; 4], &[], &[0.0; 3], y, |_, _| ()));
    }

    #[test]
    #[should_panic(expected = "a cotangent of 5 numbers for 2 rows of 3 outputs")]
    fn a_cotangent_that_is_too_short_is_refused() {
        let none = [None, None, None];
        affine_vjp(&[1.0; 4], &[1.0; 6], &[1.0; 5], 3, none);
    }

    /// Also where the rows are several blocks.
    #[test]
    fn what_finishes_a_block_is_told_where_it_starts() {
        for rows in [1, 700] {
            let x: Vec<f64> = (0..2 * rows).map(|i| i as f64).collect();
            let [y] = filled([3 * rows], |[y]| {
                affine(&x, &[0.0; 6], &[0.0; 3], y, |start, piece| {
                    let places = piece.iter_mut().zip(start..);
                    places.for_each(|(y, place)| *y = place as f64);
                });
            });
            assert!(y.into_iter().eq((0..3 * rows).map(|i| i as f64)));
        }
    }

    /// One block and several, the last of them cut; with a bias and without.
    #[test]
    fn a_packed_map_gives_the_bits_of_the_map() {
        for (rows, inputs, outputs) in [(1, 3, 2), (7, 5, 33), (300, 65, 70)] {
            let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32).sin()).collect() };
            let (x, weight) = (numbers(rows * inputs), numbers(outputs * inputs));
            for bias in [numbers(outputs), vec![0.0; outputs]] {
                let [want] = filled([rows * outputs], |[y]| {
                    affine(&x, &weight, &bias, y, |_, y| {
                        y.iter_mut().for_each(|y| *y *= 2.0);
                    });
                });
                let given = Some(&bias[..]).filter(|bias| bias.iter().any(|&b| b != 0.0));
                let map = PackedAffine::new(&weight, outputs, given);
                let mut got = vec![f32::NAN; rows * outputs];
                map.apply(&x, &Buffers::default(), &mut got, |y| {
                    y.iter_mut().for_each(|y| *y *= 2.0);
                });
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    #[should_panic(expected = "rows of a map")]
    fn a_packed_map_takes_whole_rows() {
        let map = PackedAffine::new(&[1.0; 6], 3, None);
        map.apply(&[1.0; 5], &Buffers::default(), &mut [0.0; 6], |_| ());
    }

    /// Narrow maps, whose rows are cut, and wide ones, whose outputs are; one part and several.
    #[test]
    fn gradients_of_a_map_are_those_of_the_definition() {
        for (rows, inputs, outputs) in [(3, 2, 4), (700, 3, 5), (700, 3, 131), (9, 2, 260)] {
            let numbers = |n: usize, step: usize| -> Vec<f64> {
                (0..n).map(|i| (i * step % 13) as f64 - 6.0).collect()
            };
            let (x, dy) = (numbers(rows * inputs, 5), numbers(rows * outputs, 7));
            let weight = numbers(outputs * inputs, 3);
            let lengths = [x.len(), weight.len(), outputs];
            let [dx, dw, db] = filled(lengths, |all| {
                affine_vjp(&x, &weight, &dy, outputs, all.map(Some));
            });
            // Small integers: every order of summation gives the same.
            let sum = |n, term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
            for (i, dx) in dx.chunks(inputs).enumerate() {
                for (j, &dx) in dx.iter().enumerate() {
                    let term = |o| dy[i * outputs + o] * weight[o * inputs + j];
                    assert_eq!(dx, sum(outputs, &term));
                }
            }
            for (o, dw) in dw.chunks(inputs).enumerate() {
                assert_eq!(db[o], sum(rows, &|i| dy[i * outputs + o]));
                for (j, &dw) in dw.iter().enumerate() {
                    let term = |i| dy[i * outputs + o] * x[i * inputs + j];
                    assert_eq!(dw, sum(rows, &term));
                }
            }
        }
    }
}
