//! The positions that a decoder holds in its caches: their number, their order and their removal.

use super::Decoder;
use super::cache::Cache;
use crate::call::HEADS_OF_K;
use crate::settings::Kernel;
use crate::{Error, Form};
use bochner_numerics::{Real, argument};

/// Lists of a reorder, whose memory is kept for the next one: a beam search reorders at most steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves<T: Real> {
    /// The number of sequences that still have to take over each sequence.
    uses: Vec<usize>,
    lengths: Vec<usize>,
    /// The caches before the reorder, until sequences take them over.
    caches: Vec<Option<Cache<T>>>,
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
        self.caches.iter().map(Cache::size).sum()
    }

    /// Forgets all positions.
    pub fn reset(&mut self) {
        self.lengths.fill(0);
        self.clear_for(self.kv_heads);
    }

    /// Makes place for what is to be remembered of so many heads of keys.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are positions of another number of heads.
    pub(super) fn expect_kv_heads(&mut self, kv_heads: usize) -> Result<(), Error> {
        if kv_heads == self.kv_heads {
            return Ok(());
        }
        if self.lengths.iter().all(|&length| length == 0) {
            self.clear_for(kv_heads);
            return Ok(());
        }
        let allowed = format!("{}, as for the positions so far", self.kv_heads);
        Err(argument::out_of_range(HEADS_OF_K, kv_heads as f64, allowed).into())
    }

    /// Makes an empty cache of each head of keys, or of each head of queries that has operands of keys of its own.
    pub(super) fn clear_for(&mut self, kv_heads: usize) {
        let shares = match &self.settings.kernel {
            Kernel::Pairs(kernel) => {
                !kernel.has_own_operands() && self.settings.form != Form::LinearTime
            }
            _ => false,
        };
        let heads = if shares { kv_heads } else { self.size.heads };
        self.caches = vec![Cache::new(&self.settings); self.size.batch * heads];
        self.kv_heads = kv_heads;
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
        let needed = self.settings.mask.without_lengths().first_seen(length);
        let mut caches = self.caches.iter();
        if caches.any(|cache| cache.length > length && cache.first() > needed) {
            return Err(Error::Unsupported {
                what: "truncating to positions that are summed up (Form::LinearTime) or no longer held (a window)",
                instead: "a clone made at that length, or Form::Pairwise without a window",
            });
        }
        for cache in &mut self.caches {
            cache.truncate(length);
        }
        for own in &mut self.lengths {
            *own = length.min(*own);
        }
        Ok(())
    }

    /// Takes back the positions of a step that failed. Sums, which cannot be taken apart, are forgotten as a whole.
    pub(super) fn take_back(&mut self) {
        let heads = self.caches.len() / self.size.batch;
        let lengths = self
            .lengths
            .iter()
            .flat_map(|&length| std::iter::repeat_n(length, heads));
        let mut caches = self.caches.iter_mut().zip(lengths);
        if caches.any(|(cache, length)| cache.length > length && cache.first() > length) {
            return self.reset();
        }
        let lengths = self
            .lengths
            .iter()
            .flat_map(|&length| std::iter::repeat_n(length, heads));
        self.caches
            .iter_mut()
            .zip(lengths)
            .for_each(|(cache, length)| cache.truncate(length));
    }

    /// Sequence `b` becomes what `indices[b]` was, spectral points of its own included: for beam
    /// search. There may be more or fewer sequences than before.
    ///
    /// The last sequence to take over a state takes it as it is, the others copy it.
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
        let heads = self.caches.len() / batch;
        let Moves {
            uses,
            lengths,
            caches: before,
        } = &mut self.moves;
        uses.clear();
        uses.resize(batch, 0);
        indices.iter().for_each(|&b| uses[b] += 1);
        before.clear();
        before.extend(self.caches.drain(..).map(Some));
        // Copies take the memory of sums that no sequence takes over.
        for (own, _) in before
            .chunks_mut(heads)
            .zip(&*uses)
            .filter(|(_, uses)| **uses == 0)
        {
            own.fill(None);
        }
        for &b in indices {
            uses[b] -= 1;
            for cache in &mut before[b * heads..(b + 1) * heads] {
                let own = if uses[b] == 0 {
                    cache.take()
                } else {
                    cache.clone()
                };
                self.caches.extend(own);
            }
        }
        lengths.clone_from(&self.lengths);
        self.lengths.clear();
        self.lengths.extend(indices.iter().map(|&b| lengths[b]));
        let none = std::iter::repeat_n(0, indices.len());
        self.nothing.set_key_lengths(none);
        self.size.batch = indices.len();
        self.settings.reorder(indices);
        Ok(())
    }

    /// Whether the cache of a sequence may hold positions that are not all on one path: keys and values, and neither a
    /// window nor a bias nor a score that needs positions.
    pub fn can_branch(&self) -> bool {
        let settings = &self.settings;
        let by_distance = settings.mask.needs_pairs() || settings.bias.is_some();
        let by_kernel = settings
            .pair_kernel()
            .is_none_or(|kernel| kernel.uses_positions());
        !by_distance && !by_kernel && self.caches.iter().all(Cache::can_branch)
    }

    /// Drops the cached positions of a sequence whose mark is `false`, if it can branch.
    pub fn keep(&mut self, b: usize, marks: &[bool]) {
        let heads = self.caches.len() / self.size.batch;
        let caches = &mut self.caches[b * heads..(b + 1) * heads];
        caches.iter_mut().for_each(|cache| cache.keep(marks));
        self.lengths[b] = caches[0].length;
    }
}
