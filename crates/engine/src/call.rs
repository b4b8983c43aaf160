//! The arguments of one call, checked, in row-major order, and cut into heads.

use crate::bias::HeadBias;
use crate::kernel::{HeadRows, Side};
use crate::mask::{HeadMask, Pattern};
use crate::paths::Paths;
use crate::range;
use crate::workspace::Workspace;
use crate::{Blocks, Error, Form, Mask, Settings, Shape};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{
    ArgumentError, Buffer, Buffers, DropoutMask, Mat, Real, argument, parallel,
};
use ndarray::{Array4, ArrayView4, Axis};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Queries, keys and values with their settings.
pub(crate) struct Call<'a, T> {
    pub(crate) shape: Shape,
    q: RowMajor<'a, T>,
    k: RowMajor<'a, T>,
    v: RowMajor<'a, T>,
    pub(crate) settings: &'a Settings<T>,
    /// The patterns of the mask and of the bias.
    patterns: Vec<Arc<Pattern>>,
    pub(crate) blocks: Blocks,
    pub(crate) workspace: &'a Workspace<T>,
    /// The positions that each query of a decoder's call sees, where that is not all before it.
    pub(crate) paths: Option<&'a Paths>,
    /// The first row, over all heads, whose weights are not finite.
    fault: AtomicUsize,
}

impl<'a, T: Real> Call<'a, T> {
    pub(crate) fn new(
        [q, k, v]: [ArrayView4<'a, T>; 3],
        settings: &'a Settings<T>,
        workspace: &'a Workspace<T>,
    ) -> Result<Self, Error> {
        let mut call = Self::for_decoder([q, k, v], settings, workspace)?;
        let shape = call.shape;
        let sizes = [shape.batch, shape.heads, shape.queries, shape.keys];
        settings.mask.check(sizes)?;
        call.patterns = settings.mask.patterns(shape.queries, shape.keys);
        if let Some(bias) = &settings.bias {
            bias.check(sizes)?;
            call.patterns.extend(bias.pattern().cloned());
        }
        Ok(call)
    }

    /// Returns the call of a decoder, whose mask follows from positions.
    pub(crate) fn for_decoder(
        [q, k, v]: [ArrayView4<'a, T>; 3],
        settings: &'a Settings<T>,
        workspace: &'a Workspace<T>,
    ) -> Result<Self, Error> {
        let (batch, heads, queries, width) = q.dim();
        let (keys, value_width) = (k.len_of(Axis(2)), v.len_of(Axis(3)));
        let kv_heads = shared_heads(k.len_of(Axis(1)), heads)?;
        argument::shape("k", &[batch, kv_heads, keys, width], k.shape())?;
        argument::shape("v", &[batch, kv_heads, keys, value_width], v.shape())?;
        for (what, array) in [("k", &k), ("v", &v), ("q", &q)] {
            argument::not_empty(what, array.shape())?;
        }
        let shape = Shape {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            width,
            value_width,
        };
        settings.check(&shape)?;
        let [q, k, v] = [q, k, v].map(|array| RowMajor::new(array, &workspace.numbers));
        Ok(Self {
            shape,
            q,
            k,
            v,
            settings,
            patterns: Vec::new(),
            blocks: settings.blocks(queries)?,
            workspace,
            paths: None,
            fault: AtomicUsize::new(usize::MAX),
        })
    }

    /// Returns an array of keys or values, given one part for each head of queries: those of heads that share
    /// keys are summed up, in order.
    pub(crate) fn kv_array(&self, width: usize, data: Vec<T>) -> Array4<T> {
        let shape = self.shape;
        over_readers(data, [shape.batch, shape.kv_heads, shape.keys, width])
    }

    pub(crate) fn query_array(&self, width: usize, data: Vec<T>) -> Array4<T> {
        let shape = [
            self.shape.batch,
            self.shape.heads,
            self.shape.queries,
            width,
        ];
        Array4::from_shape_vec(shape, data).expect("one slab a head")
    }

    /// Checks that the form which is asked for exists.
    pub(crate) fn check_form(&self) -> Result<(), Error> {
        let shape = self.shape;
        let widths = [shape.width, shape.value_width];
        let form = self.settings.form_for(shape.queries, shape.keys, widths);
        form.map(drop)
    }

    /// The number of heads of all examples.
    pub(crate) fn all_heads(&self) -> usize {
        self.shape.batch * self.shape.heads
    }

    /// Head `h` of all heads of all examples.
    pub(crate) fn at(&self, h: usize) -> HeadAt<'_, T> {
        HeadAt { call: self, h }
    }

    /// Returns the queries of one task of the forward pass: whole heads if there are many, halves and quarters of a few
    /// long ones. No output depends on it.
    pub(crate) fn chunk(&self) -> usize {
        let parts = 16usize.div_ceil(self.all_heads());
        let chunk = self.shape.queries.div_ceil(parts);
        chunk.next_multiple_of(self.blocks.queries)
    }

    /// Notes that the weights of a row are not finite.
    pub(crate) fn note_fault(&self, h: usize, row: usize) {
        self.fault
            .fetch_min(h * self.shape.queries + row, Ordering::Relaxed);
    }

    /// The head and the row that were noted, the first ones.
    pub(crate) fn fault(&self) -> Option<(usize, usize)> {
        let (fault, queries) = (self.fault.load(Ordering::Relaxed), self.shape.queries);
        (fault != usize::MAX).then(|| (fault / queries, fault % queries))
    }
}

/// One head of one example.
#[derive(Clone, Copy)]
pub(crate) struct HeadAt<'a, T> {
    pub(crate) call: &'a Call<'a, T>,
    /// The index of the head among all heads of all examples.
    pub(crate) h: usize,
}

