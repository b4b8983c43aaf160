//! Incremental decoding: causal attention to a sequence that grows.

mod cache;
mod held;
mod positions;

use crate::call::{Call, shared_heads};
use crate::mask::check_lengths;
use crate::paths::Paths;
use crate::workspace::Workspace;
use crate::{Error, Mask, Settings, Shape};
use bochner_numerics::row_major::write_row_major;
use bochner_numerics::{Buffers, Real, argument, parallel};
use cache::Cache;
use ndarray::{Array4, ArrayView4, ArrayViewMut4, Axis, s};
use std::sync::{Mutex, PoisonError};

/// The sizes of a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderSize {
    /// Number of sequences, B.
    pub batch: usize,
    /// Number of heads, M.
    pub heads: usize,
    /// Width of one head's queries and keys, d.
    pub width: usize,
    /// Width of one head's values, dv.
    pub value_width: usize,
}

/// Causal attention to a sequence whose positions come one or a few at a time: a key-value cache, or a cache of constant
/// size.
///
/// Row by row it gives the output of [`attend`](crate::attend()) for the whole sequence under a causal
/// mask. The [`Form`](crate::Form) decides what is held of the positions so far:
///
/// | form | held of each head of keys | cost of a position |
/// |---|---|---|
/// | [`Form::Pairwise`](crate::Form::Pairwise), [`Form::Automatic`](crate::Form::Automatic), [`Form::Blocked`](crate::Form::Blocked) | keys or their operands, values: O(T (R + dv)) | O(T (R + dv)) |
/// | [`Form::LinearTime`](crate::Form::LinearTime) | sums of a constant size: O(R² dv), of m features O(m dv), the state of a scan | the same |
///
/// The linear-time form exists for squared kernels, features and scans; T is the number of positions so far. Under a
/// [window](Mask::with_window) the other forms hold the positions that the next one sees, and
/// at most a quarter more (or 32; for features two blocks), however long the sequence or its prompt was.
///
/// Heads of queries that share keys and values share one cache, unless the kernel has other operands of keys for each
/// head of queries.
///
/// # Numerics
/// The pairwise form adds up the same terms as [`attend`](crate::attend()) in the same order, except
/// within the last sixteen keys of a row's last block of keys, whose
/// normaliser it may round differently. In the linear-time form sums are relative to the largest
/// exponent so far, and raised when a louder key comes; rounding errors are those of
/// [`Form::LinearTime`](crate::Form::LinearTime), and depend on how the sequence was cut into calls.
/// The result is the same to the bit for any number of threads.
///
/// Memory for keys and values grows by doubling. Otherwise a [`step_into`](Decoder::step_into) allocates nothing once a
/// step with as many positions has gone before.
///
/// ```
/// use bochner_engine::{Decoder, DecoderSize, Mask, Settings, attend};
/// use bochner_engine::ndarray::{Array4, s};
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f64).sin());
/// let settings = Settings::softmax(&Mask::causal());
/// let (whole, _) = attend(&settings, x.view(), x.view(), x.view())?;
///
/// let size = DecoderSize { batch: 1, heads: 2, width: 4, value_width: 4 };
/// let mut decoder = Decoder::new(&settings, size)?;
/// // A prompt of three positions, then one at a time.
/// for positions in [0..3, 3..4, 4..5] {
///     let x = x.slice(s![.., .., positions.clone(), ..]);
///     let output = decoder.step(x, x, x)?;
///     let difference = &output - &whole.slice(s![.., .., positions, ..]);
///     assert!(difference.iter().all(|x| x.abs() < 1e-12));
/// }
/// assert_eq!(decoder.lengths(), [5]);
/// # Ok::<(), bochner_engine::Error>(())
/// ```
#[doc(alias = "kv_cache")]
#[doc(alias = "past_key_values")]
#[derive(Clone)]
pub struct Decoder<T: Real> {
    /// The mask holds causality, and how many of a step's positions belong to each sequence.
    settings: Settings<T>,
    size: DecoderSize,
    /// The cache of each head of keys, or of each head of queries that has operands of keys of its own.
    caches: Vec<Cache<T>>,
    /// The number of heads of keys and values of each sequence.
    kv_heads: usize,
    lengths: Vec<usize>,
    /// No key of any sequence: the mask of a call that adds nothing.
    nothing: Mask,
    moves: held::Moves<T>,
    workspace: Workspace<T>,
}

