//! The arguments of one call, checked, in row-major order, and cut into heads.

use super::{Exponents, Level, PairDropout, RowMajor, Rows, blocks};
use crate::bias::HeadBias;
use crate::normaliser::Normaliser;
use crate::score::{PairKernel, Score};
use crate::{Blocks, Error, Form, Magnitude, Mask, Settings, Workspace};
use bochner_numerics::scaling::{largest, log2_range, multiplied};
use bochner_numerics::{ArgumentError, Buffer, Buffers, Mat, Real, argument, parallel};
use ndarray::{Array4, ArrayView4, Axis};
use std::ops::Range;

/// Queries, keys and values with their settings.
pub(crate) struct Arguments<'a, T> {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    /// Heads of keys and values, each of which as many heads of queries read.
    pub(crate) key_heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) width: usize,
    pub(crate) value_width: usize,
    pub(super) q: RowMajor<'a, T>,
    pub(super) k: RowMajor<'a, T>,
    pub(super) v: RowMajor<'a, T>,
    pub(crate) settings: &'a Settings<T>,
    /// The settings' mask, and what a bias bars.
    pub(crate) mask: Mask,
    pub(crate) blocks: Blocks,
    pub(crate) workspace: &'a Workspace<T>,
    /// Which positions each query of a decoder's call sees, where that is not all before it.
    pub(crate) paths: Option<&'a Paths>,
}

/// The paths to the queries of a call: of the positions that the memory of an example will hold after the call, those
/// that each of its queries sees.
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    not(feature = "dfdx"),
    allow(dead_code, reason = "sequences branch in layers alone")
)]
pub(crate) struct Paths {
    /// The rows of one example after those of another.
    seen: Vec<bool>,
    /// Where the rows of each example end.
    ends: Vec<usize>,
}

impl Paths {
    fn of(&self, example: usize) -> &[bool] {
        let start = example.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.seen[start..self.ends[example]]
    }
}

#[cfg(feature = "dfdx")]
impl Paths {
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
        self.ends.clear();
    }

    /// Adds the next query of an example.
    pub(crate) fn push(&mut self, row: &[bool]) {
        self.seen.extend_from_slice(row);
    }

    /// Ends the queries of an example.
    pub(crate) fn end_example(&mut self) {
        self.ends.push(self.seen.len());
    }
}

impl<'a, T: Real> Arguments<'a, T> {
    pub(crate) fn new(
        q: ArrayView4<'a, T>,
        k: ArrayView4<'a, T>,
        v: ArrayView4<'a, T>,
        settings: &'a Settings<T>,
        workspace: &'a Workspace<T>,
    ) -> Result<Self, Error> {
        let (batch, heads, queries, width) = q.dim();
        let (keys, value_width) = (k.len_of(Axis(2)), v.len_of(Axis(3)));
        let shared = shared_heads(k.len_of(Axis(1)), heads)?;
        argument::shape("k", &[batch, shared, keys, width], k.shape())?;
        argument::shape("v", &[batch, shared, keys, value_width], v.shape())?;
        for (what, array) in [("k", &k), ("v", &v), ("q", &q)] {
            argument::not_empty(what, array.shape())?;
        }
        settings.mask.validate(batch, heads, queries, keys)?;
        settings.validate(batch, heads, width)?;
        let mut mask = settings.mask.clone();
        if let Some(bias) = &settings.bias {
            bias.validate([batch, heads, queries, keys])?;
            if let Some(barred) = bias.mask() {
                mask = mask.and_matrices_of(barred);
            }
        }
        let blocks = settings.blocks(queries)?;
        let [q, k, v] = [q, k, v].map(|array| RowMajor::new(array, &workspace.numbers));
        Ok(Self {
            batch,
            heads,
            key_heads: shared,
            queries,
            keys,
            width,
            value_width,
            q,
            k,
            v,
            settings,
            mask,
            blocks,
            workspace,
            paths: None,
        })
    }

    /// The form that the settings ask for, if there is such a form; see [`HeadAt::form`].
    pub(crate) fn form(&self) -> Result<Form, Error> {
        match self.settings.form {
            Form::Automatic => Ok(Form::Automatic),
            _ => (self.settings).form_for(self.queries, self.keys, self.value_width),
        }
    }

    pub(crate) fn shape(&self, rows: usize, width: usize) -> [usize; 4] {
        [self.batch, self.heads, rows, width]
    }

    /// An array of keys or values, given one part for each head of queries: those of heads that share
    /// keys are summed up, in order.
    pub(crate) fn shared_array(&self, width: usize, data: Vec<T>) -> Array4<T> {
        over_readers(data, [self.batch, self.key_heads, self.keys, width])
    }

