//! A layer that decodes: its parameters copied and packed, no tape.

use super::heads::{Heads, Maps};
use super::readers::Readers;
use super::row_positions::RowPositions;
use super::tree::Tree;
use crate::{Error, Mask};
use bochner_engine::{Decoder, Paths, check_lengths};
use bochner_numerics::{Real, argument};
use ndarray::{Array3, ArrayView3, ArrayViewMut3};
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as it stands, decoding sequences position by position.
///
/// Made by [`MultiHead::decoder`](super::MultiHead::decoder); row by row it gives what the layer
/// gives of the whole sequence under a causal mask (see [`Decoder`] for what a position costs, and
/// how exact it is), and nothing of it is on a tape.
///
/// Where keys and values are kept, without a window and without a position bias, sequences that
/// [`reorder`](Self::reorder) has made of one share them: positions that they have in common are there once, and their
/// queries meet them together. Other states are copied.
#[derive(Clone, Debug)]
pub struct MultiHeadDecoder<T: Real> {
    maps: Arc<Maps<T>>,
    /// Its sequences are the memories of the tree, if there is one.
    decoder: Decoder<T>,
    tree: Option<Tree>,
    /// The positions of the last step.
    positions: RowPositions,
}

impl<T: Real> MultiHeadDecoder<T> {
    pub(super) fn new(maps: Arc<Maps<T>>, decoder: Decoder<T>) -> Self {
        Self {
            maps,
            decoder,
            tree: None,
            positions: RowPositions::default(),
        }
    }

    /// The layer's output at the next positions.
    ///
    /// # Shapes
    /// `x: [B, n, Embed]` to the same.
    ///
    /// # Errors
    /// [`Error::Argument`]; nothing is remembered then.
    pub fn step(&mut self, x: ArrayView3<T>) -> Result<Array3<T>, Error> {
        let mut output = Array3::zeros(x.raw_dim());
        self.step_into(x, None, output.view_mut())?;
        Ok(output)
    }

    /// [`MultiHeadDecoder::step`] into an array that is there already; see [`Decoder`] for what is allocated.
    ///
    /// With counts only the first `counts[b]` of the next positions belong to example `b`: the others are not remembered,
    /// and their outputs mean nothing.
    ///
    /// # Errors
    /// The errors of [`MultiHeadDecoder::step`]; [`Error::Mask`] if a count is larger than the number of
    /// positions or there is not one an example.
    pub fn step_into(
        &mut self,
        x: ArrayView3<T>,
        counts: Option<&[usize]>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let count = x.dim().1;
        if count != 1 || counts.is_some() {
            self.part();
        }
        let shape = [self.lengths().len(), count, self.maps.layout.embed];
        argument::shape("the input", &shape, x.shape())?;
        argument::shape("the output", &shape, output.shape())?;
        let Self {
            maps,
            decoder,
            tree,
            positions,
        } = self;
        let Some(tree) = tree else {
            positions.set_next(decoder.lengths().iter().copied(), count);
            return attend(maps, decoder, x, positions, (counts, None), output);
        };
        // A position in a tree is its depth.
        positions.set_next(tree.readers.in_places(tree.lengths()), count);
        let numbers = decoder.numbers();
        let (readers, counts, paths) = tree.grow(decoder.lengths());
        let growth = (Some(counts), Some(paths));
        readers.together(x, output, &numbers, |x, output| {
            attend(maps, decoder, x, positions, growth, output)
        })
    }

    /// Gives each sequence a memory of its own.
    fn part(&mut self) {
        if let Some(tree) = self.tree.take() {
            tree.part(&mut self.decoder);
        }
    }

    /// The number of positions of each sequence, `[B]`.
    pub fn lengths(&self) -> &[usize] {
        match &self.tree {
            Some(tree) => tree.lengths(),
            None => self.decoder.lengths(),
        }
    }

    /// The number of numbers held for keys and values; see [`Decoder::held`].
    pub fn held(&self) -> usize {
        self.decoder.held()
    }

