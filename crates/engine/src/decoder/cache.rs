//! The positions so far of one head, and one step of the heads that share them.

use super::positions::Positions;
use crate::call::Call;
use crate::features::{self, FeaturePositions};
use crate::linear::{scan, squares};
use crate::settings::Kernel;
use crate::{Error, Form, Settings};
use bochner_numerics::Real;
use std::ops::Range;

/// The positions so far of one head.
#[derive(Clone, Debug)]
pub(super) struct Cache<T: Real> {
    /// The number of positions.
    pub(super) length: usize,
    held: Held<T>,
}

/// The contents of a cache.
#[derive(Clone, Debug)]
enum Held<T: Real> {
    /// Their keys and values.
    Positions(Positions<T>),
    /// Their features and values.
    Features(FeaturePositions<T>),
    /// Sums over them of a squared kernel, once there are any.
    Squares(Option<squares::Sums<T>>),
    /// Sums over them of features, once there are any.
    Sums(Option<features::Sums<T>>),
    /// The state of a scan, once there are any.
    State(Vec<T>),
}

impl<T: Real> Cache<T> {
    /// An empty cache.
    pub(super) fn new(settings: &Settings<T>) -> Self {
        let in_linear_time = settings.form == Form::LinearTime;
        let held = match &settings.kernel {
            Kernel::Pairs(_) if in_linear_time => Held::Squares(None),
            Kernel::Pairs(_) => Held::Positions(Positions::default()),
            Kernel::Features(_) if in_linear_time => Held::Sums(None),
            Kernel::Features(_) => Held::Features(FeaturePositions::default()),
            Kernel::Scan(_) => Held::State(Vec::new()),
        };
        Self { length: 0, held }
    }

    /// The first position that is held by itself: those before it are dropped, or have gone into sums.
    pub(super) fn first(&self) -> usize {
        match &self.held {
            Held::Positions(positions) => positions.dropped,
            Held::Features(positions) => positions.dropped,
            _ => self.length,
        }
    }

    /// The number of numbers.
    pub(super) fn size(&self) -> usize {
        match &self.held {
            Held::Positions(positions) => positions.size(),
            Held::Features(positions) => positions.size(),
            Held::Squares(sums) => sums.as_ref().map_or(0, squares::Sums::size),
            Held::Sums(sums) => sums.as_ref().map_or(0, features::Sums::size),
            Held::State(state) => state.len(),
        }
    }

    /// Drops all positions but the first ones, if there are more; the others must be held by themselves.
    pub(super) fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        match &mut self.held {
            Held::Positions(positions) => positions.truncate(length - positions.dropped),
            Held::Features(positions) => positions.truncate(length - positions.dropped),
            _ => unreachable!("positions in sums cannot be dropped"),
        }
        self.length = length;
    }

    /// Whether the positions need not be all on one path.
    pub(super) fn can_branch(&self) -> bool {
        matches!(self.held, Held::Positions(_))
    }

    /// Drops the positions whose mark is `false`, if the cache can branch.
    pub(super) fn keep(&mut self, marks: &[bool]) {
        if let Held::Positions(positions) = &mut self.held {
            positions.keep(marks);
            self.length = positions.length;
        }
    }

    /// Drops the first positions, which no later one sees, once they are enough to pay for moving the others.
    pub(super) fn drop_unseen(&mut self, call: &Call<T>) {
        let mask = call.settings.mask.without_lengths();
        match &mut self.held {
            Held::Positions(positions) => positions.drop_first(mask.first_seen(positions.length)),
            Held::Features(positions) => {
                positions.drop_first(mask.first_seen(positions.length), call);
            }
            _ => {}
        }
    }

    /// Adds the positions of some heads, which share the cache, that are not padding; with an output `[n, dv]` of each
    /// head, attends from them to all so far, and writes zeros for the others. Without causality there are no positions
    /// to add, and all queries attend to those so far.
    pub(super) fn decode(
        &mut self,
        call: &Call<T>,
        heads: Range<usize>,
        mut output: Option<&mut [T]>,
    ) -> Result<(), Error> {
        let (at, shape) = (call.at(heads.start), call.shape);
        let inputs = at.sequence(output.is_some())?;
        let (added, queries) = (inputs.k.shape().0, inputs.q.shape().0);
        self.length += added;
        let attending = match self.length {
            0 => 0,
            _ => queries * shape.value_width,
        };
        if let Some(output) = &mut output {
            let heads = output.chunks_exact_mut(shape.queries * shape.value_width);
            heads.for_each(|head| head[attending..].fill(T::zero()));
        }
        if added == 0 && attending == 0 {
            return Ok(());
        }
        if let (Held::Positions(positions), Kernel::Pairs(kernel)) =
            (&mut self.held, &call.settings.kernel)
        {
            return positions.decode(kernel.as_ref(), (call, heads, &inputs), output);
        }
        let output = output.map(|output| &mut output[..attending]);
        let mask = call.settings.mask.without_lengths();
        let rows = at.last_rows(&mask, queries, added, None);
        match (&mut self.held, &call.settings.kernel) {
            (Held::Features(positions), Kernel::Features(map)) => {
                features::decode(map.as_ref(), at, inputs, positions, output)
            }
            (Held::Squares(sums), Kernel::Pairs(kernel)) => {
                squares::decode(kernel.as_ref(), &at, &inputs, rows, sums, output);
                Ok(())
            }
            (Held::Sums(sums), Kernel::Features(map)) => {
                features::decode_sums(map.as_ref(), at, inputs, rows, sums, output)
            }
            (Held::State(state), Kernel::Scan(scan)) => {
                scan::decode(scan.as_ref(), at, &inputs, state, output)
            }
            _ => unreachable!("caches are made for the kernel"),
        }
    }
}