/// Queries, keys and values of one head, without padding, with zeros in place of what no pair needs.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a, T> {
    pub(crate) q: Mat<'a, T>,
    pub(crate) k: Mat<'a, T>,
    pub(crate) v: Mat<'a, T>,
}

/// Copies of a head's arrays in which hidden rows are zero; `None` where the arrays themselves will do.
pub(crate) struct Admitted<T>([Option<Buffer<T>>; 3]);

impl<T: Real> Admitted<T> {
    pub(crate) fn inputs<'b>(&'b self, at: &HeadAt<'b, T>) -> Inputs<'b, T> {
        let ([q, k, v], [keys, values]) = (&self.0, at.keys_and_values());
        Inputs {
            q: copy_or(q, at.queries()),
            k: copy_or(k, keys),
            v: copy_or(v, values),
        }
    }
}

/// Returns a copy as a matrix, or the matrix itself if there is no copy.
pub(crate) fn copy_or<'a, T: Real>(copy: &'a Option<Buffer<T>>, x: Mat<'a, T>) -> Mat<'a, T> {
    let (rows, width) = x.shape();
    copy.as_ref().map_or(x, |copy| Mat::new(copy, rows, width))
}

impl<'a, T: Real> HeadAt<'a, T> {
    pub(crate) fn example(&self) -> usize {
        self.h / self.call.shape.heads
    }

    pub(crate) fn head(&self) -> usize {
        self.h % self.call.shape.heads
    }

    /// The index of the head's keys among all heads of keys of all examples.
    fn of_keys(&self) -> usize {
        self.h / (self.call.shape.heads / self.call.shape.kv_heads)
    }