    /// Forgets all positions.
    pub fn reset(&mut self) {
        self.part();
        self.decoder.reset();
    }

    /// Forgets all positions but the first `length` of each sequence; shorter sequences stay as they are.
    ///
    /// # Errors
    /// The errors of [`Decoder::truncate`].
    pub fn truncate(&mut self, length: usize) -> Result<(), Error> {
        self.part();
        Ok(self.decoder.truncate(length)?)
    }

    /// Sequence `b` becomes what `indices[b]` was: for beam search.
    ///
    /// # Errors
    /// The errors of [`Decoder::reorder`].
    pub fn reorder(&mut self, indices: &[usize]) -> Result<(), Error> {
        let tree = match &mut self.tree {
            Some(tree) => tree,
            None => {
                let repeats = |(i, b): (usize, &usize)| indices[..i].contains(b);
                if !self.decoder.can_branch() || !indices.iter().enumerate().any(repeats) {
                    return Ok(self.decoder.reorder(indices)?);
                }
                self.tree.insert(Tree::new(self.decoder.lengths()))
            }
        };
        tree.reorder(indices, &mut self.decoder)?;
        if tree.has_parted() {
            self.part();
        }
        Ok(())
    }
}

/// The output for the next positions of each sequence of the decoder, or of each memory of a tree.
fn attend<T: Real>(
    maps: &Maps<T>,
    decoder: &mut Decoder<T>,
    x: ArrayView3<T>,
    positions: &RowPositions,
    (counts, paths): (Option<&[usize]>, Option<&Paths>),
    output: ArrayViewMut3<T>,
) -> Result<(), Error> {
    let (layout, (batch, count, _)) = (maps.layout, x.dim());
    let numbers = decoder.numbers();
    let heads = maps.heads(x, x, positions, &numbers);
    let streams = layout.gather(&heads, x, Mask::CAUSAL, None).get()?;
    let shape = [batch, layout.heads, count, layout.value_width];
    let mut attended = Heads::any(shape, &numbers);
    decoder.step_into(streams, counts, paths, attended.view_mut())?;
    maps.write(attended.view(), &numbers, output)
}

/// A [`MultiHead`](super::MultiHead) layer as it stands, attending to a memory that is mapped once.
///
/// Made by [`MultiHead::cross_decoder`](super::MultiHead::cross_decoder); it gives what the layer gives
/// of the same queries and the memory, to rounding (see [`Decoder`]), and nothing of it is on a tape.
///
/// Sequences that [`reorder`](Self::reorder) has made of one read its memory together: it is there once, and their
/// queries meet it as those of one sequence do.
///
/// Queries have positions of their own, counted over the steps, which matter to a layer with rotary positions alone.
#[derive(Clone, Debug)]
pub struct MultiHeadCrossDecoder<T: Real> {
    maps: Arc<Maps<T>>,
    /// The memories are its sequences.
    decoder: Decoder<T>,
    readers: Readers,
    /// The number of queries of each sequence so far.
    lengths: Vec<usize>,
    /// The numbers of queries before the last reorder.
    before: Vec<usize>,
    /// The positions of the last step.
    positions: RowPositions,
}

impl<T: Real> MultiHeadCrossDecoder<T> {
    /// Maps the memory; `decoder` has seen nothing.
    pub(super) fn new(
        maps: Arc<Maps<T>>,
        mut decoder: Decoder<T>,
        memory: ArrayView3<T>,
        mask: &Mask,
    ) -> Result<Self, Error> {
        let whole = maps.layout.mask(mask.clone());
        if whole.is_causal() || whole.needs_pairs() || maps.bias.is_some() {
            return Err(Error::Unsupported {
                what: "decoding from a memory under a causal mask, a matrix, a window, packed sequences or a \
                       position bias",
                instead: "key lengths, or `MultiHead::attend`",
            });
        }
        let (batch, keys, _) = memory.dim();
        argument::shape(
            "the memory",
            &[batch, keys, maps.layout.memory],
            memory.shape(),
        )?;
        if let Some(lengths) = mask.key_lengths() {
            check_lengths("key lengths", lengths, batch, keys)?;
        }
        let mut positions = RowPositions::default();
        maps.place(&mut positions, &whole, [0, keys]);
        let heads = maps.heads(None, memory, &positions, &decoder.numbers());
        let [_, k, v] = maps.layout.gather(&heads, memory, mask, None).get()?;
        decoder.push(k, v, mask.key_lengths())?;
        Ok(Self {
            maps,
            decoder,
            readers: Readers::new(batch),
            lengths: vec![0; batch],
            before: Vec::new(),
            positions,
        })
    }

