//! What is found out about a head before it is summed up.

use super::squares::Order;
use crate::Workspace;
use crate::engine::scan::{BLOCK, Course, Span};
use crate::engine::{Exponents, Level, Rows, blocks};
use bochner_numerics::{Buffer, Real};

/// The work of one head.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) course: Course,
    /// The reference of each row.
    pub(super) rows: Buffer<Level>,
    /// The largest exponent once a block of keys has been added.
    after: Buffer<Level>,
    pub(super) order: Order,
}

impl Plan {
    /// The plan of a head that keeps `keys` keys with values of some width, one of `heads`.
    pub(super) fn new<T: Real>(
        workspace: &Workspace<T>,
        rows: &Rows,
        exponents: &Exponents,
        keys: usize,
        heads: usize,
        value_width: usize,
    ) -> Self {
        let mut after = workspace.pool().empty(rows.keys.div_ceil(BLOCK));
        if rows.mask.is_causal() {
            let ends = blocks(0..rows.keys, BLOCK).map(|block| block.end.min(keys));
            after.extend(exponents.running_references(ends));
        } else {
            after.resize(rows.keys.div_ceil(BLOCK), exponents.largest_from(0));
        }
        let mut references = workspace.pool().empty(rows.queries);
        let limits = (0..rows.queries).map(|i| rows.limit(i));
        references.extend(exponents.running_references(limits));
        Self {
            course: Course::new(workspace, rows, keys, heads),
            rows: references,
            after,
            order: Order::for_values(value_width),
        }
    }

    /// The plan after earlier keys, of which this is the largest exponent; for few positions.
    pub(crate) fn behind(mut self, earlier: Level) -> Self {
        self.order = Order::Features;
        for level in self.after.iter_mut().chain(self.rows.iter_mut()) {
            *level = earlier.max(*level);
        }
        self
    }

    /// The largest exponent once the keys of a span have been added.
    pub(super) fn after(&self, span: &Span) -> Level {
        self.after[span.keys.start / BLOCK]
    }
}
