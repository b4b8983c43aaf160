//! What a decoder holds, and forgets.

use super::{Decoder, DecoderSize};
use crate::Error;
use crate::engine::{HEADS_OF_K, Memory, first_seen};
use bochner_numerics::{Real, argument};

/// What a reorder needs beside the memories, kept for the next one.
pub(super) struct Moves<T> {
    /// How many sequences are still to take over each one of before.
    uses: Vec<usize>,
    /// The lengths of before.
    lengths: Vec<usize>,
    /// The memories of before, until they are taken over.
    before: Vec<Option<Box<dyn Memory<T>>>>,
    /// Those that nobody takes over.
    unused: Vec<Box<dyn Memory<T>>>,
}

impl<T> Default for Moves<T> {
    fn default() -> Self {
        Self {
            uses: Vec::new(),
            lengths: Vec::new(),
            before: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<T: Real> Decoder<T> {
    /// The number of positions of each sequence, `[B]`.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The number of numbers held for keys and values.
    ///
    /// In the linear-time form it does not depend on the number of positions, once there is one.
    pub fn held(&self) -> usize {
        self.memories.iter().map(|memory| memory.size()).sum()
    }

    /// Forgets all positions.
    pub fn reset(&mut self) {
        self.lengths.fill(0);
        self.forget_for(self.key_heads);
    }

    /// Makes place for what is to be remembered of so many heads of keys.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are positions of another number of heads.
    pub(super) fn expect_key_heads(&mut self, key_heads: usize) -> Result<(), Error> {
        if self.lengths.iter().all(|&length| length == 0) {
            if key_heads != self.key_heads {
                self.forget_for(key_heads);
            }
            return Ok(());
        }
        if key_heads == self.key_heads {
            return Ok(());
        }
        let allowed = format!("{}, as for the positions so far", self.key_heads);
        Err(argument::out_of_range(HEADS_OF_K, key_heads as f64, allowed).into())
    }

    /// Remembers nothing of each head of keys, or of each head of queries that has features of its own.
    pub(super) fn forget_for(&mut self, key_heads: usize) {
        let DecoderSize { batch, heads, .. } = self.size;
        let shared = self.settings.kernel().shares_memory(self.settings.form);
        let count = if shared { key_heads } else { heads };
        self.memories = (0..batch * count).map(|_| self.empty()).collect();
        self.key_heads = key_heads;
    }

    /// What a head remembers of no positions.
    fn empty(&self) -> Box<dyn Memory<T>> {
        let (width, form) = (self.size.width, self.settings.form);
        self.settings.kernel().memory(width, form)
    }

    /// Forgets all positions but the first `length` of each sequence. A sequence that is no longer than that stays as
    /// it is: a `length` beyond all sequences forgets nothing and is no error.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in the linear-time form, whose sums cannot be taken apart, and where the next
    /// position's window reaches before the positions that are held; nothing is forgotten then.
    pub fn truncate(&mut self, length: usize) -> Result<(), Error> {
        if length == 0 {
            self.reset();
            return Ok(());
        }
        let needed = first_seen(&self.settings.mask.without_lengths(), length);
        let mut memories = self.memories.iter();
        if memories.any(|memory| memory.length() > length && memory.first() > needed) {
            return Err(Error::Unsupported {
                what: "truncating to positions that are summed up (Form::LinearTime) or no longer held (a window)",
                instead: "a clone made at that length, or Form::Quadratic without a window",
            });
        }
        for memory in &mut self.memories {
            memory.truncate(length);
        }
        for own in &mut self.lengths {
            *own = length.min(*own);
        }
        Ok(())
    }

    /// Sequence `b` becomes what `indices[b]` was, spectral points of its own included: for beam
    /// search. There may be more or fewer sequences than before.
    ///
    /// The last sequence to take over a state takes it as it is, the others copy it: where the states are sums, into
    /// those that nobody takes over. So nothing is allocated for them while there are no more sequences than before.
    ///
    /// # Errors
    /// [`Error::Argument`] if `indices` is empty, or holds one that is not below the number of sequences.
    pub fn reorder(&mut self, indices: &[usize]) -> Result<(), Error> {
        let batch = self.size.batch;
        argument::at_least_one("indices", indices.len())?;
        for &index in indices {
            argument::index("indices", index, batch)?;
        }
        if indices.iter().copied().eq(0..batch) {
            return Ok(());
        }
        let heads = self.memories.len() / batch;
        let Moves {
            uses,
            lengths,
            before,
            unused,
        } = &mut self.moves;
        uses.clear();
        uses.resize(batch, 0);
        indices.iter().for_each(|&b| uses[b] += 1);
        before.extend(self.memories.drain(..).map(Some));
        for (own, _) in before
            .chunks_mut(heads)
            .zip(&*uses)
            .filter(|own| *own.1 == 0)
        {
            unused.extend(own.iter_mut().filter_map(Option::take));
        }
        for &b in indices {
            uses[b] -= 1;
            for memory in &mut before[b * heads..(b + 1) * heads] {
                if uses[b] == 0 {
                    self.memories.extend(memory.take());
                    continue;
                }
                let memory = memory.as_deref().expect("the last to use it takes it");
                self.memories.push(match unused.pop() {
                    Some(mut own) => {
                        own.copy_from(memory);
                        own
                    }
                    None => memory.copy(),
                });
            }
        }
        before.clear();
        unused.clear();
        lengths.clone_from(&self.lengths);
        self.lengths.clear();
        self.lengths.extend(indices.iter().map(|&b| lengths[b]));
        let none = std::iter::repeat_n(0, indices.len());
        self.nothing.set_key_lengths(none);
        self.size.batch = indices.len();
        self.settings.reorder(indices);
        Ok(())
    }

    /// Whether the memory of a sequence may hold positions that are not all on one path: keys and values, and neither a
    /// window nor a bias, which need the distance of two positions.
    #[cfg(feature = "dfdx")]
    pub(crate) fn can_branch(&self) -> bool {
        let settings = &self.settings;
        let by_distance = settings.mask.has_starts() || settings.bias.is_some();
        !by_distance && self.memories.iter().all(|memory| memory.can_branch())
    }

    /// Forgets the positions of a sequence that are not marked, if it can branch.
    #[cfg(feature = "dfdx")]
    pub(crate) fn keep(&mut self, b: usize, marks: &[bool]) {
        let heads = self.memories.len() / self.size.batch;
        let memories = &mut self.memories[b * heads..(b + 1) * heads];
        memories.iter_mut().for_each(|memory| memory.keep(marks));
        self.lengths[b] = memories[0].length();
    }
}