impl<T: Real> std::fmt::Debug for Decoder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("size", &self.size)
            .field("lengths", &self.lengths)
            .finish_non_exhaustive()
    }
}

impl<T: Real> Settings<T> {
    /// Refuses what a decoder cannot obey.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_decoding(&self) -> Result<(), Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        if !self.mask.follows_from_positions() || self.mask.has_lengths() || self.mask.looks_ahead()
        {
            return unsupported(
                "a decoder with a matrix, lengths, a prefix, causal blocks, packed sequences or a window to the right",
                "a causal mask, with a window to the left or a function of positions",
            );
        }
        if self
            .bias
            .as_ref()
            .is_some_and(|bias| !bias.follows_from_positions())
        {
            return unsupported(
                "a decoder with a bias of pairs",
                "a bias that follows from positions",
            );
        }
        if self.dropout.is_some() {
            return unsupported("a decoder with dropout", "no dropout");
        }
        Ok(())
    }
}

impl<T: Real> Decoder<T> {
    /// Returns a decoder that has seen nothing. The mask may be causal or none, which is
    /// the same here, and may have a window to the left or a function of positions.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mask with more than that, for a bias of pairs, for dropout, and for the
    /// linear-time form where there is none; [`Error::Argument`] for a size of zero; otherwise as
    /// [`attend`](crate::attend()).
    pub fn new(settings: &Settings<T>, size: DecoderSize) -> Result<Self, Error> {
        let DecoderSize {
            batch,
            heads,
            width,
            value_width,
        } = size;
        for (name, size) in [
            ("batch", batch),
            ("heads", heads),
            ("width", width),
            ("value_width", value_width),
        ] {
            argument::at_least_one(name, size)?;
        }
        settings.check_decoding()?;
        let settings = Settings {
            mask: settings.mask.clone().with_causality(),
            ..settings.clone()
        };
        settings.check(&Shape {
            batch,
            heads,
            kv_heads: heads,
            queries: 1,
            keys: 1,
            width,
            value_width,
        })?;
        settings.form_for(1, 1, [width, value_width])?;
        if let Some(bias) = &settings.bias {
            bias.check([batch, heads, 1, 1])?;
        }
        let mut decoder = Self {
            settings,
            size,
            caches: Vec::new(),
            kv_heads: heads,
            lengths: vec![0; batch],
            nothing: Mask::none().with_key_lengths(vec![0; batch]),
            moves: held::Moves::default(),
            workspace: Workspace::new(),
        };
        decoder.clear_for(heads);
        Ok(decoder)
    }

    /// Attention from the next positions to themselves and all before.
    ///
    /// # Shapes
    /// `q, k: [B, M, n, d]`, `v: [B, M, n, dv]` to `[B, M, n, dv]`; keys and values may have fewer heads
    /// that divide M, as in [`attend`](crate::attend()), and the same number in every call.
    ///
    /// # Errors
    /// The errors of [`attend`](crate::attend()). An error adds nothing. One of a kernel, such as [`Error::Features`],
    /// [resets](Self::reset) the decoder in the linear-time form, whose sums cannot be taken apart.
    pub fn step(
        &mut self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
    ) -> Result<Array4<T>, Error> {
        let mut output = Array4::zeros(self.output_shape(k.len_of(Axis(2))));
        self.step_into([q, k, v], None, None, output.view_mut())?;
        Ok(output)
    }

