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
