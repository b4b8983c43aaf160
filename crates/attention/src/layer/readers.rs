//! The assignment of a decoder's sequences to the memories that they read.

use crate::Error;
use bochner_numerics::{Buffers, Real, argument};
use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

/// The sequences that read each memory of a batch: beams of one sentence read one, which is there once.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    /// The memory of each sequence.
    of: Vec<usize>,
    /// The sequences in the order of their memories.
    order: Vec<usize>,
    /// The sequences that read each memory, of every memory as many: the last one again where there are fewer.
    places: Vec<usize>,
    /// Places of each memory.
    each: usize,
    /// The memories that are read.
    read: Vec<usize>,
}

impl Readers {
    /// A memory for each sequence.
    pub(super) fn new(sequences: usize) -> Self {
        let mut readers = Self {
            of: (0..sequences).collect(),
            order: Vec::new(),
            places: Vec::new(),
            each: 1,
            read: Vec::new(),
        };
        readers.arrange();
        readers
    }

    /// Replaces sequence `b` by the previous sequence `indices[b]`. Returns the memories that are still read, in their
    /// order; they are renumbered in this order.
    ///
    /// # Errors
    /// [`Error::Argument`] without an index, or for a sequence that is not there.
    pub(super) fn reorder(&mut self, indices: &[usize]) -> Result<&[usize], Error> {
        argument::at_least_one("indices", indices.len())?;
        for &index in indices {
            argument::index("indices", index, self.of.len())?;
        }
        // The order is computed again below; until then its memory holds the previous sequences.
        self.order.clone_from(&self.of);
        let (of, before) = (&mut self.of, &self.order);
        of.clear();
        of.extend(indices.iter().map(|&index| before[index]));
        self.arrange();
        Ok(&self.read)
    }

    /// Groups the sequences by their memories, and renumbers these.
    fn arrange(&mut self) {
        self.order.clear();
        self.order.extend(0..self.of.len());
        let of = &self.of;
        self.order.sort_unstable_by_key(|&b| (of[b], b));
        let groups = || self.order.chunk_by(|&a, &b| of[a] == of[b]);
        self.each = groups().map(<[usize]>::len).max().unwrap_or(1);
        self.places.clear();
        self.read.clear();
        for group in groups() {
            let last = group[group.len() - 1];
            self.read.push(of[last]);
            self.places.extend_from_slice(group);
            let missing = self.each - group.len();
            self.places.extend(std::iter::repeat_n(last, missing));
        }
        for (memory, places) in self.places.chunks_exact(self.each).enumerate() {
            places.iter().for_each(|&b| self.of[b] = memory);
        }
    }

    /// The memory of each sequence.
    pub(super) fn of(&self) -> &[usize] {
        &self.of
    }

    /// The number of sequences.
    pub(super) fn sequences(&self) -> usize {
        self.of.len()
    }

    /// The number of memories, and that of the places of each.
    pub(super) fn shape(&self) -> [usize; 2] {
        [self.places.len() / self.each, self.each]
    }

    /// Returns the value of the sequence in each place, given a value for each sequence.
    pub(super) fn in_places<V: Copy>(&self, of_sequences: &[V]) -> impl Iterator<Item = V> {
        self.places.iter().map(|&b| of_sequences[b])
    }

    /// The sequences that read each memory, in the order of the memories.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[usize]> {
        self.order.chunk_by(|&a, &b| self.of[a] == self.of[b])
    }

    /// Calls `f` with `x`, `[B, n, N]`, the sequences of one memory as one, `[memories, each n, N]`, and brings what it
    /// writes into the order of the sequences.
    pub(super) fn together<T: Real>(
        &self,
        x: ArrayView3<T>,
        mut output: ArrayViewMut3<T>,
        buffers: &Buffers<T>,
        f: impl FnOnce(ArrayView3<T>, ArrayViewMut3<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ([memories, each], (_, positions, width)) = (self.shape(), x.dim());
        let shape = [memories, each * positions, width];
        let view = |rows| ArrayView3::from_shape(shape, rows).expect("as many");
        let in_order = self.places.iter().copied().eq(0..self.of.len());
        if in_order
            && let Some(x) = x.to_slice()
            && let Some(output) = output.as_slice_mut()
        {
            let output = ArrayViewMut3::from_shape(shape, output).expect("as many");
            return f(view(x), output);
        }
        let (size, one) = ((positions * width).max(1), [positions, width]);
        let mut rows = buffers.any(self.places.len() * positions * width);
        for (rows, &b) in rows.chunks_exact_mut(size).zip(&self.places) {
            let mut rows = ArrayViewMut2::from_shape(one, rows).expect("as many");
            rows.assign(&x.index_axis(Axis(0), b));
        }
        let mut written = buffers.any(rows.len());
        let places = ArrayViewMut3::from_shape(shape, &mut written).expect("as many");
        f(view(&rows), places)?;
        let mut last = None;
        for (rows, &b) in written.chunks_exact(size).zip(&self.places) {
            // A sequence that stands there again only fills the memory's places.
            if last.replace(b) != Some(b) {
                let rows = ArrayView2::from_shape(one, rows).expect("as many");
                output.index_axis_mut(Axis(0), b).assign(&rows);
            }
        }
        Ok(())
    }
}