    pub(crate) fn queries(&self) -> Mat<'a, T> {
        slab(self.call.q.view(), self.h)
    }

    /// The keys and the values that are not padding.
    fn keys_and_values(&self) -> [Mat<'a, T>; 2] {
        let (call, kept) = (self.call, self.kept());
        [&call.k, &call.v].map(|x| slab(x.view(), self.of_keys()).row_range(0..kept))
    }

    /// Checks that what pairs need is in range, and hides the rest.
    pub(crate) fn admit(&self) -> Result<Admitted<T>, Error> {
        let (rows, queries) = (self.rows(), self.call.shape.queries);
        let (numbers, [keys, values]) = (self.numbers(), self.keys_and_values());
        let sees = || (0..queries).map(|i| rows.keeps_any(i)).collect();
        let seen = || rows.seen_keys(self.kept());
        Ok(Admitted([
            range::admit("q", self.place("q"), self.queries(), sees, numbers)?,
            range::admit("k", self.place("k"), keys, seen, numbers)?,
            range::admit("v", self.place("v"), values, seen, numbers)?,
        ]))
    }

    /// The example and the head of an array that errors name.
    fn place(&self, array: &str) -> [usize; 2] {
        let head = match array {
            "k" | "v" => self.of_keys() % self.call.shape.kv_heads,
            _ => self.head(),
        };
        [self.example(), head]
    }

    /// Returns the positions of a sequence that attends to itself, or the next ones of a decoder, without padding: the
    /// queries, if these attend, and keys and values. Without causality all queries attend.
    pub(crate) fn sequence(&self, attends: bool) -> Result<Inputs<'a, T>, Error> {
        let ([k, v], numbers) = (self.keys_and_values(), self.numbers());
        let queries = match (attends, self.call.settings.mask.is_causal()) {
            (false, _) => 0,
            (true, true) => k.shape().0,
            (true, false) => self.call.shape.queries,
        };
        let q = self.queries().row_range(0..queries);
        for (name, x) in [("q", q), ("k", k), ("v", v)] {
            let rows = x.shape().0;
            range::admit(name, self.place(name), x, || vec![true; rows], numbers)?;
        }
        Ok(Inputs { q, k, v })
    }

    /// The error of a scan that left a number of its output unwritten.
    pub(crate) fn scan_error(&self, position: usize, column: usize) -> Error {
        Error::Scan {
            example: self.example(),
            head: self.head(),
            position,
            column,
        }
    }

    /// Checks that the cotangents of rows that see a key are in range, and hides the others.
    pub(crate) fn admit_cotangent(&self, cotangent: Mat<T>) -> Result<Option<Buffer<T>>, Error> {
        let rows = self.rows();
        let sees = || {
            (0..cotangent.shape().0)
                .map(|i| rows.keeps_any(i))
                .collect()
        };
        let (name, numbers) = ("cotangent", self.numbers());
        range::admit(name, self.place(name), cotangent, sees, numbers)
    }

    /// Some rows of a side, as kernels are given them.
    pub(crate) fn rows_of<'b>(&self, side: Side, x: Mat<'b, T>) -> HeadRows<'b, T> {
        HeadRows {
            example: self.example(),
            head: self.head(),
            side,
            x,
        }
    }

    /// The form of the head: by its own lengths, so that it does not depend on how far they are padded.
    pub(crate) fn form(&self) -> Form {
        let (shape, queries) = (self.call.shape, self.rows().counting());
        let widths = [shape.width, shape.value_width];
        let form = self.call.settings.form_for(queries, self.kept(), widths);
        form.expect("checked with the settings")
    }

    /// The number of keys that are not padding.
    pub(crate) fn kept(&self) -> usize {
        self.call
            .settings
            .mask
            .key_limit(self.example(), self.call.shape.keys)
    }

    /// Returns the queries of each task of the backward pass, whose gradients of keys and values are summed up: a
    /// sixteenth of a head if an example has one, whole heads if it has sixteen.
    ///
    /// These sums must depend neither on the other examples nor on padding: the heads of one example count, and
    /// padding is cut by itself.
    pub(crate) fn chunks(&self) -> Vec<Range<usize>> {
        let Shape { queries, heads, .. } = self.call.shape;
        let block = self.call.blocks.queries;
        let own = self.rows().counting();
        let size = |queries: usize| {
            let tasks = 16usize.div_ceil(heads);
            queries.div_ceil(tasks).next_multiple_of(block).max(block)
        };
        let middle = own.next_multiple_of(block).min(queries);
        let padding = blocks(middle..queries, size(queries));
        blocks(0..middle, size(own)).chain(padding).collect()
    }

    /// The mask of the head.
    pub(crate) fn rows(&self) -> HeadMask<'a> {
        HeadMask {
            mask: &self.call.settings.mask,
            example: self.example(),
            head: self.head(),
            queries: self.call.shape.queries,
            keys: self.call.shape.keys,
            patterns: &self.call.patterns,
            seen: None,
        }
    }

    /// The last positions of a decoder's sequence as rows, under a mask without lengths. Paths tell the positions that
    /// each query sees, otherwise `seen` if there is any.
    pub(crate) fn last_rows<'m>(
        &self,
        mask: &'m Mask,
        queries: usize,
        keys: usize,
        seen: Option<&'m Buffer<bool>>,
    ) -> HeadMask<'m>
    where
        'a: 'm,
    {
        let paths = self
            .call
            .paths
            .map(|paths| paths.of_example(self.example()));
        HeadMask {
            mask,
            example: 0,
            head: self.head(),
            queries,
            keys,
            patterns: &[],
            seen: paths.or(seen.map(|seen| &seen[..])),
        }
    }

    /// The pairs that a function of positions keeps, of the last queries and all keys that a decoder holds: `length` after
    /// those that are dropped.
    pub(crate) fn seen_by_rule(
        &self,
        mask: &Mask,
        queries: usize,
        (dropped, length): (usize, usize),
    ) -> Option<Buffer<bool>> {
        let rule = mask.pairs()?;
        let mut seen = self.workspace().pool().empty(queries * length);
        for i in 0..queries {
            let query = (dropped + length + i) as i64 - queries as i64;
            seen.extend((0..length).map(|j| rule.keeps(query, (dropped + j) as i64)));
        }
        Some(seen)
    }

    /// The bias of the head's pairs.
    pub(crate) fn bias(&self) -> Option<HeadBias<'a, T>> {
        let bias = self.call.settings.bias.as_ref()?;
        Some(HeadBias::new(bias, self.rows(), self.call.shape.heads))
    }

    /// The score of the head's sink.
    pub(crate) fn sink(&self) -> Option<f64> {
        let sink = self.call.settings.sink.as_ref()?;
        Some(sink[self.head()].as_f64())
    }

    pub(crate) fn workspace(&self) -> &'a Workspace<T> {
        self.call.workspace
    }

    pub(crate) fn numbers(&self) -> &'a Buffers<T> {
        &self.call.workspace.numbers
    }

    pub(crate) fn dropout(&self) -> Option<PairDropout> {
        let Shape { queries, keys, .. } = self.call.shape;
        let base = (self.h as u64) * (queries as u64) * (keys as u64);
        self.call
            .settings
            .dropout
            .map(|mask| PairDropout { mask, base, keys })
    }
}

