//! Incremental decoding: causal attention to a sequence that grows.

mod held;
mod size;

pub use size::DecoderSize;

use self::held::Moves;
use crate::engine::{Arguments, Memory, Paths, shared_heads, write_row_major};
use crate::mask::check_lengths;
use crate::{Error, Mask, Settings, Workspace};
#[cfg(feature = "dfdx")]
use bochner_numerics::Buffers;
use bochner_numerics::{Real, argument, parallel};
use ndarray::{Array4, ArrayView4, ArrayViewMut4, Axis, s};

/// Causal attention to a sequence whose positions come one or a few at a time.
///
/// Row by row it gives what [`attend`](crate::attend) gives of the whole sequence under a causal
/// mask. [`Form`](crate::Form) says what is kept of the positions so far:
///
/// | form | kept of each head of keys | a position costs |
/// |---|---|---|
/// | [`Form::Quadratic`](crate::Form::Quadratic), [`Form::Automatic`](crate::Form::Automatic), [`Form::Blocked`](crate::Form::Blocked) | keys or their features, values, exponents: O(T (R + dv)) | O(T (R + dv)) |
/// | [`Form::LinearTime`](crate::Form::LinearTime) | sums of a constant size: O(R² dv) | O(R² dv) |
///
/// The linear-time form exists for squared kernels and, with sums of O(m dv), for random features; T is the number of
/// positions so far. Under a [window](Mask::with_window) the other forms keep the positions that the next one sees, and
/// at most a quarter more (or 32; for random features two blocks), however long the sequence or its prompt was.
///
/// Heads of queries that share keys and values share what is kept of them, unless each has features of its own, by
/// spectral points or random frequencies, which are then kept with a copy of the values.
///
/// # Numerics
/// The quadratic form adds up the same terms as [`attend`](crate::attend) in the same order, except
/// within the last sixteen keys of a row's last block of keys ([`Blocks`](crate::Blocks)), whose
/// normaliser it may round differently. Where magnitudes overflow, or all similarities of a row
/// vanish, the same holds as there. In the linear-time form sums are relative to the largest
/// exponent so far, and raised when a louder key comes; rounding errors are those of
/// [`Form::LinearTime`](crate::Form::LinearTime), and depend on how the sequence was cut into calls; sums over values
/// have to stay in the type's range. The result is the same to the bit for any number of threads.
///
/// A key that is not a number stays in its head's memory until [`reset`](Decoder::reset), or a
/// [`truncate`](Decoder::truncate) before it; a value likewise in its column.
///
/// Memory for keys and values grows by doubling, what a step needs beside it in steps of a quarter;
/// otherwise, but for random features, a [`step_into`](Decoder::step_into) allocates nothing once a step with as many
/// positions has gone before, and in the linear-time form nothing after the first two. ([`Workspace`] says what
/// threads add to that.)
///
/// ```
/// use bochner_attention::{Decoder, DecoderSize, Magnitude, Mask, Settings, attend};
/// use bochner_attention::ndarray::{Array4, s};
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f64).sin());
/// let settings = Settings {
///     magnitude: Magnitude::Norm { p: 1.5 },
///     ..Settings::rbf(&Mask::none().with_causality())
/// };
/// let whole = attend(x.view(), x.view(), x.view(), &settings)?.output;
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
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub struct Decoder<T> {
    /// The mask says causality, and how many of a step's positions belong to each sequence.
    settings: Settings<T>,
    size: DecoderSize,
    /// What each head of keys remembers, or each head of queries that has features of its own.
    memories: Vec<Box<dyn Memory<T>>>,
    /// The number of heads of keys and values of each sequence.
    key_heads: usize,
    lengths: Vec<usize>,
    /// No key of any sequence: a call that remembers nothing.
    nothing: Mask,
    workspace: Workspace<T>,
    moves: Moves<T>,
}

impl<T: Real> Clone for Decoder<T> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            size: self.size,
            memories: self.memories.clone(),
            key_heads: self.key_heads,
            lengths: self.lengths.clone(),
            nothing: self.nothing.clone(),
            workspace: self.workspace.clone(),
            moves: Moves::default(),
        }
    }
}

impl<T> std::fmt::Debug for Decoder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("size", &self.size)
            .field("lengths", &self.lengths)
            .finish_non_exhaustive()
    }
}

