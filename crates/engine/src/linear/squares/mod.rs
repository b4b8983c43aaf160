//! Squared-kernel attention without pairs: time grows with the length, not with its square.
//!
//! With the features $\psi$ of which $f^2$ is the inner product, everything that any query needs
//! of the keys is the matrix $S = \sum_j g_j \psi_j [v_j | 1]^T$. Keys are summed up a block at a
//! time, and queries read a block at a time. Causal rows read the sums over the blocks before theirs,
//! and meet the keys of their own block pair by pair, as in the pairwise form; the sums
//! are relative to the largest log-weight so far, because relative to that of the whole sequence one
//! late, large key would wipe out the early rows.

mod head;
mod order;
mod plan;
mod spread_columns;
mod sums;
mod symmetric_features;

pub(crate) use sums::Sums;

use crate::call::{HeadAt, Inputs};
use crate::kernel::PairKernel;
use crate::linear::{self, PrefixSums};
use crate::mask::HeadMask;
use crate::normaliser::Row;
use crate::pairwise::{Cotangent, Head, HeadGradients, Operands, OutputRows};
use bochner_numerics::Real;
use bochner_numerics::memory::overwritten_by;
use head::LinearTime;
use plan::Plan;

/// The sums that the parts of a head start from, in O(R² dv) memory each; if not causal, one for all.
pub(crate) type Starts<T> = Vec<Sums<T>>;

/// Attention of one head; returns the sums that its parts start from.
pub(crate) fn attend<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    operands: &Operands<T>,
    out: OutputRows<T>,
) -> Starts<T> {
    let packed = operands.packed(kernel, at, inputs);
    let plan = plan(at, operands.weights());
    let head = LinearTime::new(operands.head(kernel, at, inputs, &packed), &plan);
    let starts = linear::starts(&head);
    linear::read_all(&head, &starts, out);
    starts
}

/// Returns the gradients of one head along operands, values and log-weights.
pub(crate) fn pull_back<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    weights: Option<&[f64]>,
    starts: &[Sums<T>],
    given: &Cotangent<T>,
) -> HeadGradients<T> {
    let operands = Operands::new(kernel, at, inputs);
    let (packed, plan) = (operands.packed(kernel, at, inputs), plan(at, weights));
    let head = LinearTime::new(operands.head(kernel, at, inputs, &packed), &plan);
    let mut gradients = HeadGradients::zeros(&head.head, 0..at.call.shape.queries, false);
    linear::backward(&head, starts, given, &mut gradients);
    gradients
}

/// Adds positions to the sums over those before; with an output, attends from them.
pub(crate) fn decode<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    rows: HeadMask,
    sums: &mut Option<Sums<T>>,
    output: Option<&mut [T]>,
) {
    let operands = Operands::new(kernel, at, inputs);
    let packed = operands.packed(kernel, at, inputs);
    let head = Head {
        rows,
        ..operands.head(kernel, at, inputs, &packed)
    };
    let before = sums
        .as_ref()
        .map_or(f64::NEG_INFINITY, |sums| sums.reference);
    let width = head.values.shape().1;
    let plan = Plan::new(
        &rows,
        head.key_weights,
        inputs.k.shape().0,
        1,
        width,
        at.workspace(),
    )
    .behind(before);
    let head = LinearTime::new(head, &plan);
    let sums = sums.get_or_insert_with(|| head.zeros());
    let mut states = at.workspace().pool().filled(rows.queries, Row::new(0.0));
    let rows = &mut states[..];
    match output {
        Some(output) => overwritten_by(output, |output| {
            linear::follow(&head, sums, Some(OutputRows { output, rows }));
        }),
        None => linear::follow(&head, sums, None),
    }
}

/// Returns the plan of a head.
fn plan<T: Real>(at: &HeadAt<T>, weights: Option<&[f64]>) -> Plan {
    // By the heads of one example: a sum must not depend on how many there are in the batch.
    let shape = at.call.shape;
    Plan::new(
        &at.rows(),
        weights,
        at.kept(),
        shape.heads,
        shape.value_width,
        at.workspace(),
    )
}

/// Whether the linear-time form of a head is accurate: whether the mean similarity of every row and its keys is at
/// least [`LEAST_SHARE`]. That is the part of the sum of its keys' factors that is left in a row's normaliser.
pub(crate) fn is_accurate<T: Real>(
    at: &HeadAt<T>,
    weights: Option<&[f64]>,
    rows: &[Row<T>],
) -> bool {
    let mask = at.rows();
    let (mut sum, mut seen, mut reference) = (0.0, 0, 0.0);
    for (i, row) in rows.iter().enumerate() {
        if reference != row.reference {
            sum *= f64::exp(reference - row.reference);
            reference = row.reference;
        }
        let new = seen..mask.range(i).end;
        seen = new.end.max(seen);
        sum += match weights {
            None => new.len() as f64,
            Some(weights) => weights[new]
                .iter()
                .map(|u| (u - reference).min(0.0).exp())
                .sum(),
        };
        if seen > 0 && row.sum.as_f64() / sum < LEAST_SHARE {
            return false;
        }
    }
    true
}

/// The least share of a row's factors in its normaliser at which the linear-time form is kept without
/// being asked for.
///
/// Rounding errors of that form are absolute in the similarity: measured, an output is off by the
/// machine's epsilon over this share times the largest value, 64 epsilons here.
const LEAST_SHARE: f64 = 1.0 / 64.0;
