//! The forward pass over all heads of a call.

use super::arguments::operand_rows;
use super::linear_time::{self, Starts};
use super::rescaling::{copy_or, divided};
use super::scan::ResultRows;
use super::{
    Arguments, Exponents, Finite, Head, HeadAt, Level, OutputRows, Packed, RowStatistics, Rows,
    TernaryRows,
};
use crate::Form;
use crate::score::{PairKernel, Raw, Score, Side};
use bochner_numerics::memory::{Unwritten, overwritten_by};
use bochner_numerics::{Buffer, Mat, Real, parallel};

/// What is kept between the passes besides the output: O(T) numbers a head.
pub(super) struct Kept<T, S> {
    pub(super) heads: Buffer<Prepared<T, S>>,
    /// The statistics of each row of each head.
    pub(super) statistics: Buffer<RowStatistics<T>>,
    /// What the parts of each head start from, if the linear-time form was taken.
    pub(super) starts: Option<Starts<T>>,
}

/// What the scores of one head are computed from. By default, nothing yet.
#[derive(Default)]
pub(super) struct Prepared<T, S> {
    /// The operands of queries and of keys; `None` where the kernel multiplies the rows themselves.
    pub(super) left: Option<Buffer<T>>,
    pub(super) right: Option<Buffer<T>>,
    /// The operands as bits, if their numbers are ternary.
    pub(super) ternary: Option<[TernaryRows; 2]>,
    pub(super) score: S,
    pub(super) exponents: Option<Exponents>,
    /// Whether the operands are finite, checked once a head because every block reads it.
    pub(super) finite: Finite,
    /// The power of two by which values were divided.
    pub(super) unit: i32,
}

impl<T: Real, S: Score<T>> Prepared<T, S> {
    /// Everything that the quadratic form needs.
    pub(super) fn new<K: PairKernel<T, Score = S>>(kernel: &K, at: &HeadAt<T>, score: S) -> Self {
        let operand = |side, x| kernel.operand(at, &score, side, x);
        let left = operand(Side::Queries, at.queries());
        let right = operand(Side::Keys, at.keys());
        let prepared = Self {
            left,
            right,
            ..Self::without_operands(kernel, at, score)
        };
        let (left, right) = prepared.operands(kernel, at);
        let finite = Finite::of(kernel, left, right, at.values());
        Self { finite, ..prepared }
    }

    /// With ternary operands as bits, from which whole blocks of scores are made.
    pub(super) fn with_bits<K: PairKernel<T, Score = S>>(self, kernel: &K, at: &HeadAt<T>) -> Self {
        // NaN has no bits.
        let is_ternary = S::RAW == Raw::Ternary && self.finite.left && self.finite.right;
        let ternary = (is_ternary && at.width() >= LEAST_WIDTH_OF_BITS).then(|| {
            let (words, (left, right)) = (at.workspace().pool(), self.operands(kernel, at));
            [left, right].map(|x| TernaryRows::new(&words, x.data(), x.shape().1))
        });
        Self { ternary, ..self }
    }

    /// What the queries of one more head need, whose keys are prepared with another's.
    pub(super) fn of_queries<K: PairKernel<T, Score = S>>(
        kernel: &K,
        at: &HeadAt<T>,
        score: S,
    ) -> Self {
        Self {
            left: kernel.operand(at, &score, Side::Queries, at.queries()),
            score,
            ..Self::default()
        }
    }

    /// All but the operands: the linear-time form makes them when a head's turn comes.
    pub(super) fn without_operands<K: PairKernel<T, Score = S>>(
        kernel: &K,
        at: &HeadAt<T>,
        score: S,
    ) -> Self {
        Self {
            left: None,
            right: None,
            ternary: None,
            exponents: at.exponents(kernel, &score),
            score,
            finite: Finite::default(),
            unit: at.own_unit(kernel.operand_width(at.width())),
        }
    }