/// Dropout on the pairs of one head.
///
/// The mask is one of the whole `[B, M, Tq, Tk]` array, so that it depends neither on the blocks
/// nor on the mask.
#[derive(Clone, Copy)]
pub(crate) struct PairDropout {
    mask: DropoutMask,
    /// The index of the head's first pair.
    base: u64,
    /// Tk, padding included.
    keys: usize,
}

impl PairDropout {
    /// Writes the factors of row `i` from key `j` on.
    pub(crate) fn fill<T: Real>(&self, i: usize, j: usize, factors: &mut [T]) {
        self.mask.factors(self.index(i, j), factors);
    }

    /// Multiplies numbers of row `i` from key `j` on by their factors.
    pub(crate) fn scale<T: Real>(&self, i: usize, j: usize, values: &mut [T]) {
        self.mask.scale(self.index(i, j), values);
    }

    fn index(&self, i: usize, j: usize) -> u64 {
        self.base + i as u64 * self.keys as u64 + j as u64
    }
}

/// Returns an array of the keys or values of some heads, given one part for each head of queries that reads them: the
/// sums of these, in order.
pub fn over_readers<T: Real>(parts: Vec<T>, shape: [usize; 4]) -> Array4<T> {
    let [_, _, keys, width] = shape;
    let count: usize = shape.iter().product();
    let sums = match parts.len() == count {
        true => parts,
        false => {
            let (size, readers) = (keys * width, parts.len() / count);
            let mut sums = vec![T::zero(); count];
            parallel::for_each_chunk(&mut sums, size, |group, sum| {
                let parts = &parts[group * readers * size..][..readers * size];
                for part in parts.chunks_exact(size) {
                    crate::lanes::add(sum, part);
                }
            });
            sums
        }
    };
    Array4::from_shape_vec(shape, sums).expect("one slab a head")
}

/// Checks that heads of keys and values can be shared by heads of queries (grouped-query attention).
///
/// # Errors
/// [`ArgumentError::OutOfRange`] unless they divide these.
pub fn shared_heads(kv_heads: usize, heads: usize) -> Result<usize, ArgumentError> {
    if kv_heads > 0 && heads.is_multiple_of(kv_heads) {
        return Ok(kv_heads);
    }
    let allowed = format!(
        "a divisor of {heads}, the heads of q: heads are axis 1 of [batch, heads, time, width]"
    );
    Err(argument::out_of_range(HEADS_OF_K, kv_heads as f64, allowed))
}

/// The name of the number of heads of keys in errors.
pub(crate) const HEADS_OF_K: &str = "heads of k";

/// Head `h` of a contiguous `[B, M, T, w]` array as a matrix.
pub(crate) fn slab<T: Real>(x: ArrayView4<'_, T>, h: usize) -> Mat<'_, T> {
    let (_, _, rows, width) = x.dim();
    let data = x.to_slice().expect("contiguous");
    Mat::new(&data[h * rows * width..(h + 1) * rows * width], rows, width)
}

/// Cuts a range into consecutive pieces of at most `size`.
pub(crate) fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(size)
        .map(move |start| start..start.saturating_add(size).min(end))
}
