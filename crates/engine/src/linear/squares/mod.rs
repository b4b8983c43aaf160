//! Squared-kernel attention without pairs: time grows with the length, not with its square.
//!
//! With the features $\psi$ of which $f^2$ is the inner product, everything that any query needs
//! of the keys is the matrix $S = \sum_j g_j \psi_j [v_j | 1]^T$. Keys are summed up a block at a
//! time, and queries read a block at a time. Causal rows read the sums over the blocks before theirs,
//! and meet the keys of their own block pair by pair, as in the pairwise form; the sums
//! are relative to the largest log-weight so far, because relative to that of the whole sequence one
//! late, large key would wipe out the early rows.

mod backward;
mod forward;
mod order;
mod plan;
mod spread_columns;
mod state;
mod sums;
mod symmetric_features;

pub use state::{LinearTimeState, linear_time_state};
pub(crate) use sums::Sums;

use crate::call::{Call, HeadAt, Inputs};
use crate::kernel::PairKernel;
use crate::linear::{self, Course, PrefixSums, ResultRows, Span};
use crate::mask::HeadMask;
use crate::normaliser::Row;
use crate::pairwise::{
    self, Cotangent, GradientRows, Head, HeadGradients, Operands, OutputRows, Packed,
};
use crate::{Error, Form};
use bochner_numerics::{Buffer, Buffers, Real, parallel};
use order::Squares;
use plan::Plan;
use std::ops::Range;

/// The sums that the parts of a head start from, in O(R² dv) memory each; if not causal, one for all.
pub(crate) type Starts<T> = Vec<Sums<T>>;

/// One head in the linear-time form.
struct LinearTime<'a, T> {
    head: Head<'a, T>,
    /// The root of the factor of a product of operands: scaled by it, these have f itself as their product.
    scale: T,
    floor: T,
    plan: &'a Plan,
}

impl<'a, T: Real> LinearTime<'a, T> {
    /// Returns a head with a plan made for it.
    fn new(head: Head<'a, T>, plan: &'a Plan) -> Self {
        let square = head.kernel.square().expect("checked with the settings");
        let (scale, floor) = (T::of(square.scale.sqrt()), T::of(square.floor));
        Self {
            head,
            scale,
            floor,
            plan,
        }
    }

    fn numbers(&self) -> &'a Buffers<T> {
        &self.head.workspace.numbers
    }

    /// The width of operands, of which either side may have none at a step of decoding.
    fn width(&self) -> usize {
        self.head.kernel.operand_width(self.head.width)
    }
}

impl<T: Real> PrefixSums<T> for LinearTime<'_, T> {
    type Sums = Sums<T>;
    type Out<'o> = OutputRows<'o, T>;
    type Given<'g> = Cotangent<'g, T>;
    type Task = Squares<T>;

    fn course(&self) -> &Course {
        &self.plan.course
    }

    fn task(&self) -> Squares<T> {
        Squares::new(self.plan.order, self.numbers(), self.width(), self.scale)
    }

    fn zeros(&self) -> Sums<T> {
        let count = self.plan.order.count(self.width());
        Sums::zeros(self.numbers(), count, self.head.values.shape().1)
    }

    /// Relative to the last reference at once, so that no block rescales the sums.
    fn zeros_before(&self, last: &Span) -> Sums<T> {
        Sums {
            reference: self.plan.after(last),
            ..self.zeros()
        }
    }

    fn add(&self, squares: &mut Squares<T>, span: &Span, sums: &mut Sums<T>) {
        sums.raise(sums.reference.max(self.plan.after(span)));
        self.add_keys(span.keys.clone(), squares, sums);
    }

    fn read(&self, squares: &mut Squares<T>, span: &Span, sums: &Sums<T>, out: OutputRows<'_, T>) {
        self.read_span(span, squares, sums, out);
    }

    fn pull_queries(
        &self,
        squares: &mut Squares<T>,
        span: &Span,
        (sums, own): (&Sums<T>, &mut Sums<T>),
        given: &Cotangent<'_, T>,
        gradients: &mut GradientRows<T>,
    ) {
        self.pull_span(span, squares, sums, given, gradients);
        if !linear::RunningSums::is_empty(own) && !span.queries.is_empty() {
            self.add_span_queries(&span.queries, given, squares, own);
        }
    }

    fn add_queries(
        &self,
        squares: &mut Squares<T>,
        queries: &Range<usize>,
        given: &Cotangent<'_, T>,
        sums: &mut Sums<T>,
    ) {
        self.add_span_queries(queries, given, squares, sums);
    }

    fn pull_keys(
        &self,
        squares: &mut Squares<T>,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        self.pull_span_keys(keys, squares, sums, gradients);
    }
}