    /// What is multiplied: the operands, or queries and keys themselves.
    pub(super) fn operands<'b, K: PairKernel<T>>(
        &'b self,
        kernel: &K,
        at: &HeadAt<'b, T>,
    ) -> (Mat<'b, T>, Mat<'b, T>) {
        let width = kernel.operand_width(at.width());
        (
            operand_rows(&self.left, at.queries(), width),
            operand_rows(&self.right, at.keys(), width),
        )
    }

    /// The least part of the sum of its keys' factors that is left in a row's normaliser: the mean
    /// similarity of the row that is the least alike to its keys. 1 where no row keeps a key.
    fn least_share(&self, statistics: &[RowStatistics<T>], rows: Rows) -> f64 {
        let Some(exponents) = &self.exponents else {
            return 1.0;
        };
        let (mut sum, mut seen, mut reference, mut least) = (0.0, 0, Level::NONE, 1.0);
        for (i, row) in statistics.iter().enumerate() {
            sum *= match reference == row.reference {
                true => 1.0,
                false => reference.minus(row.reference).exp(),
            };
            reference = row.reference;
            let new = seen..rows.limit(i);
            seen = new.end;
            exponents.differences::<T>(None, new, reference, |_, differences| {
                sum += differences.iter().map(|x| x.exp()).sum::<f64>();
            });
            if seen > 0 {
                least = f64::min(least, row.normaliser.as_f64() / sum);
            }
        }
        least
    }

    /// The head in front of the engine.
    pub(super) fn head<'b, K: PairKernel<T>>(
        &'b self,
        kernel: &K,
        at: &HeadAt<'b, T>,
        values: Mat<'b, T>,
    ) -> Head<'b, T, S> {
        let (left, right) = self.operands(kernel, at);
        Head {
            left,
            right,
            ternary: self.ternary.as_ref(),
            values,
            finite: self.finite,
            score: &self.score,
            exponents: self.exponents.as_ref(),
            unit: self.unit,
            bias: at.bias(),
            rows: at.rows(),
            dropout: at.dropout(),
            blocks: at.arguments.blocks,
            packed: Packed::NONE,
            workspace: at.workspace(),
        }
    }
}

/// Attention of all heads.
pub(super) fn attend<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    keep: bool,
    output: Unwritten<T>,
) -> Kept<T, K::Score> {
    let rows = call.all_heads() * call.queries;
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = call.workspace.pool().filled(rows, none);
    let in_linear_time = |h: usize| call.at(h).form() == Form::LinearTime;
    let (heads, starts) = match (0..call.all_heads()).any(in_linear_time) {
        true => {
            let output = output.zeros();
            let mut heads = without_operands(kernel, call);
            let mut starts = overwritten_by(output, |output| {
                let statistics = &mut statistics;
                let out = OutputRows { output, statistics };
                linear_time::attend(kernel, call, &heads, in_linear_time, out)
            });
            if call.settings.form == Form::Automatic {
                let rows = (output, &mut statistics[..]);
                others_pair_by_pair(kernel, call, keep, rows, (&mut heads, &mut starts));
            }
            (heads, Some(starts))
        }
        false => {
            let statistics = &mut statistics;
            let out = OutputRows { output, statistics };
            (pair_by_pair(kernel, call, keep, out), None)
        }
    };
    Kept {
        heads,
        statistics,
        starts,
    }
}

