//! The linear-time form over all heads of a call.

use super::forward::Starts;
use super::plan::Plan;
use super::{LinearTime, Sums};
use crate::engine::attend::Prepared;
use crate::engine::backward::{Cotangent, HeadGradients};
use crate::engine::decode::{last_rows, queries};
use crate::engine::rescaling::{copy_or, divided};
use crate::engine::scan::{self, ResultRows, Scanned};
use crate::engine::{Arguments, Finite, Head, HeadAt, Level, OutputRows, Packed, RowStatistics};
use crate::score::{PairKernel, Side};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Buffer, Mat, Real, parallel};

/// The operands that a step reads.
#[derive(Clone, Copy)]
pub(super) struct Reads {
    pub(super) queries: bool,
    pub(super) keys: bool,
}

/// Attention of the heads that are meant; what the parts of each start from, and nothing for the others, whose
/// rows become zero.
pub(in crate::engine) fn attend<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    prepared: &[Prepared<T, K::Score>],
    is_meant: impl Fn(usize) -> bool + Sync,
    out: OutputRows<T>,
) -> Starts<T> {
    let heads = prepared.len();
    let mut plans = call.workspace.pool().empty(heads);
    parallel::map_into(
        heads,
        |h| plan(kernel, &call.at(h), &prepared[h]),
        &mut plans,
    );
    let mut starts = call.workspace.pool().empty(heads);
    let of_keys = Reads {
        queries: false,
        keys: true,
    };
    let start = |h: usize| {
        if !is_meant(h) {
            return Buffer::default();
        }
        let at = call.at(h);
        let values = divided(at.values(), prepared[h].unit, at.numbers());
        let head = prepared[h].head(kernel, &at, copy_or(&values, at.values()));
        with_operands(kernel, &at, head, &plans[h], of_keys, |head| {
            scan::starts(&head, call.workspace)
        })
    };
    parallel::map_into(heads, start, &mut starts);
    let reads = Reads {
        queries: true,
        // Causal queries meet those of their own block pair by pair.
        keys: call.settings.mask.is_causal(),
    };
    parallel::for_each_piece(
        out,
        heads,
        |rows, h, next| rows.split_at((next - h) * call.queries),
        |h, rows| {
            if starts[h].is_empty() {
                rows.output.zeros();
                return;
            }
            let at = call.at(h);
            let values = divided(at.values(), prepared[h].unit, at.numbers());
            let head = prepared[h].head(kernel, &at, copy_or(&values, at.values()));
            let read = |head: LinearTime<T, K::Score>| scan::read_all(&head, &starts[h], rows);
            with_operands(kernel, &at, head, &plans[h], reads, read);
        },
    );
    starts
}

/// Gradients of one head with respect to operands, values and exponents, from sums whose values are
/// still to be divided by a power of two.
pub(in crate::engine) fn pull_back<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: &HeadAt<T>,
    prepared: &Prepared<T, K::Score>,
    values: Mat<T>,
    (starts, power): (&[Sums<T>], i32),
    given: &Cotangent<T>,
) -> HeadGradients<T> {
    let divided: Vec<Sums<T>>;
    let starts = match power {
        0 => starts,
        power => {
            let of_divided = |sums: &Sums<T>| sums.with_divided_values(power);
            divided = starts.iter().map(of_divided).collect();
            &divided
        }
    };
    let reads = Reads {
        queries: true,
        keys: true,
    };
    let plan = plan(kernel, at, prepared);
    let head = prepared.head(kernel, at, values);
    let backward = |head: LinearTime<T, K::Score>| {
        let mut gradients = HeadGradients::zeros(&head.head, 0..head.head.rows.queries);
        scan::backward(&head, starts, given, &mut gradients);
        gradients
    };
    with_operands(kernel, at, head, &plan, reads, backward)
}

/// Adds positions to the sums over those before; with an output, attends from them.
pub(in crate::engine) fn decode<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: &HeadAt<T>,
    sums: &mut Option<Sums<T>>,
    output: Option<&mut [T]>,
) {
    let added = at.kept();
    let prepared = Prepared::new(kernel, at, kernel.score(at));
    let (left, right) = prepared.operands(kernel, at);
    let queries = if output.is_some() { queries(at) } else { 0 };
    let mask = at.rows().mask.without_lengths();
    let head = Head {
        left: left.row_range(0..queries),
        right,
        rows: last_rows(at, &mask, queries, added),
        // Sums over all values so far have no unit of their own.
        unit: 0,
        ..prepared.head(kernel, at, at.values())
    };
    let before = sums.as_ref().map_or(Level::NONE, |sums| sums.reference);
    let plan = head.plan(1).behind(before);
    let workspace = head.workspace;
    let head = LinearTime::new(head, &plan);
    let sums = sums.get_or_insert_with(|| head.zeros());
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = workspace.pool().filled(queries, none);
    let statistics = &mut statistics;
    match output {
        Some(output) => overwritten_by(output, |output| {
            scan::follow(&head, sums, Some(OutputRows { output, statistics }));
        }),
        None => scan::follow(&head, sums, None),
    }
}

/// What there is to do for a head.
pub(super) fn plan<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: &HeadAt<T>,
    prepared: &Prepared<T, K::Score>,
) -> Plan {
    let head = prepared.head(kernel, at, at.values());
    // By the heads of one example: a sum must not depend on how many there are in the batch.
    head.plan(at.arguments.heads)
}

/// Calls `f` with a head whose operands are made now and gone afterwards: the operands of all heads at once
/// would take 2R / d times the memory of queries and keys. At any time as many heads as there are threads have
/// operands, or a few more where a thread that waits for a head's parts begins another head.
pub(super) fn with_operands<T: Real, K: PairKernel<T>, R>(
    kernel: &K,
    at: &HeadAt<T>,
    head: Head<T, K::Score>,
    plan: &Plan,
    reads: Reads,
    f: impl FnOnce(LinearTime<T, K::Score>) -> R,
) -> R {
    let operand = |side, x, read: bool| match read {
        true => kernel.operand(at, head.score, side, x).unwrap_or_default(),
        false => Default::default(),
    };
    let left = operand(Side::Queries, at.queries(), reads.queries);
    let right = operand(Side::Keys, at.keys(), reads.keys);
    let width = kernel.operand_width(at.width());
    let mut head = Head {
        left: Mat::new(&left, left.len() / width, width),
        right: Mat::new(&right, right.len() / width, width),
        ..head
    };
    let mut packed = Packed::default();
    if reads.queries && head.rows.mask.is_causal() {
        head.finite = Finite::of(kernel, head.left, head.right, head.values);
        packed = head.pack_for_backward();
    }
    f(LinearTime::new(head.with(&packed), plan))
}