/// Attention of the heads that go in linear time, and of the others pair by pair.
pub(crate) fn attend<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    in_linear_time: &[bool],
    out: OutputRows<T>,
) -> AllHeads<T> {
    let (queries, heads) = (call.shape.queries, call.all_heads());
    let mut results: Vec<Option<HeadResult<T>>> = (0..heads).map(|_| None).collect();
    parallel::for_each_piece(
        (out, &mut results[..]),
        heads,
        |(rows, results), h, next| {
            let (rows, more_rows) = rows.split_at((next - h) * queries);
            let (results, more) = results.split_at_mut(next - h);
            ((rows, results), (more_rows, more))
        },
        |h, (rows, result)| {
            result[0] = Some(match in_linear_time[h] {
                true => attend_head(kernel, call, h, rows),
                false => pairwise::attend_head(kernel, call, h, rows)
                    .map(|operands| (operands, Vec::new())),
            });
        },
    );
    let all = results
        .into_iter()
        .flatten()
        .collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().unzip())
}

type AllHeads<T> = Result<(Vec<Operands<T>>, Vec<Starts<T>>), Error>;
type HeadResult<T> = Result<(Operands<T>, Starts<T>), Error>;

/// Attention of one head in linear time; pair by pair if that is not accurate enough and was not asked for.
fn attend_head<T: Real>(
    kernel: &dyn PairKernel<T>,
    call: &Call<T>,
    h: usize,
    out: OutputRows<T>,
) -> HeadResult<T> {
    let at = call.at(h);
    let OutputRows { output, rows } = out;
    let output = output.zeros();
    let admitted = at.admit()?;
    let inputs = admitted.inputs(&at);
    let operands = Operands::new(kernel, &at, &inputs);
    let plan = plan(&at, operands.weights());
    let starts = with_head(kernel, &at, &inputs, &operands, &plan, |head| {
        let starts = linear::starts(head);
        overwrite(output, rows, |out| linear::read_all(head, &starts, out));
        starts
    });
    let weights = operands.weights();
    let is_automatic = call.settings.form == Form::Automatic;
    if is_automatic && least_share(weights, rows, &at.rows()) < LEAST_SHARE {
        let operands = overwrite(output, rows, |out| {
            pairwise::attend_head(kernel, call, h, out)
        })?;
        return Ok((operands, Vec::new()));
    }
    // The operands of all heads at once would take 2R / d times the memory of queries and keys.
    let operands = Operands {
        left: Buffer::default(),
        right: Buffer::default(),
        ..operands
    };
    Ok((operands, starts))
}

/// Calls `f` with rows that are there already, to be written over.
fn overwrite<T: Real, R>(
    output: &mut [T],
    rows: &mut [Row<T>],
    f: impl FnOnce(OutputRows<T>) -> R,
) -> R {
    bochner_numerics::memory::overwritten_by(output, |output| f(OutputRows { output, rows }))
}

/// Calls `f` with a head whose operands are given.
fn with_head<T: Real, R>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    operands: &Operands<T>,
    plan: &Plan,
    f: impl FnOnce(&LinearTime<T>) -> R,
) -> R {
    let [_, right] = operands.matrices(inputs);
    // Causal queries meet those of their own block pair by pair.
    let packed = match at.rows().mask.is_causal() {
        true => Packed::new(kernel, right, at.workspace()),
        false => Packed::default(),
    };
    f(&LinearTime::new(
        operands.head(kernel, at, inputs, &packed),
        plan,
    ))
}

/// Returns the gradients of one head along operands, values and log-weights.
pub(crate) fn pull_back<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    inputs: &Inputs<T>,
    saved: &Operands<T>,
    starts: &[Sums<T>],
    given: &Cotangent<T>,
) -> HeadGradients<T> {
    let operands = Operands::new(kernel, at, inputs);
    let plan = plan(at, saved.weights());
    with_head(kernel, at, inputs, &operands, &plan, |head| {
        let mut gradients = HeadGradients::zeros(&head.head, 0..head.head.rows.queries, false);
        linear::backward(head, starts, given, &mut gradients);
        gradients
    })
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
    let inputs = Inputs {
        q: inputs.q.row_range(0..rows.queries),
        ..*inputs
    };
    let operands = Operands::new(kernel, at, &inputs);
    let [_, keys] = operands.matrices(&inputs);
    let packed = Packed::new(kernel, keys, at.workspace());
    let head = Head {
        rows,
        ..operands.head(kernel, at, &inputs, &packed)
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
    match output {
        Some(output) => overwrite(output, &mut states, |out| {
            linear::follow(&head, sums, Some(out))
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

/// The least part of the sum of its keys' factors that is left in a row's normaliser: the mean
/// similarity of the row that is the least alike to its keys. 1 where no row keeps a key.
fn least_share<T: Real>(weights: Option<&[f64]>, rows: &[Row<T>], mask: &HeadMask) -> f64 {
    let (mut sum, mut seen, mut reference, mut least) = (0.0, 0, 0.0, 1.0);
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
        if seen > 0 {
            least = f64::min(least, row.sum.as_f64() / sum);
        }
    }
    least
}

/// The least share of a row's factors in its normaliser at which the linear-time form is kept without
/// being asked for.
///
/// Rounding errors of that form are absolute in the similarity: measured, an output is off by the
/// machine's epsilon over this share times the largest value, 64 epsilons here.
const LEAST_SHARE: f64 = 1.0 / 64.0;