    pub(crate) fn array(&self, rows: usize, width: usize, data: Vec<T>) -> Array4<T> {
        Array4::from_shape_vec(self.shape(rows, width), data).expect("one slab a head")
    }

    /// The number of heads of all examples.
    pub(crate) fn all_heads(&self) -> usize {
        self.batch * self.heads
    }

    /// Head `h` of all heads of all examples.
    pub(crate) fn at(&self, h: usize) -> HeadAt<'_, T> {
        HeadAt { arguments: self, h }
    }

    /// Queries of one task of the forward pass: whole heads if there are many, halves and quarters of a few long
    /// ones. No output depends on it.
    pub(crate) fn chunk(&self) -> usize {
        let parts = 16usize.div_ceil(self.all_heads());
        self.queries
            .div_ceil(parts)
            .next_multiple_of(self.blocks.queries)
    }
}

/// One head of one example, as a kernel sees it.
pub(crate) struct HeadAt<'a, T> {
    pub(super) arguments: &'a Arguments<'a, T>,
    /// The index of the head among all heads of all examples.
    h: usize,
}

impl<'a, T: Real> HeadAt<'a, T> {
    pub(crate) fn example(&self) -> usize {
        self.h / self.arguments.heads
    }

    pub(crate) fn head(&self) -> usize {
        self.h % self.arguments.heads
    }

    /// The index of the head's keys among all heads of keys of all examples.
    fn of_keys(&self) -> usize {
        self.h / (self.arguments.heads / self.arguments.key_heads)
    }

    /// The width of queries and keys, d.
    pub(crate) fn width(&self) -> usize {
        self.arguments.width
    }

    pub(crate) fn queries(&self) -> Mat<'a, T> {
        slab(self.arguments.q.view(), self.h)
    }

    /// The keys that are not padding.
    pub(crate) fn keys(&self) -> Mat<'a, T> {
        slab(self.arguments.k.view(), self.of_keys()).row_range(0..self.kept())
    }

    /// The values that are not padding.
    pub(crate) fn values(&self) -> Mat<'a, T> {
        slab(self.arguments.v.view(), self.of_keys()).row_range(0..self.kept())
    }

    /// The form of the head: by its own lengths, so that it does not depend on how far they are padded.
    pub(super) fn form(&self) -> Form {
        let Arguments {
            settings,
            value_width,
            ..
        } = *self.arguments;
        let form = settings.form_for(self.rows().counting(), self.kept(), value_width);
        form.expect("checked with the settings")
    }

    /// The number of keys that are not padding.
    pub(crate) fn kept(&self) -> usize {
        self.arguments
            .mask
            .key_limit(self.example(), self.arguments.keys)
    }

    /// The queries of each task of the backward pass, whose gradients of keys and values are summed up: a sixteenth
    /// of a head if an example has one, whole heads if it has sixteen.
    ///
    /// These sums must depend neither on the other examples nor on padding: the heads of one example count, and
    /// padding is cut by itself. About sixteen accumulators of an example exist, whatever the machine.
    pub(super) fn chunks(&self) -> Vec<Range<usize>> {
        let Arguments {
            queries,
            heads,
            blocks: Blocks { queries: block, .. },
            ..
        } = *self.arguments;
        let own = self.rows().counting();
        let size = |queries: usize| {
            let tasks = 16usize.div_ceil(heads);
            queries.div_ceil(tasks).next_multiple_of(block).max(block)
        };
        let middle = own.next_multiple_of(block).min(queries);
        let padding = blocks(middle..queries, size(queries));
        blocks(0..middle, size(own)).chain(padding).collect()
    }

    /// What the mask says of the rows.
    pub(crate) fn rows(&self) -> Rows<'a> {
        Rows {
            mask: &self.arguments.mask,
            example: self.example(),
            head: self.head(),
            queries: self.arguments.queries,
            keys: self.arguments.keys,
            seen: None,
        }
    }

    /// Which positions each query that counts sees, of those that the memory holds after the call.
    pub(super) fn paths(&self) -> Option<&'a [bool]> {
        Some(self.arguments.paths?.of(self.example()))
    }

    /// What is added to the logits of the head's pairs.
    pub(crate) fn bias(&self) -> Option<HeadBias<'a, T>> {
        let bias = self.arguments.settings.bias.as_ref()?;
        Some(HeadBias::new(bias, self.rows(), self.arguments.heads))
    }

    pub(crate) fn workspace(&self) -> &'a Workspace<T> {
        self.arguments.workspace
    }

    pub(crate) fn numbers(&self) -> &'a Buffers<T> {
        &self.arguments.workspace.numbers
    }

    pub(super) fn dropout(&self) -> Option<PairDropout> {
        let Arguments { queries, keys, .. } = *self.arguments;
        self.arguments.settings.dropout.map(|mask| PairDropout {
            mask,
            base: (self.h * queries * keys) as u64,
            keys,
        })
    }

    /// The power of two by which values are divided so that no sum over them overflows, given the
    /// largest: a mean is in range where its terms are.
    pub(super) fn unit_of_values(&self, largest: T, keys: usize, operand_width: usize) -> i32 {
        // In linear time a term of a squared kernel is as large as twice a product of features.
        let terms = keys as f64 * (4 * operand_width).pow(2) as f64;
        let dropout = self.arguments.settings.dropout;
        let terms = terms * dropout.map_or(1.0, |mask| mask.kept_factor());
        let excess = largest.as_f64().log2() + terms.log2() - log2_range::<T>();
        excess.ceil().max(0.0) as i32
    }

    /// What keys add to their weights beside the score, if they do.
    pub(super) fn exponents<K: PairKernel<T>>(
        &self,
        kernel: &K,
        score: &K::Score,
    ) -> Option<Exponents> {
        let (keys, terms) = (self.keys(), kernel.terms(self, score));
        let levels = self.workspace().pool::<Level>();
        match self.arguments.settings.magnitude {
            Magnitude::None => {
                let biased = self.arguments.settings.bias.is_some();
                let needed = <K::Score as Score<T>>::Norm::HAS_FACTORS || terms.is_some() || biased;
                needed.then(|| Exponents::zero(&levels, keys.shape().0, terms))
            }
            magnitude => {
                let (p, divisor) = (magnitude.p()?, magnitude.divisor(self.width()));
                Some(Exponents::of_keys(&levels, keys, p, divisor, terms))
            }
        }
    }

    /// The power of two by which the values of this call are divided: by the number of keys that are not padding, so
    /// that it does not depend on the padding.
    pub(super) fn own_unit(&self, operand_width: usize) -> i32 {
        let values = largest(self.values().data());
        self.unit_of_values(values, self.kept(), operand_width)
    }
}

