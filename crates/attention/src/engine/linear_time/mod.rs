//! Squared-kernel attention without pairs: time grows with the length, not with its square.
//!
//! With the features $\psi$ of which $f^2$ is the inner product, everything that any query needs
//! of the keys is the matrix $S = \sum_j g_j \psi_j [v_j | 1]^T$. Keys are summed up a block at a
//! time, queries read a block at a time. Causal rows read what the keys of the blocks before theirs
//! come to, and meet the keys of their own block pair by pair, as in the quadratic form; the sums
//! are relative to the largest exponent so far, because relative to that of the whole sequence one
//! late, large key would wipe out the early rows.
//!
//! The backward pass runs the same two steps with queries and keys exchanged. It recomputes the
//! causal sums block by block from those kept at the start of each task: kept at every block they
//! would take O(T R² dv / 128) memory, more than the sequence itself.
//!
//! Tasks are cut by the lengths of a sequence alone, padding aside, and joined in order, so the bits depend
//! neither on the number of threads nor on what else is in the batch.

mod backward;
mod columns;
mod features;
mod forward;
mod heads;
mod plan;
mod squares;
mod state;
mod sums;

use super::{Exponents, Head, Level};
use crate::score::{Score, SquareOf};
use bochner_numerics::{Buffer, Buffers, Real};
use plan::Plan;
use std::ops::Range;
use sums::Augmented;

pub(super) use forward::Starts;
pub(super) use heads::{attend, decode, pull_back};
pub(super) use plan::{BLOCK, Cut, aligned};
pub(crate) use squares::{FiniteRank, NoRank, Squares};
pub(crate) use state::linear_time_state;
pub(super) use sums::Sums;

/// One head in the linear-time form.
struct LinearTime<'a, T, S> {
    head: Head<'a, T, S>,
    exponents: &'a Exponents,
    /// $1 / \sqrt c$: the product of features scaled by it is f itself.
    scale: T,
    floor: T,
    plan: &'a Plan,
}

impl<T: Real, S: Score<T>> Head<'_, T, S> {
    /// What there is to do for the head, one of `heads` heads of its example.
    fn plan(&self, heads: usize) -> Plan {
        let exponents = self.exponents.expect(PRODUCTS);
        let keys = self.values.shape().0;
        let (workspace, width) = (self.workspace, self.value_width());
        Plan::new(workspace, &self.rows, exponents, keys, heads, width)
    }
}

/// Why a kernel with a linear-time form has exponents.
const PRODUCTS: &str = "weights that are products have a factor of each key";

impl<'a, T: Real, S: Score<T>> LinearTime<'a, T, S> {
    /// A head with a plan made for it.
    fn new(head: Head<'a, T, S>, plan: &'a Plan) -> Self {
        let square = head.score.square_of();
        let SquareOf { scale, floor } = square.expect("checked with the settings");
        Self {
            exponents: head.exponents.expect(PRODUCTS),
            scale,
            floor,
            plan,
            head,
        }
    }

    /// The sums over no keys.
    fn zeros(&self) -> Sums<T> {
        let count = self.plan.order.count(self.head.width());
        Sums::zeros(self.numbers(), count, self.head.value_width())
    }

    fn numbers(&self) -> &'a Buffers<T> {
        &self.head.workspace.numbers
    }

    /// $g_j$ of some keys.
    fn relative(&self, keys: Range<usize>, reference: Level) -> Buffer<T> {
        let mut g = self.numbers().empty(keys.len());
        self.exponents.relative(None, keys, reference, &mut g);
        g
    }

    fn squares(&self) -> S::Rank {
        let (order, width) = (self.plan.order, self.head.width());
        S::Rank::new(order, self.numbers(), width, self.scale)
    }
}
