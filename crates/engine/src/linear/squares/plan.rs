//! The plan of a head: all that is decided before its sums are computed.

use super::order::Order;
use crate::call::blocks;
use crate::linear::{BLOCK, Course, Span};
use crate::mask::HeadMask;
use crate::workspace::Workspace;
use bochner_numerics::{Buffer, Buffers};

/// The work of one head.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) course: Course,
    /// The reference of each row.
    pub(super) rows: Buffer<f64>,
    /// The largest exponent once a block of keys has been added.
    after: Buffer<f64>,
    pub(super) order: Order,
}

impl Plan {
    /// The plan of a head with these log-weights of its keys and with values of some width, one of `heads`.
    pub(super) fn new<T>(
        rows: &HeadMask,
        weights: Option<&[f64]>,
        keys: usize,
        heads: usize,
        value_width: usize,
        workspace: &Workspace<T>,
    ) -> Self {
        let levels = workspace.pool();
        let limits = (0..rows.queries).map(|i| rows.range(i).end);
        let blocks = blocks(0..rows.keys, BLOCK);
        let after = match rows.mask.is_causal() {
            true => running(weights, blocks.map(|block| block.end.min(keys)), &levels),
            false => levels.filled(
                blocks.count(),
                running(weights, std::iter::once(keys), &levels)[0],
            ),
        };
        Self {
            course: Course::new(rows, keys, heads, &workspace.pool()),
            rows: running(weights, limits, &levels),
            after,
            order: Order::for_values(value_width),
        }
    }

    /// The plan after earlier keys, of which this is the largest exponent.
    pub(super) fn behind(mut self, earlier: f64) -> Self {
        for level in self.after.iter_mut().chain(self.rows.iter_mut()) {
            *level = earlier.max(*level);
        }
        self
    }

    /// The largest exponent once the keys of a span have been added.
    pub(super) fn after(&self, span: &Span) -> f64 {
        self.after[span.keys.start / BLOCK]
    }
}

/// The largest log-weight of the keys before each limit; limits never decrease. Minus infinity before any key.
fn running(
    weights: Option<&[f64]>,
    limits: impl Iterator<Item = usize>,
    levels: &Buffers<f64>,
) -> Buffer<f64> {
    let (mut largest, mut seen) = (f64::NEG_INFINITY, 0);
    let of_limit = |limit: usize| {
        if limit > seen {
            let new = weights.map_or(0.0, |all| {
                all[seen..limit].iter().copied().fold(largest, f64::max)
            });
            (largest, seen) = (largest.max(new), limit);
        }
        largest
    };
    let mut running = levels.empty(limits.size_hint().0);
    running.extend(limits.map(of_limit));
    running
}
