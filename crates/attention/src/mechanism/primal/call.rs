//! The arguments of one call, checked and cut into heads.

use super::features::running_sums;
use super::{Primal, PrimalWeights};
use crate::Error;
use crate::mechanism::{Mechanism, Streams};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Buffers, Mat, Real, argument, parallel};
use ndarray::Array4;
use std::ops::Range;

/// Rows of a head that are projected at a time.
pub(super) const ROWS: usize = 256;

/// Queries, keys and the layer's input with the parameters.
pub(super) struct Call<'a, T> {
    pub(super) settings: &'a Primal,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) time: usize,
    pub(super) width: usize,
    pub(super) value_width: usize,
    /// The positions of each example that are not padding.
    pub(super) lengths: Vec<usize>,
    pub(super) causal: bool,
    /// Queries and keys, `[B, M, T, d]`, or their running sums.
    sides: [RowMajor<'a, T>; 2],
    /// The layer's input, `[B, M, T, d]`, for data-dependent weights.
    input: Option<RowMajor<'a, T>>,
    /// `we` and `wr`, `[M, n or d, s]`.
    weights: [&'a [T]; 2],
    /// `[M, s]`.
    pub(super) lambda: &'a [T],
    /// `[M, dv, 2 s]`.
    wc: &'a [T],
    pub(super) buffers: Buffers<T>,
}

impl<'a, T: Real> Call<'a, T> {
    pub(super) fn new(
        settings: &'a Primal,
        inputs: &'a Streams<'_, T>,
        flat: &'a [T],
    ) -> Result<Self, Error> {
        let mechanism: &dyn Mechanism<T> = settings;
        mechanism.validate()?;
        mechanism.card().admit(inputs)?;
        let (q, k) = (inputs.q(), inputs.k());
        let (batch, heads, time, width) = q.dim();
        argument::not_empty("q", q.shape())?;
        argument::shape("k", q.shape(), k.shape())?;
        inputs.mask.check([batch, heads, time, time])?;
        let input = match settings.weights {
            PrimalWeights::Data { .. } => Some(inputs.v()),
            PrimalWeights::Parameters => None,
        };
        let all = [
            ("q", Some(q)),
            ("k", Some(k)),
            ("the input of the heads", input),
        ];
        for (what, x) in all.into_iter().filter_map(|(what, x)| Some((what, x?))) {
            argument::shape(what, q.shape(), x.shape())?;
            inputs.check_range(what, x)?;
        }
        let specs = mechanism.parameters(inputs.size());
        let counts: Vec<usize> = specs.iter().map(|spec| spec.count()).collect();
        argument::shape("parameters", &[counts.iter().sum()], &[flat.len()])?;
        let (we, rest) = flat.split_at(counts[0]);
        let (wr, rest) = rest.split_at(counts[1]);
        let (lambda, wc) = rest.split_at(counts[2]);
        let buffers = Buffers::default();
        let mut call = Self {
            settings,
            batch,
            heads,
            time,
            width,
            value_width: settings.value_width.unwrap_or(width),
            lengths: (0..batch).map(|b| inputs.mask.key_limit(b, time)).collect(),
            causal: inputs.mask.is_causal(),
            sides: [q, k].map(|x| RowMajor::new(x, &buffers)),
            input: input.map(|x| RowMajor::new(x, &buffers)),
            weights: [we, wr],
            lambda,
            wc,
            buffers,
        };
        if call.causal {
            // The direction of a running mean is that of the sum.
            call.sides = call.sides.each_ref().map(|x| {
                let mut sums = call.buffers.empty(q.len());
                sums.extend_from_slice(slice(x));
                parallel::for_each_chunk(&mut sums, time * width, |h, sums| {
                    let kept = call.length(h) * width;
                    running_sums(sums[..kept].chunks_exact_mut(width), width);
                });
                RowMajor::Copied(sums, q.dim().into())
            });
        }
        Ok(call)
    }

    /// The number of heads of all examples.
    pub(super) fn all_heads(&self) -> usize {
        self.batch * self.heads
    }

    /// The positions of head `h` of all heads that are not padding.
    pub(super) fn length(&self, h: usize) -> usize {
        self.lengths[h / self.heads]
    }

    /// The positions of head `h` that are not padding, some at a time.
    pub(super) fn blocks(&self, h: usize) -> impl Iterator<Item = Range<usize>> {
        let length = self.length(h);
        let starts = (0..length).step_by(ROWS);
        starts.map(move |start| start..length.min(start + ROWS))
    }

    /// An array of all heads, `[B, M, T, width]`.
    pub(super) fn array(&self, values: Vec<T>, width: usize) -> Array4<T> {
        let shape = (self.batch, self.heads, self.time, width);
        Array4::from_shape_vec(shape, values).expect("one slab a head")
    }

    /// Rows of the queries or keys of head `h`.
    pub(super) fn rows(&self, side: usize, h: usize, rows: Range<usize>) -> &[T] {
        let start = h * self.time;
        let rows = (start + rows.start) * self.width..(start + rows.end) * self.width;
        &slice(&self.sides[side])[rows]
    }

    /// Returns the rows of the input that the sample of head `h` takes.
    pub(super) fn sample(&self, h: usize) -> impl Iterator<Item = usize> {
        let length = self.length(h);
        let rows = match self.settings.weights {
            PrimalWeights::Data { rows, .. } if length > 0 => rows,
            _ => 0,
        };
        (0..rows).map(move |r| r * (length - 1) / (rows - 1).max(1))
    }

    /// The sample of the input of head `h`, `[n, d]`: nothing for weights that are parameters or if all is
    /// padding.
    pub(super) fn sampled(&self, h: usize) -> Vec<T> {
        let Some(input) = &self.input else {
            return Vec::new();
        };
        let head = &slice(input)[h * self.time * self.width..];
        let rows = self.sample(h);
        rows.flat_map(|row| &head[row * self.width..][..self.width])
            .copied()
            .collect()
    }

    /// The weights of one side of head `h`, `[n or d, s]`.
    pub(super) fn weight(&self, side: usize, h: usize) -> &'a [T] {
        self.of_head(self.weights[side], h)
    }

    /// $\lambda$ of head `h`, `[s]`.
    pub(super) fn lambda_of(&self, h: usize) -> &'a [T] {
        self.of_head(self.lambda, h)
    }

    /// The part of `wc` that a side's scores of head `h` are multiplied with, `[dv, s]`.
    pub(super) fn combination(&self, side: usize, h: usize) -> Mat<'a, T> {
        let s = self.settings.rank;
        let wc = Mat::new(self.of_head(self.wc, h), self.value_width, 2 * s);
        wc.columns(side * s..(side + 1) * s)
    }

    fn of_head(&self, parameters: &'a [T], h: usize) -> &'a [T] {
        let count = parameters.len() / self.heads;
        &parameters[h % self.heads * count..][..count]
    }
}

pub(super) fn slice<'r, T: Real>(x: &'r RowMajor<'_, T>) -> &'r [T] {
    x.view().to_slice().expect("row-major")
}
