//! The positions that a decoder holds in its caches: their number, their order and their removal.

use super::Cache;
use super::cache::{PairsCache, first_seen};
use super::{Decoder, DecoderSize};
use crate::Error;
use crate::Form;
use crate::call::HEADS_OF_K;
use crate::features::FeaturesCache;
use crate::settings::Kernel;
use bochner_numerics::{Real, argument};

/// Memory of a reorder apart from the caches, kept for the next reorder.
pub(super) struct Moves<T: Real> {
    /// The number of sequences that still have to take over each cache of before the reorder.
    uses: Vec<usize>,
    /// The lengths before the reorder.
    lengths: Vec<usize>,
    /// The caches before the reorder, until sequences take them over.
    before: Vec<Option<Cache<T>>>,
    /// The caches that no sequence takes over.
    unused: Vec<Cache<T>>,
}

impl<T: Real> Default for Moves<T> {
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
        self.caches.iter().map(|cache| cache.size()).sum()
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
        if self.lengths.iter().all(|&length| length == 0) {
            if kv_heads != self.kv_heads {
                self.clear_for(kv_heads);
            }
            return Ok(());
        }
        if kv_heads == self.kv_heads {
            return Ok(());
        }
        let allowed = format!("{}, as for the positions so far", self.kv_heads);
        Err(argument::out_of_range(HEADS_OF_K, kv_heads as f64, allowed).into())
    }

    /// Makes an empty cache of each head of keys, or of each head of queries that has operands of keys of its own.
    pub(super) fn clear_for(&mut self, kv_heads: usize) {
        let DecoderSize { batch, heads, .. } = self.size;
        let count = if self.shares_caches() {
            kv_heads
        } else {
            heads
        };
        self.caches = (0..batch * count).map(|_| self.empty()).collect();
        self.kv_heads = kv_heads;
    }

    /// Whether heads of queries that read the same keys share a cache.
    fn shares_caches(&self) -> bool {
        match &self.settings.kernel {
            Kernel::Pairs(kernel) => {
                !kernel.has_own_operands() && self.settings.form != Form::LinearTime
            }
            _ => false,
        }
    }

    fn empty(&self) -> Cache<T> {
        let form = self.settings.form;
        match &self.settings.kernel {
            Kernel::Pairs(_) if form == Form::LinearTime => Cache::Pairs(PairsCache::Sums(None, 0)),
            Kernel::Pairs(_) => Cache::Pairs(PairsCache::Positions(Default::default())),
            Kernel::Features(_) => Cache::Features(FeaturesCache::new(form)),
            Kernel::Scan(_) => Cache::Scan(Vec::new(), 0),
        }
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
        let mut caches = self.caches.iter();
        if caches.any(|cache| cache.length() > length && cache.first() > needed) {
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

    /// Sequence `b` becomes what `indices[b]` was, spectral points of its own included: for beam
    /// search. There may be more or fewer sequences than before.
    ///
    /// The last sequence to take over a state takes it as it is, the others copy it: where the states are sums, into
    /// those that no sequence takes over. So nothing is allocated for them while there are no more sequences than before.
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
            before,
            unused,
        } = &mut self.moves;
        uses.clear();
        uses.resize(batch, 0);
        indices.iter().for_each(|&b| uses[b] += 1);
        before.extend(self.caches.drain(..).map(Some));
        for (own, _) in before
            .chunks_mut(heads)
            .zip(&*uses)
            .filter(|(_, uses)| **uses == 0)
        {
            unused.extend(own.iter_mut().filter_map(Option::take));
        }
        for &b in indices {
            uses[b] -= 1;
            for cache in &mut before[b * heads..(b + 1) * heads] {
                if uses[b] == 0 {
                    self.caches.extend(cache.take());
                    continue;
                }
                let cache = cache.as_ref().expect("the last to use it takes it");
                self.caches.push(match unused.pop() {
                    Some(mut own) => {
                        own.copy_from(cache);
                        own
                    }
                    None => cache.clone(),
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
        self.lengths[b] = caches[0].length();
    }
}

impl<T: Real> Cache<T> {
    /// The number of positions.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.length(),
            Self::Features(cache) => cache.length(),
            Self::Scan(_, length) => *length,
        }
    }

    /// The first position that is held by itself: those before it are dropped, or have gone into sums.
    fn first(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.first(),
            Self::Features(cache) => cache.first(),
            Self::Scan(_, length) => *length,
        }
    }

    /// The number of numbers.
    fn size(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.size(),
            Self::Features(cache) => cache.size(),
            Self::Scan(state, _) => state.len(),
        }
    }

    /// Drops all positions but the first ones, if there are more; the others must be held by themselves.
    fn truncate(&mut self, length: usize) {
        match self {
            Self::Pairs(cache) => cache.truncate(length),
            Self::Features(cache) => cache.truncate(length),
            Self::Scan(..) => {}
        }
    }

    /// Becomes a copy of another cache of the same kernel; sums are written over those that are there.
    fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Pairs(own), Self::Pairs(other)) => own.copy_from(other),
            (Self::Features(own), Self::Features(other)) => own.copy_from(other),
            (own, other) => own.clone_from(other),
        }
    }

    fn can_branch(&self) -> bool {
        matches!(self, Self::Pairs(cache) if cache.can_branch())
    }

    fn keep(&mut self, marks: &[bool]) {
        if let Self::Pairs(cache) = self {
            cache.keep(marks);
        }
    }
}
