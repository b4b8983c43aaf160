//! One call of attention: its arguments, checked and cut into heads.

mod decode;
mod linear_kernel;
mod linear_time;
mod prepare;
mod pull_back;
mod row_major;
pub(crate) mod units;

pub(crate) use decode::Memory;
pub(crate) use prepare::Prepared;
pub(crate) use row_major::{RowMajor, write_row_major};

use crate::engine::{Head, Packed, PairDropout, Rows, blocks};
use crate::error::same_shape;
use crate::similarity::PointsOfHeads;
use crate::{Blocks, Error, Form, Magnitude, Points, Settings, Similarity, Workspace};
use bochner_numerics::scaling::{largest, log2_range, over_power};
use bochner_numerics::{DropoutMask, Mat, Real, parallel};
use ndarray::{Array4, ArrayView4, Axis};
use std::ops::Range;
use units::{Units, log2_largest};

/// One call's arguments, checked and contiguous.
pub(crate) struct Call<'a, 'p, T> {
    batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    width: usize,
    q: RowMajor<'a, T>,
    k: RowMajor<'a, T>,
    v: RowMajor<'a, T>,
    settings: &'a Settings<'p, T>,
    pub(crate) blocks: Blocks,
    pub(crate) workspace: &'a Workspace<T>,
}

/// What a backward pass has in common with its forward pass, beside the numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    /// B, M, Tq, Tk, d, dv, and the number of spectral points.
    shape: [usize; 7],
    similarity: &'static str,
    magnitude: Magnitude,
    dropout: Option<DropoutMask>,
    is_causal: bool,
    has_matrix: bool,
}

impl<'a, 'p, T: Real> Call<'a, 'p, T> {
    pub(crate) fn new(
        q: ArrayView4<'a, T>,
        k: ArrayView4<'a, T>,
        v: ArrayView4<'a, T>,
        settings: &'a Settings<'p, T>,
        workspace: &'a Workspace<T>,
    ) -> Result<Self, Error> {
        let (batch, heads, queries, width) = q.dim();
        let keys = k.len_of(Axis(2));
        same_shape("k", &[batch, heads, keys, width], k.shape())?;
        same_shape("v", &[batch, heads, keys, v.len_of(Axis(3))], v.shape())?;
        for (what, array) in [("k", &k), ("v", &v), ("q", &q)] {
            let axes = ["batch", "heads", "time", "width"];
            if let Some(empty) = array.shape().iter().position(|&length| length == 0) {
                return Err(Error::Empty {
                    what,
                    axis: axes[empty],
                });
            }
        }
        settings.mask.validate(batch, queries, keys)?;
        settings.validate(batch, heads, width)?;
        let blocks = settings.blocks(queries)?;
        let [q, k, v] = [q, k, v].map(|array| RowMajor::new(array, &workspace.numbers));
        Ok(Self {
            batch,
            heads,
            queries,
            keys,
            width,
            q,
            k,
            v,
            settings,
            blocks,
            workspace,
        })
    }

    /// Where a forward pass of this call comes from.
    pub(crate) fn origin(&self) -> Origin {
        let Settings {
            similarity,
            magnitude,
            dropout,
            mask,
            ..
        } = self.settings;
        let (similarity, points) = match similarity {
            Similarity::Rbf => ("rbf", 0),
            Similarity::Expsin { .. } => ("expsin", 0),
            Similarity::Linear => ("linear", 0),
            Similarity::Squared { points, .. } => match points {
                Points::Stationary { .. } => ("stationary", points.count()),
                Points::Nonstationary { .. } => ("non-stationary", points.count()),
            },
        };
        let (queries, keys, widths) = (self.queries, self.keys, [self.width, self.value_width()]);
        Origin {
            shape: [
                self.batch, self.heads, queries, keys, widths[0], widths[1], points,
            ],
            similarity,
            magnitude: *magnitude,
            dropout: *dropout,
            is_causal: mask.is_causal(),
            has_matrix: mask.has_matrix(),
        }
    }

    /// Whether a forward pass can have been one of this call.
    pub(crate) fn is_that_of(&self, origin: Origin, heads: &[Prepared<T>]) -> bool {
        let mut kept = (0..heads.len()).map(|h| self.kept(h));
        self.origin() == origin && heads.iter().all(|head| kept.next() == Some(head.kept))
    }

    pub(crate) fn value_width(&self) -> usize {
        self.v.view().len_of(Axis(3))
    }

    /// The form that is taken.
    pub(crate) fn form(&self) -> Result<Form, Error> {
        (self.settings).form_for(self.queries, self.keys, self.value_width())
    }

    pub(crate) fn shape(&self, rows: usize, width: usize) -> [usize; 4] {
        [self.batch, self.heads, rows, width]
    }

    pub(crate) fn array(&self, rows: usize, width: usize, data: Vec<T>) -> Array4<T> {
        Array4::from_shape_vec(self.shape(rows, width), data).expect("one slab a head")
    }

    /// The number of heads of all examples.
    pub(crate) fn all_heads(&self) -> usize {
        self.batch * self.heads
    }