impl<T: Real> Decoder<T> {
    /// A decoder that has seen nothing. Points are copied; the mask may be causal or none, which is
    /// the same here, and may have a window to the left.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mask with more than that, for a fixed bias, for dropout, and for the
    /// linear-time form where there is none; [`Error::Argument`] for a size of zero; otherwise as
    /// [`attend`](crate::attend).
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
        settings.validate(batch, heads, width)?;
        settings.form_for(1, 1, value_width)?;
        if let Some(bias) = &settings.bias {
            bias.validate([batch, heads, 1, 1])?;
        }
        let mut decoder = Self {
            settings: Settings {
                mask: settings.mask.clone().with_causality(),
                ..settings.clone()
            },
            size,
            memories: Vec::new(),
            key_heads: heads,
            lengths: vec![0; batch],
            nothing: Mask::none().with_key_lengths(vec![0; batch]),
            workspace: Workspace::new(),
            moves: Moves::default(),
        };
        decoder.forget_for(heads);
        Ok(decoder)
    }

    /// Attention from the next positions to themselves and all before.
    ///
    /// # Shapes
    /// `q, k: [B, M, n, d]`, `v: [B, M, n, dv]` to `[B, M, n, dv]`; keys and values may have fewer heads
    /// that divide M, as in [`attend`](crate::attend()), and the same number in every call.
    ///
    /// # Errors
    /// [`Error::Argument`]; nothing is remembered then.
    pub fn step(
        &mut self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
    ) -> Result<Array4<T>, Error> {
        let mut output = Array4::zeros(self.output_shape(k.len_of(Axis(2))));
        self.step_into(q, k, v, output.view_mut())?;
        Ok(output)
    }

    /// [`Decoder::step`] into an array that is there already.
    ///
    /// # Shapes
    /// `q, k: [B, M, n, d]`, `v` and `output: [B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`Decoder::step`].
    pub fn step_into(
        &mut self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        output: ArrayViewMut4<T>,
    ) -> Result<(), Error> {
        self.step_of([q, k, v], None, None, output)
    }

    /// [`Decoder::step`] where of the next positions only the first `counts[b]` belong to example
    /// `b`: the others are not remembered, and their rows are zero.
    ///
    /// For prompts of different lengths in one batch; each sequence then goes on after its own end.
    ///
    /// # Errors
    /// The errors of [`Decoder::step`]; [`Error::Mask`] if a count is larger than the number of positions or
    /// there is not one an example.
    pub fn step_with_counts(
        &mut self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        counts: &[usize],
    ) -> Result<Array4<T>, Error> {
        let mut output = Array4::zeros(self.output_shape(k.len_of(Axis(2))));
        self.step_with_counts_into(q, k, v, counts, output.view_mut())?;
        Ok(output)
    }

    /// [`Decoder::step_with_counts`] into an array that is there already.
    ///
    /// # Errors
    /// The errors of [`Decoder::step_with_counts`].
    pub fn step_with_counts_into(
        &mut self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        counts: &[usize],
        output: ArrayViewMut4<T>,
    ) -> Result<(), Error> {
        self.step_of([q, k, v], Some(counts), None, output)
    }

    /// Where there are `paths`, the next positions of an example are the ends of its paths: each sees its own path
    /// instead of all before it. The mask has no window then, and there is no bias.
    pub(crate) fn step_of(
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

    /// Attention from queries to all positions so far: for a memory that [`push`](Decoder::push) has
    /// remembered.
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
        // Placeholders of which nothing is remembered.
        let key = q.slice(s![.., ..self.key_heads, ..queries.min(1), ..]);
        let [batch, _, positions, value_width] = self.output_shape(queries.min(1));
        let zero = T::zero();
        let value = ndarray::aview0(&zero);
        let value = value.broadcast([batch, self.key_heads, positions, value_width]);
        let value = value.expect("a single number");
        let result = self.remember([q, key, value], None, Some(output));
        self.settings.mask = mask;
        result
    }

    /// Its memory, for what goes before and after a step.
    #[cfg(feature = "dfdx")]
    pub(crate) fn numbers(&self) -> Buffers<T> {
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

    /// Remembers the next positions without attending from them.
    ///
    /// # Shapes
    /// `k: [B, M, n, d]`, `v: [B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`Decoder::step`].
    pub fn push(&mut self, k: ArrayView4<T>, v: ArrayView4<T>) -> Result<(), Error> {
        self.push_of(k, v, None)
    }

    /// [`Decoder::push`] where only the first `counts[b]` of the positions belong to example `b`.
    ///
    /// # Errors
    /// The errors of [`Decoder::step_with_counts`].
    pub fn push_with_counts(
        &mut self,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        counts: &[usize],
    ) -> Result<(), Error> {
        self.push_of(k, v, Some(counts))
    }

    pub(crate) fn push_of(
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

    /// Remembers the next positions; with an output, attends from them.
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
        self.expect_key_heads(shared)?;
        let queries = q.len_of(Axis(2));
        let (settings, kernel) = (&self.settings, self.settings.kernel());
        let mut call = Arguments::new(q, k, v, settings, &self.workspace)?;
        call.paths = paths;
        let memories = self.memories.as_mut_slice();
        let count = memories.len();
        // The heads of queries that share a memory are neighbours.
        let each = batch * self.size.heads / count;
        let heads = |n: usize| n * each..(n + 1) * each;
        match output {
            None => parallel::for_each_chunk(memories, 1, |n, memory| {
                kernel.decode(&call, heads(n), &mut *memory[0], None);
            }),
            Some(output) => write_row_major(output, &self.workspace.numbers, |output| {
                let size = each * queries * value_width;
                parallel::for_each_piece(
                    (memories, output),
                    count,
                    |rest, n, next| split(rest, next - n, size),
                    |n, (memory, output)| {
                        kernel.decode(&call, heads(n), &mut *memory[0], Some(output));
                    },
                );
            }),
        }
        let firsts = self.memories.iter().step_by(count / batch);
        for (length, memory) in self.lengths.iter_mut().zip(firsts) {
            *length = memory.length();
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

/// Some memories, and where the outputs of their heads go.
type Heads<'a, T> = (&'a mut [Box<dyn Memory<T>>], &'a mut [T]);

fn split<'a, T>(
    (memories, output): Heads<'a, T>,
    count: usize,
    size: usize,
) -> (Heads<'a, T>, Heads<'a, T>) {
    let (memories, more_memories) = memories.split_at_mut(count);
    let (output, more_output) = output.split_at_mut(count * size);
    ((memories, output), (more_memories, more_output))
}