    /// [`Decoder::step`] into an array that is there already.
    ///
    /// With counts only the first `counts[b]` of the next positions belong to example `b`: the others are not added, and
    /// their rows are zero. For prompts of different lengths in one batch; each sequence then goes on after its own end.
    /// With paths the next positions of an example are the ends of paths: a position sees its path instead of all
    /// positions before it. Paths go without a window and without a bias.
    ///
    /// # Shapes
    /// Queries and keys `[B, M, n, d]`, values and `output: [B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`Decoder::step`]; [`Error::Mask`] if a count is larger than the number of positions or
    /// there is not one an example.
    pub fn step_into(
        &mut self,
        [q, k, v]: [ArrayView4<T>; 3],
        counts: Option<&[usize]>,
        paths: Option<&Paths>,
        output: ArrayViewMut4<T>,
    ) -> Result<(), Error> {
        let positions = k.len_of(Axis(2));
        self.count(positions, counts)?;
        self.check("q", q.shape(), positions, self.size.width)?;
        self.check("output", output.shape(), positions, self.size.value_width)?;
        self.remember([q, k, v], paths, Some(output))
    }

    /// Attention from queries to all positions so far, which [`push`](Decoder::push) has added: for cross-attention.
    ///
    /// # Shapes
    /// `q: [B, M, n, d]` to `[B, M, n, dv]`.
    ///
    /// # Errors
    /// [`Error::Argument`]; [`Error::Unsupported`] under a window or a bias, which need positions.
    pub fn attend(&mut self, q: ArrayView4<T>) -> Result<Array4<T>, Error> {
        let mut output = Array4::zeros(self.output_shape(q.len_of(Axis(2))));
        self.attend_into(q, output.view_mut())?;
        Ok(output)
    }

    /// [`Decoder::attend`] into an array that is there already.
    ///
    /// # Shapes
    /// `q: [B, M, n, d]`, `output: [B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`Decoder::attend`].
    pub fn attend_into(&mut self, q: ArrayView4<T>, output: ArrayViewMut4<T>) -> Result<(), Error> {
        let queries = q.len_of(Axis(2));
        self.check("q", q.shape(), queries, self.size.width)?;
        self.check("output", output.shape(), queries, self.size.value_width)?;
        if self.settings.mask.has_starts() || self.settings.bias.is_some() {
            return Err(Error::Unsupported {
                what: "attention from queries without positions under a window or a bias",
                instead: "Decoder::step",
            });
        }
        let mask = std::mem::replace(&mut self.settings.mask, self.nothing.clone());
        // Placeholders, from which nothing is added to the cache.
        let key = q.slice(s![.., ..self.kv_heads, ..queries.min(1), ..]);
        let [batch, _, positions, value_width] = self.output_shape(queries.min(1));
        let zero = T::zero();
        let value = ndarray::aview0(&zero);
        let value = value.broadcast([batch, self.kv_heads, positions, value_width]);
        let value = value.expect("a single number");
        let result = self.remember([q, key, value], None, Some(output));
        self.settings.mask = mask;
        result
    }

    /// The decoder's memory, for the steps before and after its own.
    pub fn numbers(&self) -> Buffers<T> {
        self.workspace.numbers.clone()
    }

    fn output_shape(&self, positions: usize) -> [usize; 4] {
        let DecoderSize {
            batch,
            heads,
            value_width,
            ..
        } = self.size;
        [batch, heads, positions, value_width]
    }

    /// Adds the next positions without attending from them; with counts, the first `counts[b]` of those of example `b`.
    ///
    /// # Shapes
    /// `k: [B, M, n, d]`, `v: [B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`Decoder::step_into`].
    pub fn push(
        &mut self,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        counts: Option<&[usize]>,
    ) -> Result<(), Error> {
        let positions = k.len_of(Axis(2));
        self.count(positions, counts)?;
        // A placeholder without queries tells the call the number of query heads, which may exceed that of the keys.
        let size = self.size;
        let shape = [size.batch, size.heads, positions.min(1), size.width];
        let zero = T::zero();
        let query = ndarray::aview0(&zero);
        let query = query.broadcast(shape);
        self.remember([query.expect("a single number"), k, v], None, None)
    }