/// An array of the keys or values of some heads, given one part for each head of queries that reads them: the sums of these,
/// in order.
pub(crate) fn over_readers<T: Real>(parts: Vec<T>, shape: [usize; 4]) -> Array4<T> {
    let [_, _, keys, width] = shape;
    let count: usize = shape.iter().product();
    let sums = match parts.len() == count {
        true => parts,
        false => {
            let (size, each) = (keys * width, parts.len() / count);
            let mut sums = vec![T::zero(); count];
            parallel::for_each_chunk(&mut sums, size, |group, sum| {
                let parts = &parts[group * each * size..][..each * size];
                for part in parts.chunks_exact(size) {
                    let pairs = sum.iter_mut().zip(part);
                    pairs.for_each(|(x, y)| *x = multiplied(x.as_f64() + y.as_f64(), 0));
                }
            });
            sums
        }
    };
    Array4::from_shape_vec(shape, sums).expect("one slab a head")
}

/// The heads of keys and values that some heads of queries share.
pub(crate) fn shared_heads(key_heads: usize, heads: usize) -> Result<usize, ArgumentError> {
    if key_heads > 0 && heads.is_multiple_of(key_heads) {
        return Ok(key_heads);
    }
    let allowed = format!(
        "a divisor of {heads}, the heads of q: heads are axis 1 of [batch, heads, time, width]"
    );
    Err(argument::out_of_range(
        HEADS_OF_K,
        key_heads as f64,
        allowed,
    ))
}

/// What errors call the number of heads of keys.
pub(crate) const HEADS_OF_K: &str = "heads of k";

/// Rows of an operand: a copy, or the queries or keys themselves.
pub(super) fn operand_rows<'a, T: Real>(
    copy: &'a Option<Buffer<T>>,
    x: Mat<'a, T>,
    width: usize,
) -> Mat<'a, T> {
    match copy {
        Some(copy) => Mat::new(copy, x.shape().0, width),
        None => x,
    }
}

/// Head `h` of a contiguous `[B, M, T, w]` array as a matrix.
pub(crate) fn slab<T: Real>(x: ArrayView4<'_, T>, h: usize) -> Mat<'_, T> {
    let (_, _, rows, width) = x.dim();
    let data = x.to_slice().expect("contiguous");
    Mat::new(&data[h * rows * width..(h + 1) * rows * width], rows, width)
}