    /// The layer's output for the next queries.
    ///
    /// # Shapes
    /// `x: [B, n, Embed]` to the same.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub fn step(&mut self, x: ArrayView3<T>) -> Result<Array3<T>, Error> {
        let mut output = Array3::zeros(x.raw_dim());
        self.step_into(x, None, output.view_mut())?;
        Ok(output)
    }

    /// [`MultiHeadCrossDecoder::step`] into an array that is there already; see [`Decoder`] for what is
    /// allocated.
    ///
    /// With counts only the first `counts[b]` of the next queries belong to sequence `b`: for prompts of different
    /// lengths. The outputs of the others mean nothing.
    ///
    /// # Errors
    /// The errors of [`MultiHeadCrossDecoder::step`]; [`Error::Mask`] if a count is larger than the number of queries or
    /// there is not one a sequence.
    pub fn step_into(
        &mut self,
        x: ArrayView3<T>,
        counts: Option<&[usize]>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let count = x.dim().1;
        if let Some(counts) = counts {
            check_lengths("counts", counts, self.lengths.len(), count)?;
        }
        self.attend(x, output)?;
        for (b, length) in self.lengths.iter_mut().enumerate() {
            *length += counts.map_or(count, |counts| counts[b]);
        }
        Ok(())
    }

    /// The output for the next queries, which are not counted.
    fn attend(&mut self, x: ArrayView3<T>, output: ArrayViewMut3<T>) -> Result<(), Error> {
        let Self {
            maps,
            decoder,
            readers,
            lengths,
            positions,
            ..
        } = self;
        let (layout, count) = (maps.layout, x.dim().1);
        let shape = [readers.sequences(), count, layout.embed];
        argument::shape("the input", &shape, x.shape())?;
        argument::shape("the output", &shape, output.shape())?;
        positions.set_next(readers.in_places(lengths), count);
        let numbers = decoder.numbers();
        readers.together(x, output, &numbers, |x, output| {
            let (memories, queries, _) = x.dim();
            let heads = maps.heads(x, None, positions, &numbers);
            let [q, _, _] = layout.gather(&heads, x, Mask::NONE, None).get()?;
            let shape = [memories, layout.heads, queries, layout.value_width];
            let mut attended = Heads::any(shape, &numbers);
            decoder.attend_into(q, attended.view_mut())?;
            maps.write(attended.view(), &numbers, output)
        })
    }

    /// The number of queries of each sequence so far, `[B]`.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Goes back to the first `length` queries of each sequence; shorter sequences stay as they are.
    pub fn truncate(&mut self, length: usize) {
        self.lengths
            .iter_mut()
            .for_each(|own| *own = length.min(*own));
    }

    /// The number of numbers held for the memories that are read; see [`Decoder::held`].
    pub fn held(&self) -> usize {
        self.decoder.held()
    }

    /// Sequence `b` becomes what `indices[b]` was, and reads its memory: for beam search. Nothing is copied.
    ///
    /// # Errors
    /// The errors of [`Decoder::reorder`].
    pub fn reorder(&mut self, indices: &[usize]) -> Result<(), Error> {
        let read = self.readers.reorder(indices)?;
        if read.len() < self.decoder.lengths().len() {
            self.decoder.reorder(read)?;
        }
        self.before.clone_from(&self.lengths);
        self.lengths.clear();
        (self.lengths).extend(indices.iter().map(|&b| self.before[b]));
        Ok(())
    }
}
