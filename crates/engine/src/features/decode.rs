//! Positions that come after those of earlier calls.

use super::head::{Head, Out};
use super::pairs::{Factors, Pairs, Row};
use super::sums::Sums;
use super::{FeatureMap, Mapped, block_sizes, check_finite};
use crate::call::{HeadAt, Inputs, blocks};
use crate::decoder::{first_seen, last_rows, seen_by_rule};
use crate::linear::{self, Course, PrefixSums};
use crate::mask::HeadMask;
use crate::{Error, Form};
use bochner_numerics::lists::remove_first;
use bochner_numerics::{Mat, Real};

/// The positions so far of one head.
#[derive(Clone, Debug)]
pub(crate) enum FeaturesCache<T: Real> {
    /// Their features and values.
    Pairs(PairsCache<T>),
    /// Sums over them, once there are any, and how many there are.
    Sums(Option<Sums<T>>, usize),
}

/// Features and values, a block of positions after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairsCache<T: Real> {
    keys: Vec<Factors<T>>,
    values: Vec<T>,
    /// The number of positions before those that are held: whole blocks.
    dropped: usize,
    length: usize,
}

impl<T: Real> FeaturesCache<T> {
    pub(crate) fn new(form: Form) -> Self {
        match form {
            Form::LinearTime => Self::Sums(None, 0),
            _ => Self::Pairs(PairsCache {
                keys: Vec::new(),
                values: Vec::new(),
                dropped: 0,
                length: 0,
            }),
        }
    }

    /// The number of positions.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.dropped + cache.length,
            Self::Sums(_, length) => *length,
        }
    }

    /// The first position that is held by itself.
    pub(crate) fn first(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.dropped,
            Self::Sums(_, length) => *length,
        }
    }

    /// The number of numbers.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Pairs(cache) => {
                cache
                    .keys
                    .iter()
                    .map(|keys| keys.block.size())
                    .sum::<usize>()
                    + cache.values.len()
            }
            Self::Sums(sums, _) => sums.as_ref().map_or(0, Sums::size),
        }
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        if let Self::Pairs(cache) = self {
            cache.truncate(length.saturating_sub(cache.dropped));
        }
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Sums(Some(own), length), Self::Sums(Some(sums), others)) => {
                own.copy_from(sums);
                *length = *others;
            }
            (own, other) => own.clone_from(other),
        }
    }
}

impl<T: Real> PairsCache<T> {
    fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        self.values
            .truncate(self.values.len() / self.length * length);
        let size = self.keys[0].block.rows;
        self.keys.truncate(length.div_ceil(size));
        if let Some(last) = self.keys.last_mut() {
            last.truncate(length - (length - 1) / size * size);
        }
        self.length = length;
    }
}

/// Adds the positions of a head that are not padding; with an output `[n, dv]` of the queries in `rows`, attends from
/// these to all so far.
pub(crate) fn decode<T: Real>(
    map: &dyn FeatureMap<T>,
    at: HeadAt<T>,
    inputs: Inputs<T>,
    queries: usize,
    cache: &mut FeaturesCache<T>,
    mut output: Option<&mut [T]>,
) -> Result<(), Error> {
    let (added, width) = (inputs.k.shape().0, at.call.shape.value_width);
    let inputs = Inputs {
        q: inputs.q.row_range(0..queries),
        ..inputs
    };
    let mapped = Mapped::new(map, at, inputs);
    let mask = at.call.settings.mask.without_lengths();
    let mut states = at.workspace().pool().filled(queries, Row::blind());
    match cache {
        FeaturesCache::Pairs(cache) => {
            mapped.append(cache);
            if let Some(output) = &mut output {
                let seen = seen_by_rule(&at, &mask, queries, cache.dropped, cache.length);
                let rows = last_rows(
                    &at,
                    &mask,
                    queries,
                    cache.length,
                    seen.as_ref().map(|seen| &seen[..]),
                );
                mapped.attend_from(cache, rows, output, &mut states);
            }
            cache.drop_first(
                first_seen(&mask, cache.length),
                block_sizes(at.call).keys,
                width,
            );
        }
        FeaturesCache::Sums(sums, length) => {
            let rows = last_rows(&at, &mask, queries, added, None);
            let course = Course::new(&rows, added, at.call.shape.heads, &at.workspace().pool());
            let head = Head {
                features: mapped.features,
                inputs,
                rows,
                course,
            };
            let sums = sums.get_or_insert_with(|| head.zeros());
            *length += added;
            let out = output.as_deref_mut().filter(|_| queries > 0).map(|output| {
                output.fill(T::zero());
                Out {
                    output,
                    rows: &mut states,
                }
            });
            linear::follow(&head, sums, out);
        }
    }
    output.map_or(Ok(()), |output| check_finite(&at, output))
}

impl<T: Real> Mapped<'_, T> {
    /// Appends the call's keys and values to a cache.
    fn append(&self, cache: &mut PairsCache<T>) {
        let size = block_sizes(self.at.call).keys;
        for position in 0..self.inputs.k.shape().0 {
            let block = self
                .features
                .of_keys(self.inputs.k.row_range(position..position + 1));
            let own = Factors::new(block, &self.features);
            match cache.keys.last_mut().filter(|keys| keys.block.rows < size) {
                Some(keys) => keys.append(&own),
                None => cache.keys.push(own),
            }
            cache.length += 1;
        }
        cache.values.extend_from_slice(self.inputs.v.data());
    }

    /// Attends from the call's queries to all positions that a cache holds; output rows are overwritten.
    fn attend_from(
        &self,
        cache: &PairsCache<T>,
        rows: HeadMask,
        output: &mut [T],
        states: &mut [Row<T>],
    ) {
        let (size, width) = (block_sizes(self.at.call), self.at.call.shape.value_width);
        let values = Mat::new(&cache.values, cache.length, width);
        output.fill(T::zero());
        for own in blocks(0..rows.queries, size.queries) {
            let q = self.queries(own.clone());
            let output = &mut output[own.start * width..own.end * width];
            let states = &mut states[own.clone()];
            for (n, k) in cache.keys.iter().enumerate() {
                let seen = n * size.keys..n * size.keys + k.block.rows;
                let pairs = Pairs {
                    features: self.features,
                    rows,
                    dropout: None,
                    first: (own.start, seen.start),
                };
                pairs.meet((&q, k), values.row_range(seen), states, output);
            }
            output
                .chunks_exact_mut(width)
                .zip(states)
                .for_each(|(output, row)| row.normalise(output));
        }
    }
}

impl<T: Real> PairsCache<T> {
    /// Drops whole blocks of the first positions that no later one sees.
    fn drop_first(&mut self, unseen: usize, size: usize, width: usize) {
        let gone = unseen / size;
        if gone == 0 {
            return;
        }
        let most = self.length - unseen + 2 * size;
        remove_first(&mut self.keys, gone, most.div_ceil(size));
        remove_first(&mut self.values, gone * size * width, most * width);
        self.dropped += gone * size;
        self.length -= gone * size;
    }
}