    /// The number of keys of head `h` that are not padding.
    pub(crate) fn kept(&self, h: usize) -> usize {
        self.settings.mask.key_limit(h / self.heads, self.keys)
    }

    /// Queries of one task: whole heads if there are many, halves and quarters of a few long ones. At
    /// most sixteen accumulators of the backward pass exist beyond one a head, whatever the machine.
    pub(crate) fn chunk(&self) -> usize {
        let parts = 16usize.div_ceil(self.all_heads());
        self.queries
            .div_ceil(parts)
            .next_multiple_of(self.blocks.queries)
    }

    /// The units of a backward pass.
    pub(crate) fn units(&self, prepared: &[Prepared<T>], cotangent: ArrayView4<T>) -> Units {
        let inputs = [self.q.view(), self.k.view()].map(log2_largest);
        let operands = match &self.settings.similarity {
            // Features are sums of one or two cosines.
            Similarity::Squared { points, .. } => points.log2_largest().max(1.0),
            _ => prepared
                .iter()
                .fold(0.0, |most, head| f64::max(most, head.log2_largest())),
        };
        let others = inputs.into_iter().fold(operands, f64::max);
        Units::of(self.v.view(), cotangent, others)
    }

    /// The largest finite number of the values that are not padding, without its sign.
    pub(crate) fn largest_value(&self) -> T {
        let heads = self.all_heads();
        let mut of_heads = self.workspace.numbers.empty(heads);
        let of_head = |h| largest(self.kept_values(h).data());
        parallel::map_into(heads, of_head, &mut of_heads);
        largest(&of_heads)
    }

    /// The power of two by which values are divided so that no sum over them overflows: a mean is in
    /// range where its terms are.
    pub(crate) fn unit_of_values(&self, largest: T, keys: usize) -> i32 {
        // Of a squared kernel in linear time a term is as large as twice a product of features.
        let terms = keys as f64 * (4 * self.operand_width()).pow(2) as f64;
        let terms = terms * self.settings.dropout.map_or(1.0, |mask| mask.kept_factor());
        let excess = largest.as_f64().log2() + terms.log2() - log2_range::<T>();
        excess.ceil().max(0.0) as i32
    }

    /// Divides the values by a power of two.
    pub(crate) fn divide_values(&mut self, power: i32) {
        if power != 0 {
            let shape = self.shape(self.keys, self.value_width());
            let mut values = self.workspace.numbers.any(shape.iter().product());
            for (out, &v) in values.iter_mut().zip(self.v.view()) {
                *out = over_power(v, power);
            }
            self.v = RowMajor::Copied(values, shape);
        }
    }

    /// `f(head, block)` for every block of `size` queries of every head, in parallel; the results
    /// come in order.
    pub(crate) fn by_blocks<R: Send>(
        &self,
        size: usize,
        f: impl Fn(usize, Range<usize>) -> R + Send + Sync,
    ) -> impl Iterator<Item = (usize, Range<usize>, R)> {
        let pieces: Vec<_> = blocks(0..self.queries, size).collect();
        let task = move |task: usize| (task / pieces.len(), pieces[task % pieces.len()].clone());
        let tasks = self.all_heads() * self.queries.div_ceil(size);
        let results = parallel::map(tasks, |i| {
            let (h, block) = task(i);
            f(h, block)
        });
        results.into_iter().enumerate().map(move |(i, result)| {
            let (h, block) = task(i);
            (h, block, result)
        })
    }

    /// A dropout mask on the pairs of a head.
    fn pairs(&self, h: usize, mask: DropoutMask) -> PairDropout {
        PairDropout {
            mask,
            base: (h * self.queries * self.keys) as u64,
            keys: self.keys,
        }
    }

    fn kept_keys(&self, h: usize) -> Mat<'_, T> {
        slab(self.k.view(), h).row_range(0..self.kept(h))
    }

    fn kept_values(&self, h: usize) -> Mat<'_, T> {
        slab(self.v.view(), h).row_range(0..self.kept(h))
    }

    /// What the mask says of the rows of a head.
    fn mask_rows(&self, h: usize) -> Rows<'_> {
        Rows {
            mask: self.settings.mask,
            example: h / self.heads,
            queries: self.queries,
            keys: self.keys,
        }
    }

    pub(crate) fn head<'b>(&'b self, h: usize, state: &'b Prepared<T>) -> Head<'b, T> {
        let (left, right) = self.factors(h, &state.operands);
        Head {
            left,
            right,
            values: self.kept_values(h),
            finite: state.finite,
            score: &state.score,
            rows: self.mask_rows(h),
            dropout: self.settings.dropout.map(|mask| self.pairs(h, mask)),
            blocks: self.blocks,
            packed: Packed::NONE,
            workspace: self.workspace,
        }
    }
}

/// Head `h` of a contiguous `[B, M, T, w]` array as a matrix.
pub(crate) fn slab<T: Real>(x: ArrayView4<'_, T>, h: usize) -> Mat<'_, T> {
    let (_, _, rows, width) = x.dim();
    let data = x.to_slice().expect("contiguous");
    Mat::new(&data[h * rows * width..(h + 1) * rows * width], rows, width)
}