    /// Says how many of the next positions belong to each sequence: all, unless they are counted.
    fn count(&mut self, positions: usize, counts: Option<&[usize]>) -> Result<(), Error> {
        let (mask, batch) = (&mut self.settings.mask, self.size.batch);
        match counts {
            Some(counts) => {
                check_lengths("counts", counts, batch, positions)?;
                mask.set_key_lengths(counts.iter().copied());
            }
            None => mask.set_key_lengths(std::iter::repeat_n(positions, batch)),
        }
        Ok(())
    }

    /// Adds the next positions; with an output, attends from them.
    fn remember(
        &mut self,
        [q, k, v]: [ArrayView4<T>; 3],
        paths: Option<&Paths>,
        output: Option<ArrayViewMut4<T>>,
    ) -> Result<(), Error> {
        let positions = k.len_of(Axis(2));
        let shared = shared_heads(k.len_of(Axis(1)), self.size.heads)?;
        let DecoderSize {
            batch,
            width,
            value_width,
            ..
        } = self.size;
        argument::shape("k", &[batch, shared, positions, width], k.shape())?;
        argument::shape("v", &[batch, shared, positions, value_width], v.shape())?;
        self.expect_kv_heads(shared)?;
        let queries = q.len_of(Axis(2));
        let settings = &self.settings;
        let mut call = Call::for_decoder([q, k, v], settings, &self.workspace)?;
        call.paths = paths;
        let count = self.caches.len();
        // The heads of queries that share a cache are neighbours.
        let readers = batch * self.size.heads / count;
        let heads = |n: usize| n * readers..(n + 1) * readers;
        // Nothing is added unless all positions are in range.
        for h in 0..call.all_heads() {
            call.at(h).sequence(output.is_some())?;
        }
        let fault = FirstFault::default();
        let decode = |n: usize, cache: &mut Cache<T>, output: Option<&mut [T]>| {
            fault.note(n, cache.decode(&call, heads(n), output));
        };
        let caches = self.caches.as_mut_slice();
        match output {
            None => parallel::for_each_chunk(caches, 1, |n, cache| decode(n, &mut cache[0], None)),
            Some(output) => write_row_major(output, &self.workspace.numbers, |output| {
                let size = readers * queries * value_width;
                parallel::for_each_piece(
                    (caches, output),
                    count,
                    |(caches, output), n, next| {
                        let (caches, more_caches) = caches.split_at_mut(next - n);
                        let (output, more_output) = output.split_at_mut((next - n) * size);
                        ((caches, output), (more_caches, more_output))
                    },
                    |n, (cache, output)| decode(n, &mut cache[0], Some(output)),
                );
            }),
        }
        if let Err(error) = fault.result() {
            drop(call);
            self.take_back();
            return Err(error);
        }
        self.caches
            .iter_mut()
            .for_each(|cache| cache.drop_unseen(&call));
        let firsts = self.caches.iter().step_by(count / batch);
        for (length, cache) in self.lengths.iter_mut().zip(firsts) {
            *length = cache.length;
        }
        Ok(())
    }

    fn check(
        &self,
        what: &'static str,
        shape: &[usize],
        positions: usize,
        width: usize,
    ) -> Result<(), Error> {
        let DecoderSize { batch, heads, .. } = self.size;
        let expected = [batch, heads, positions, width];
        Ok(argument::shape(what, &expected, shape)?)
    }
}

/// The error of the first of some tasks, whatever their order.
#[derive(Default)]
struct FirstFault(Mutex<Option<(usize, Error)>>);

impl FirstFault {
    /// Notes the result of task `n`.
    fn note(&self, n: usize, result: Result<(), Error>) {
        if let Err(error) = result {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(other, _)| n < *other) {
                *first = Some((n, error));
            }
        }
    }

    fn result(self) -> Result<(), Error> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}
