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
//! Tasks are cut by the shapes alone and joined in order, so the bits do not depend on the number
//! of threads.

mod backward;
mod columns;
mod features;
mod forward;
mod plan;
mod squares;
mod sums;

use super::{Exponents, Head, Level, Score};
use bochner_numerics::{Buffer, Buffers, Real};
use squares::Squares;
use std::ops::Range;

pub(crate) use forward::{Starts, follow};
pub(crate) use plan::{Plan, Span};
use sums::Augmented;
pub(crate) use sums::Sums;

/// One head in the linear-time form.
pub(crate) struct LinearTime<'a, T> {
    head: Head<'a, T>,
    exponents: &'a Exponents,
    /// $1 / \sqrt c$: the product of features scaled by it is f itself.
    scale: T,
    floor: T,
    plan: &'a Plan,
}

impl<T: Real> Head<'_, T> {
    /// What there is to do for it, one of `heads` heads; `None` if its score is not a squared kernel.
    pub(crate) fn plan(&self, heads: usize) -> Option<Plan> {
        let (Score::Squared { exponents, .. }, keys) = (self.score, self.right.shape().0) else {
            return None;
        };
        Some(Plan::new(
            self.workspace,
            &self.rows,
            exponents,
            keys,
            heads,
            self.value_width(),
        ))
    }
}

impl<'a, T: Real> LinearTime<'a, T> {
    /// With a plan made for it; `None` if its score is not a squared kernel.
    pub(crate) fn new(head: Head<'a, T>, plan: &'a Plan) -> Option<Self> {
        let Score::Squared {
            normaliser,
            floor,
            exponents,
        } = head.score
        else {
            return None;
        };
        Some(Self {
            exponents,
            scale: T::of(normaliser.sqrt().recip()),
            floor: T::of(*floor),
            plan,
            head,
        })
    }

    /// The sums over no keys.
    pub(crate) fn zeros(&self) -> Sums<T> {
        let count = self.plan.order.count(self.head.width());
        Sums::zeros(self.numbers(), count, self.head.value_width())
    }

    fn numbers(&self) -> &'a Buffers<T> {
        &self.head.workspace.numbers
    }

    /// $g_j$ of the keys in sums over all of them.
    pub(crate) fn key_weights(&self, sums: &Sums<T>) -> Buffer<T> {
        self.relative(0..self.head.values.shape().0, sums.reference)
    }

    /// $g_j$ of some keys.
    fn relative(&self, keys: Range<usize>, reference: Level) -> Buffer<T> {
        let mut g = self.numbers().empty(keys.len());
        self.exponents.relative(0, keys, reference, &mut g);
        g
    }

    /// Calls `f(a, b, x)` with every entry of $\sum_j g_j y_{jn} \phi_j \phi_j^T$ of `width`
    /// features, `n` being a column of $[v | 1]$.
    pub(crate) fn second_moment(
        &self,
        sums: &Sums<T>,
        width: usize,
        n: usize,
        mut f: impl FnMut(usize, usize, T),
    ) {
        let unscaled = (self.scale * self.scale).recip();
        let f = |a, b, x| f(a, b, unscaled * x);
        (self.plan.order).each_entry(&sums.moments, width, n, f);
    }

    fn squares(&self) -> Squares<T> {
        Squares::new(
            self.plan.order,
            self.numbers(),
            self.head.width(),
            self.scale,
        )
    }
}
