//! The arguments of one call, checked and cut into heads.

use super::features::running_sums;
use super::{Primal, PrimalWeights};
use crate::Error;
use crate::mechanism::{Mechanism, Streams};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Buffers, Real, argument, parallel};
use std::ops::Range;

/// Queries, keys and the layer's input with the parameters.
pub(super) struct Arguments<'a, T> {
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
    pub(super) weights: [&'a [T]; 2],
    /// `[M, s]`.
    pub(super) lambda: &'a [T],
    /// `[M, dv, 2 s]`.
    pub(super) wc: &'a [T],
    pub(super) buffers: Buffers<T>,
}

impl<'a, T: Real> Arguments<'a, T> {
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
        let buffers = Buffers::default();
        let input = match settings.weights {
            PrimalWeights::Data { .. } => Some(inputs.get::<3>()?[2]),
            PrimalWeights::Parameters => None,
        };
        if let Some(x) = &input {
            argument::shape("the input of the heads", q.shape(), x.shape())?;
        }
        let specs = mechanism.parameters(inputs.size());
        let counts: Vec<usize> = specs.iter().map(|spec| spec.count()).collect();
        argument::shape("parameters", &[counts.iter().sum()], &[flat.len()])?;
        let (we, rest) = flat.split_at(counts[0]);
        let (wr, rest) = rest.split_at(counts[1]);
        let (lambda, wc) = rest.split_at(counts[2]);
        let lengths = (0..batch).map(|b| inputs.mask.key_limit(b, time)).collect();
        let mut call = Self {
            settings,
            batch,
            heads,
            time,
            width,
            value_width: settings.value_width.unwrap_or(width),
            lengths,
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
            let sums = call.sides.each_ref().map(|x| {
                let mut sums = call.buffers.filled(q.len(), T::zero());
                parallel::for_each_chunk(&mut sums, time * width, |h, sums| {
                    let kept = call.length(h) * width;
                    let rows = slice(x)[h * time * width..].chunks_exact(width);
                    running_sums(rows, sums[..kept].chunks_exact_mut(width));
                });
                sums
            });
            call.sides = sums.map(|sums| RowMajor::Copied(sums, q.dim().into()));
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

    /// Rows of the queries or keys of head `h`.
    pub(super) fn rows(&self, side: usize, h: usize, rows: Range<usize>) -> &[T] {
        let start = h * self.time;
        &slice(&self.sides[side])
            [(start + rows.start) * self.width..(start + rows.end) * self.width]
    }

    /// Returns the rows of the input that the sample of head `h` takes.
    pub(super) fn sample(&self, h: usize, rows: usize) -> impl Iterator<Item = usize> {
        let last = self.length(h).saturating_sub(1);
        (0..rows).map(move |r| r * last / (rows - 1).max(1))
    }

    /// The sample of the input of head `h`, `[n, d]`: nothing for weights that are parameters or if all is
    /// padding.
    pub(super) fn sampled(&self, h: usize) -> Vec<T> {
        let (Some(input), PrimalWeights::Data { rows, .. }) = (&self.input, self.settings.weights)
        else {
            return Vec::new();
        };
        let head = &slice(input)[h * self.time * self.width..];
        let rows = if self.length(h) == 0 { 0 } else { rows };
        let sample = self.sample(h, rows);
        let sample = sample.flat_map(|row| &head[row * self.width..][..self.width]);
        sample.copied().collect()
    }

    pub(super) fn is_data_dependent(&self) -> bool {
        self.input.is_some()
    }

    /// The weights of one side and one head, `[n or d, s]`.
    pub(super) fn weight(&self, side: usize, head: usize) -> &'a [T] {
        let count = self.weights[side].len() / self.heads;
        &self.weights[side][head * count..][..count]
    }
}

pub(super) fn slice<'r, T: Real>(x: &'r RowMajor<'_, T>) -> &'r [T] {
    x.view().to_slice().expect("row-major")
}
