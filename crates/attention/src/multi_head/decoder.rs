//! A layer that decodes: its parameters copied and packed, no tape.

use super::operation::{join_heads, split_heads};
use crate::Error;
use crate::decoder::Decoder;
use crate::error::same_shape;
use bochner_numerics::{Mat, MatMut, Panels, Real, matmul, parallel};
use ndarray::{Array3, ArrayView3};

/// A [`MultiHead`](super::MultiHead) layer as it stands, decoding sequences position by position.
///
/// Made by [`MultiHead::decoder`](super::MultiHead::decoder); row by row it gives what the layer
/// gives of the whole sequence under a causal mask (see [`Decoder`] for what a position costs, and
/// how exact it is), and nothing of it is on a tape.
#[derive(Clone, Debug)]
pub struct MultiHeadDecoder<T> {
    /// To queries, keys, values and the output.
    pub(super) maps: [Map<T>; 4],
    pub(super) heads: usize,
    pub(super) decoder: Decoder<T>,
}

impl<T: Real> MultiHeadDecoder<T> {
    /// The layer's output at the next positions.
    ///
    /// # Shapes
    /// `x: [B, n, Embed]` to the same.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] or [`Error::Empty`]; nothing is remembered then.
    pub fn step(&mut self, x: ArrayView3<T>) -> Result<Array3<T>, Error> {
        let counts = vec![x.dim().1; self.lengths().len()];
        self.step_with_counts(x, &counts)
    }

    /// The same where of the next positions only the first `counts[b]` belong to example `b`: the
    /// others are not remembered, and what comes out of them means nothing.
    ///
    /// # Errors
    /// As [`MultiHeadDecoder::step`]; [`Error::Mask`] if a count is larger than the number of
    /// positions or there is not one an example.
    pub fn step_with_counts(
        &mut self,
        x: ArrayView3<T>,
        counts: &[usize],
    ) -> Result<Array3<T>, Error> {
        let (batch, positions, _) = x.dim();
        let shape = [batch, positions, self.maps[3].bias.len()];
        same_shape("the input", &shape, x.shape())?;
        let x = x.as_standard_layout();
        let x = x.as_slice().expect("row-major");
        let [q, k, v] = [0, 1, 2].map(|map| split_heads(&self.maps[map].of(x), &shape, self.heads));
        let output = (self.decoder).step_with_counts(q.view(), k.view(), v.view(), counts)?;
        let output = self.maps[3].of(&join_heads(output.view()));
        Ok(Array3::from_shape_vec(shape, output).expect("a row a position"))
    }

    /// The number of positions of each sequence, `[B]`.
    pub fn lengths(&self) -> &[usize] {
        self.decoder.lengths()
    }

    /// Forgets all positions.
    pub fn reset(&mut self) {
        self.decoder.reset();
    }

    /// Forgets all positions but the first `length` of each sequence.
    ///
    /// # Errors
    /// As [`Decoder::truncate`].
    pub fn truncate(&mut self, length: usize) -> Result<(), Error> {
        self.decoder.truncate(length)
    }

    /// Sequence `b` becomes what `indices[b]` was: for beam search.
    ///
    /// # Errors
    /// As [`Decoder::reorder`].
    pub fn reorder(&mut self, indices: &[usize]) -> Result<(), Error> {
        self.decoder.reorder(indices)
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

    fn of(&self, x: &[T]) -> Vec<T> {
        let (inputs, outputs) = self.weight.shape();
        let mut y = self.bias.repeat(x.len() / inputs);
        parallel::for_each_chunk(&mut y, ROWS * outputs, |i, y| {
            let rows = y.len() / outputs;
            let x = &x[i * ROWS * inputs..][..rows * inputs];
            let (x, y) = (Mat::new(x, rows, inputs), MatMut::new(y, rows, outputs));
            matmul(T::one(), x, &self.weight, T::one(), y);
        });
        y
    }
}
