//! Squared-kernel attention without pairs: time grows with the length, not with its square.
//!
//! With the features $\psi$ of which $f^2$ is the inner product, everything that any query needs
//! of the keys is the matrix $S = \sum_j g_j \psi_j [v_j | 1]^T$. Keys are summed up a block at a
//! time, queries read a block at a time. Causal rows read what the keys of the blocks before theirs
//! come to, and meet the keys of their own block pair by pair, as in the quadratic form; the sums
//! are relative to the largest exponent so far, because relative to that of the whole sequence one
//! late, large key would wipe out the early rows.
//!
//! The order of these steps, forward and backward, is the [scan](super::scan)'s.

mod backward;
mod features;
mod forward;
mod heads;
mod key_sums;
mod plan;
mod spread_columns;
mod squares;
mod state;

use super::backward::{Cotangent, GradientRows};
use super::scan::{Course, Scanned, Span, Summed};
use super::{Exponents, Head, Level, OutputRows};
use crate::score::{Score, SquareOf};
use bochner_numerics::{Buffer, Buffers, Real};
use key_sums::Augmented;
use plan::Plan;
use std::ops::Range;

pub(super) use forward::Starts;
pub(super) use heads::{attend, decode, pull_back};
pub(super) use key_sums::Sums;
pub(crate) use squares::{FiniteRank, NoRank, Squares};
pub(crate) use state::linear_time_state;

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

    fn numbers(&self) -> &'a Buffers<T> {
        &self.head.workspace.numbers
    }

    /// $g_j$ of some keys.
    fn relative(&self, keys: Range<usize>, reference: Level) -> Buffer<T> {
        let mut g = self.numbers().empty(keys.len());
        self.exponents.relative(None, keys, reference, &mut g);
        g
    }
}

impl<T: Real, S: Score<T>> Scanned<T> for LinearTime<'_, T, S> {
    type Sums = Sums<T>;
    type Out<'o> = OutputRows<'o, T>;
    type Given<'g> = Cotangent<'g, T>;
    type Task = S::Rank;

    fn course(&self) -> &Course {
        &self.plan.course
    }

    fn task(&self) -> S::Rank {
        let (order, width) = (self.plan.order, self.head.width());
        S::Rank::new(order, self.numbers(), width, self.scale)
    }

    fn zeros(&self) -> Sums<T> {
        let count = self.plan.order.count(self.head.width());
        Sums::zeros(self.numbers(), count, self.head.value_width())
    }

    /// Relative to the last reference at once, so that no block rescales the sums.
    fn zeros_before(&self, last: &Span) -> Sums<T> {
        Sums {
            reference: self.plan.after(last),
            ..self.zeros()
        }
    }

    fn add(&self, squares: &mut S::Rank, span: &Span, sums: &mut Sums<T>) {
        sums.raise(sums.reference.max(self.plan.after(span)));
        self.add_keys(span.keys.clone(), squares, sums);
    }

    fn read(&self, squares: &mut S::Rank, span: &Span, sums: &Sums<T>, out: OutputRows<'_, T>) {
        self.read_span(span, squares, sums, out);
    }

    fn pull_queries(
        &self,
        squares: &mut S::Rank,
        span: &Span,
        (sums, own): (&Sums<T>, &mut Sums<T>),
        given: &Cotangent<'_, T>,
        gradients: &mut GradientRows<T>,
    ) {
        self.pull_span(span, squares, sums, given, gradients);
        if !own.is_empty() && !span.queries.is_empty() {
            self.add_span_queries(&span.queries, given, squares, own);
        }
    }

    fn add_queries(
        &self,
        squares: &mut S::Rank,
        queries: &Range<usize>,
        given: &Cotangent<'_, T>,
        sums: &mut Sums<T>,
    ) {
        self.add_span_queries(queries, given, squares, sums);
    }

    fn pull_keys(
        &self,
        squares: &mut S::Rank,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        self.pull_span_keys(keys, squares, sums, gradients);
    }
}
