//! Positions that come after those of earlier calls.

use super::pairs::Factors;
use super::sums::Sums;
use super::{Head, block_sizes, check_finite};
use crate::call::{Call, HeadAt, Inputs, blocks};
use crate::linear;
use crate::mask::HeadMask;
use crate::normaliser::Row;
use crate::pairwise::OutputRows;
use crate::{Error, FeatureMap};
use bochner_numerics::lists::remove_first;
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Mat, Real};

/// The features and the values of the positions so far of one head, a block of positions after the other.
#[derive(Clone, Debug)]
pub(crate) struct FeaturePositions<T: Real> {
    keys: Vec<Factors<T>>,
    values: Vec<T>,
    /// The number of positions before those that are held: whole blocks.
    pub(crate) dropped: usize,
    /// The number of positions that are held.
    pub(crate) length: usize,
}

impl<T: Real> Default for FeaturePositions<T> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            dropped: 0,
            length: 0,
        }
    }
}

impl<T: Real> FeaturePositions<T> {
    /// The number of numbers.
    pub(crate) fn size(&self) -> usize {
        let keys = self.keys.iter().map(|keys| keys.block.size());
        keys.sum::<usize>() + self.values.len()
    }

    /// Drops all positions but the first ones of those that are held.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.values
            .truncate(self.values.len() / self.length * length);
        let size = self.keys[0].block.rows;
        self.keys.truncate(length.div_ceil(size));
        if let Some(last) = self.keys.last_mut() {
            last.truncate(length - (length - 1) / size * size);
        }
        self.length = length;
    }

    /// Drops whole blocks of the first positions, `unseen` of which no later position sees.
    pub(crate) fn drop_first(&mut self, unseen: usize, call: &Call<T>) {
        let (size, width) = (block_sizes(call).keys, call.shape.value_width);
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

    /// Appends positions.
    fn append(&mut self, head: &Head<T>) {
        let size = block_sizes(head.at.call).keys;
        for position in 0..head.inputs.k.shape().0 {
            let own = Factors::new(head.of_keys(position..position + 1), head.numbers());
            match self.keys.last_mut().filter(|keys| keys.block.rows < size) {
                Some(keys) => keys.append(&own),
                None => self.keys.push(own),
            }
            self.length += 1;
        }
        self.values.extend_from_slice(head.inputs.v.data());
    }
}

/// Adds the positions of a head that are not padding; with an output `[n, dv]` of the queries, attends from these to
/// all so far.
pub(crate) fn decode<T: Real>(
    map: &dyn FeatureMap<T>,
    at: HeadAt<T>,
    inputs: Inputs<T>,
    positions: &mut FeaturePositions<T>,
    output: Option<&mut [T]>,
) -> Result<(), Error> {
    let mut head = Head::new(map, at, inputs);
    positions.append(&head);
    let Some(output) = output else { return Ok(()) };
    let mask = at.call.settings.mask.without_lengths();
    let (queries, length) = (inputs.q.shape().0, positions.length);
    let seen = at.seen_by_rule(&mask, queries, (positions.dropped, length));
    head.rows = at.last_rows(&mask, queries, length, seen.as_ref());
    let (size, width) = (block_sizes(at.call).queries, at.call.shape.value_width);
    let values = Mat::new(&positions.values, length, width);
    let mut states = at.workspace().pool().filled(queries, Row::new(0.0));
    output.fill(T::zero());
    let rows = states
        .chunks_mut(size)
        .zip(output.chunks_mut(size.saturating_mul(width)));
    for (queries, (rows, output)) in blocks(0..queries, size).zip(rows) {
        head.meet_all(queries, positions.keys.iter(), values, rows, output);
    }
    check_finite(&at, output)
}

/// Adds the positions of a head to sums over those before; with an output, attends from the queries in `rows`.
pub(crate) fn decode_sums<T: Real>(
    map: &dyn FeatureMap<T>,
    at: HeadAt<T>,
    inputs: Inputs<T>,
    rows: HeadMask,
    sums: &mut Option<Sums<T>>,
    output: Option<&mut [T]>,
) -> Result<(), Error> {
    let mut states = at.workspace().pool().filled(rows.queries, Row::new(0.0));
    let head = Head {
        rows,
        ..Head::new(map, at, inputs)
    }
    .in_linear_time();
    let sums = sums.get_or_insert_with(|| linear::PrefixSums::zeros(&head));
    let Some(output) = output else {
        linear::follow(&head, sums, None);
        return Ok(());
    };
    overwritten_by(output, |output| {
        let rows = &mut states[..];
        linear::follow(&head, sums, Some(OutputRows { output, rows }));
    });
    check_finite(&at, output)
}
