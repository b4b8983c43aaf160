//! The maps of a layer, without a tape.

use crate::engine::{RowMajor, write_row_major};
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Panels, Real, matmul_in, parallel};
use bochner_spectral::Size;
use ndarray::{ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis};

/// To queries, keys, values and the output, with packed weights.
#[derive(Clone, Debug)]
pub(super) struct Maps<T> {
    pub(super) maps: [Map<T>; 4],
    pub(super) heads: usize,
}

/// Queries, keys, values or what has been attended to, as the maps lay them out: `[B, T, M, w]`.
pub(super) struct Heads<T> {
    data: Buffer<T>,
    shape: [usize; 4],
}

impl<T: Real> Heads<T> {
    /// `[B, M, T, w]`.
    pub(super) fn view(&self) -> ArrayView4<'_, T> {
        let view = ArrayView4::from_shape(self.shape, &self.data);
        view.expect("made in this shape")
            .permuted_axes([0, 2, 1, 3])
    }

    /// The same, to be written to.
    pub(super) fn view_mut(&mut self) -> ArrayViewMut4<'_, T> {
        let view = ArrayViewMut4::from_shape(self.shape, &mut self.data);
        view.expect("made in this shape")
            .permuted_axes([0, 2, 1, 3])
    }
}

impl<T: Real> Maps<T> {
    /// The layer's width.
    pub(super) fn width(&self) -> usize {
        self.maps[3].bias.len()
    }

    /// That of one head.
    pub(super) fn size(&self) -> Size {
        let (heads, width) = (self.heads, self.width() / self.heads);
        Size { heads, width }
    }

    /// Room for all heads.
    pub(super) fn empty_heads(&self, batch: usize, time: usize, buffers: &Buffers<T>) -> Heads<T> {
        let Size { heads, width } = self.size();
        Heads {
            data: buffers.any(batch * time * heads * width),
            shape: [batch, time, heads, width],
        }
    }

    /// What map number `map` makes of `x`, `[B, T, Embed]`.
    pub(super) fn heads_of(&self, map: usize, x: ArrayView3<T>, buffers: &Buffers<T>) -> Heads<T> {
        let (batch, time, _) = x.dim();
        let mut heads = self.empty_heads(batch, time, buffers);
        let x = RowMajor::new(x.insert_axis(Axis(0)), buffers);
        let x = x.view().to_slice().expect("row-major");
        self.maps[map].apply(x, buffers, &mut heads.data);
        heads
    }

    /// What the last map makes of all heads.
    pub(super) fn join(&self, attended: &Heads<T>, buffers: &Buffers<T>, output: ArrayViewMut3<T>) {
        write_row_major(output, buffers, |output| {
            self.maps[3].apply(&attended.data, buffers, output);
        });
    }
}

/// $x W^\top + b$ with a packed weight.
#[derive(Clone, Debug)]
pub(super) struct Map<T> {
    weight: Panels<T>,
    bias: Vec<T>,
}

/// Rows that one task maps.
const ROWS: usize = 128;

impl<T: Real> Map<T> {
    pub(super) fn new(weight: &[T], bias: Vec<T>) -> Self {
        let weight = Mat::new(weight, bias.len(), weight.len() / bias.len());
        Self {
            weight: Panels::new(weight.t()),
            bias,
        }
    }

    fn apply(&self, x: &[T], buffers: &Buffers<T>, y: &mut [T]) {
        let (inputs, outputs) = self.weight.shape();
        parallel::for_each_chunk(y, ROWS * outputs, |i, y| {
            let rows = y.len() / outputs;
            y.chunks_exact_mut(outputs)
                .for_each(|row| row.copy_from_slice(&self.bias));
            let x = &x[i * ROWS * inputs..][..rows * inputs];
            let (x, y) = (Mat::new(x, rows, inputs), MatMut::new(y, rows, outputs));
            matmul_in(buffers, T::one(), x, &self.weight, T::one(), y);
        });
    }
}