/// Attention, pair by pair, of the heads that have no sums to start from, or for which these are not accurate
/// enough.
fn others_pair_by_pair<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    keep: bool,
    rows: (&mut [T], &mut [RowStatistics<T>]),
    (heads, starts): (&mut [Prepared<T, K::Score>], &mut Starts<T>),
) {
    let (queries, size) = (call.queries, call.queries * call.value_width);
    let (output, statistics) = rows;
    parallel::for_each_piece(
        (output, statistics, heads, &mut starts[..]),
        call.all_heads(),
        |(output, statistics, heads, starts), h, next| {
            let n = next - h;
            let (output, more_output) = output.split_at_mut(n * size);
            let (statistics, more_statistics) = statistics.split_at_mut(n * queries);
            let (heads, more_heads) = heads.split_at_mut(n);
            let (starts, more_starts) = starts.split_at_mut(n);
            let more = (more_output, more_statistics, more_heads, more_starts);
            ((output, statistics, heads, starts), more)
        },
        |h, (output, statistics, heads, starts)| {
            let (head, starts) = (&mut heads[0], &mut starts[0]);
            let share = match starts.is_empty() {
                true => 0.0,
                false => head.least_share(statistics, call.at(h).rows()),
            };
            if share < LEAST_SHARE {
                starts.clear();
                let prepared = overwritten_by(output, |output| {
                    attend_head(kernel, call, h, OutputRows { output, statistics })
                });
                if keep {
                    *head = prepared;
                }
            }
        },
    );
}

/// All heads but for their operands.
pub(super) fn without_operands<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
) -> Buffer<Prepared<T, K::Score>> {
    let mut heads = call.workspace.pool().empty(call.all_heads());
    let prepare = |h| {
        let at = call.at(h);
        Prepared::without_operands(kernel, &at, kernel.score(&at))
    };
    parallel::map_into(call.all_heads(), prepare, &mut heads);
    heads
}

/// What a head needs is made and packed when its turn comes, so that it comes from the cache; if it is
/// not kept, the next head's takes the same memory.
fn pair_by_pair<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    keep: bool,
    out: OutputRows<T>,
) -> Buffer<Prepared<T, K::Score>> {
    let (queries, heads) = (call.queries, call.all_heads());
    let mut prepared = call.workspace.pool().empty(heads);
    prepared.resize_with(heads, Prepared::default);
    let attend = |h: usize, (rows, place): (OutputRows<T>, &mut [Prepared<T, K::Score>])| {
        let prepared = attend_head(kernel, call, h, rows);
        if keep {
            place[0] = prepared;
        }
    };
    parallel::for_each_piece(
        (out, &mut prepared[..]),
        heads,
        |(rows, prepared), h, next| {
            let (rows, more_rows) = rows.split_at((next - h) * queries);
            let (prepared, more) = prepared.split_at_mut(next - h);
            ((rows, prepared), (more_rows, more))
        },
        attend,
    );
    prepared
}

/// Attention of one head, pair by pair; what it was computed from.
fn attend_head<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    h: usize,
    rows: OutputRows<T>,
) -> Prepared<T, K::Score> {
    let (at, chunk) = (call.at(h), call.chunk());
    let prepared = Prepared::new(kernel, &at, kernel.score(&at)).with_bits(kernel, &at);
    let values = divided(at.values(), prepared.unit, at.numbers());
    let head = prepared.head(kernel, &at, copy_or(&values, at.values()));
    let packed = head.pack();
    let head = head.with(&packed);
    parallel::for_each_piece(
        rows,
        call.queries.div_ceil(chunk),
        |rows, i, next| rows.split_at((next - i) * chunk),
        |i, rows| head.forward(i * chunk, rows),
    );
    drop(packed);
    prepared
}

/// The width from which bits are multiplied rather than numbers: few columns take as many instructions as 64.
///
/// Measured at 4 to 128 columns in both types, with AVX-512, AVX2 and portable code: at 16 bits take .85 to 1.2 times as
/// long, at 32 at most .97.
const LEAST_WIDTH_OF_BITS: usize = 32;

/// The least share of a row's factors in its normaliser at which the linear-time form is kept without
/// being asked for.
///
/// Rounding errors of that form are absolute in the similarity: measured, an output is off by the
/// machine's epsilon over this share times the largest value, 64 epsilons here.
const LEAST_SHARE: f64 = 1.0 / 64.0;
