//! Sweeps over the rows of a block: what happens between two matrix products.

use super::{Exponents, Head, Level, RowStatistics, Score};
use bochner_numerics::instructions::{Arithmetic, Task, exp2};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, Operations, Real};
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// The keys of a block as one row sees them.
pub(super) struct RowBlock<'m> {
    /// The row.
    pub(super) i: usize,
    /// The keys of the block.
    pub(super) keys: Range<usize>,
    /// How many of them the lengths and causality keep.
    kept: usize,
    /// What the matrix says of those.
    matrix: Option<&'m [bool]>,
}

impl<'m> RowBlock<'m> {
    pub(super) fn new<T: Real>(head: &Head<'m, T>, i: usize, keys: &Range<usize>) -> Self {
        let kept = head.rows.limit(i).clamp(keys.start, keys.end) - keys.start;
        let matrix = head.rows.matrix(i);
        Self {
            i,
            keys: keys.clone(),
            kept,
            matrix: matrix.map(|row| &row[keys.start..keys.start + kept]),
        }
    }

    /// Whether the row keeps every key of the block.
    #[inline(always)]
    fn keeps_all(&self) -> bool {
        self.kept == self.keys.len() && self.matrix.is_none()
    }

    /// Overwrites what the row does not keep, whatever stands there.
    #[inline(always)]
    pub(super) fn fill_masked<T: Copy>(&self, row: &mut [T], value: T) {
        row[self.kept..].fill(value);
        for (x, &keep) in row.iter_mut().zip(self.matrix.unwrap_or_default()) {
            if !keep {
                *x = value;
            }
        }
    }
}

/// What the keys of a block multiply similarities with or add to raw scores, kept from row to row
/// while the reference stays.
pub(super) struct Relative<'a, T> {
    reference: Option<Level>,
    /// Relative to the loudest of all keys.
    packed: &'a [T],
    /// Relative to another reference.
    own: Option<Buffer<T>>,
}

impl<'a, T: Real> Relative<'a, T> {
    /// Of the keys of a block, relative to the loudest of all keys.
    pub(super) fn new(head: &Head<'a, T>, keys: &Range<usize>) -> Self {
        let packed = head.packed.relative.as_ref();
        Self {
            reference: packed.map(|(reference, _)| *reference),
            packed: packed.map_or(&[], |(_, all)| &all[keys.clone()]),
            own: None,
        }
    }

    /// Of all keys, where every row has the same.
    pub(super) fn of_all(head: &Head<T>) -> Option<(Level, Buffer<T>)> {
        let reference = head.score.exponents()?.largest()?;
        let all = 0..head.right.shape().0;
        let mut values = head.workspace.numbers.empty(all.len());
        relative(head.score, 0, all, reference, &mut values);
        Some((reference, values))
    }

    fn get(&mut self, head: &Head<T>, block: &RowBlock, reference: Level) -> &[T] {
        let (score, keys) = (head.score, &block.keys);
        let same = self.reference == Some(reference);
        if !same || score.exponents().is_some_and(Exponents::has_pairs) {
            let new = || head.workspace.numbers.empty(keys.len());
            let own = self.own.get_or_insert_with(new);
            own.clear();
            relative(score, block.i, keys.clone(), reference, own);
            self.reference = Some(reference);
        }
        self.own.as_deref().map_or(self.packed, Vec::as_slice)
    }
}

/// Appends $\exp(u_{ij} - \text{reference})$; for an exponential score what to add to raw scores, in
/// their own units and never so low that a sum with them would overflow.
pub(super) fn relative<T: Real>(
    score: &Score,
    i: usize,
    keys: Range<usize>,
    reference: Level,
    out: &mut Vec<T>,
) {
    match score {
        Score::Squared { exponents, .. } | Score::Periodic { exponents, .. } => {
            exponents.relative(i, keys, reference, out);
        }
        Score::Exponential { bias: None, .. } => {}
        Score::Exponential {
            scale,
            bias: Some(bias),
        } => {
            record(Operations::multiply_adds(keys.len()));
            let lowest = T::min_value().as_f64() / 4.0;
            let bias_of = |(&difference, square): (&f64, &f64)| {
                T::of((difference / scale - square).max(lowest))
            };
            (bias.exponents).differences(i, keys, reference, |keys, differences| {
                out.extend(differences.iter().zip(&bias.squares[keys]).map(bias_of));
            });
        }
    }
}

/// Turns a block of raw scores into weights relative to the rows' references and adds them to the
/// normalisers.
pub(super) struct Weigh<'a, 'h, T> {
    pub(super) head: &'a Head<'h, T>,
    pub(super) queries: Range<usize>,
    pub(super) keys: &'a Range<usize>,
    pub(super) block: &'a mut [T],
    pub(super) statistics: &'a mut [RowStatistics<T>],
    /// By how much what a row has summed up before must be multiplied.
    pub(super) factors: &'a mut [T],
}

impl<T: Real> Task for Weigh<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let mut relative = Relative::new(self.head, self.keys);
        let rows = self.block.chunks_exact_mut(self.keys.len());
        let rows = rows.zip(self.statistics).zip(self.factors);
        for (i, ((row, statistics), factor)) in self.queries.zip(rows) {
            let at = RowBlock::new(self.head, i, self.keys);
            let given = relative.get(self.head, &at, statistics.reference);
            *factor = weigh::<T, A>(self.head.score, &at, given, row, statistics);
        }
    }
}

#[inline(always)]
fn weigh<T: Real, A: Arithmetic>(
    score: &Score,
    block: &RowBlock,
    relative: &[T],
    row: &mut [T],
    statistics: &mut RowStatistics<T>,
) -> T {
    let n = row.len();
    match score {
        Score::Squared {
            normaliser, floor, ..
        } => {
            if statistics.level {
                row.copy_from_slice(relative);
            } else {
                record(Operations::multiply_adds(3 * n));
                let (scale, floor) = (T::of(1.0 / normaliser), T::of(*floor));
                let all = square::<T, A>(row, relative, scale, floor);
                if block.keeps_all() {
                    statistics.normaliser += all;
                    return T::one();
                }
            }
        }
        Score::Periodic { wave, .. } => {
            wave.similarities(row);
            record(Operations::multiply_adds(n));
            row.iter_mut().zip(relative).for_each(|(s, &g)| *s *= g);
        }
        Score::Exponential { scale, .. } => {
            add(row, relative);
            block.fill_masked(row, T::neg_infinity());
            return online_exponential::<T, A>(row, binary(*scale), statistics);
        }
    }
    block.fill_masked(row, T::zero());
    statistics.normaliser += sum(row);
    T::one()
}

/// Replaces all raw scores by weights, and returns their [`sum`].
#[inline(always)]
fn square<T: Real, A: Arithmetic>(row: &mut [T], g: &[T], inverse: T, floor: T) -> T {
    let weight = |x: T, g: T| {
        let f = x * inverse;
        A::mul_add(f, f, floor) * g
    };
    let mut lanes = [T::zero(); 16];
    let ((chunks, rest), (given, given_rest)) = (row.as_chunks_mut::<16>(), g.as_chunks::<16>());
    for (chunk, given) in chunks.iter_mut().zip(given) {
        *chunk = std::array::from_fn(|n| weight(chunk[n], given[n]));
        add(&mut lanes, chunk);
    }
    for (x, &g) in rest.iter_mut().zip(given_rest) {
        *x = weight(*x, g);
    }
    total(lanes, rest)
}

#[inline(always)]
pub(super) fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.iter_mut().zip(more).for_each(|(x, &b)| *x += b);
}

/// The scale with which a difference is the exponent of a power of two, or the largest finite
/// number: a difference of zero must stay zero.
fn binary<T: Real>(scale: f64) -> T {
    T::of(scale * LOG2_E).min(T::max_value())
}

/// $2^{(x - \max) \text{scale}}$ with a running maximum, added to the normaliser; returns what the old
/// maximum costs.
///
/// The difference comes first: it is exact where it decides anything, and never inf - inf.
#[inline(always)]
fn online_exponential<T: Real, A: Arithmetic>(
    row: &mut [T],
    scale: T,
    statistics: &mut RowStatistics<T>,
) -> T {
    let before = statistics.largest;
    let now = max(row).max(before);
    if now == T::neg_infinity() {
        // No key is kept, unless none is a number.
        let all = row.iter().find(|x| x.is_nan()).copied();
        row.fill(all.unwrap_or_default());
        statistics.normaliser += all.unwrap_or_default();
        return T::one();
    }
    statistics.largest = now;
    record(Operations::multiply_adds(row.len() + 1) + Operations::exponentials(row.len() + 1));
    let weight = |x: T| exp2::<T, A>((x - now) * scale);
    let factor = weight(before);
    let sum = map_and_sum(row, weight);
    statistics.normaliser = factor * statistics.normaliser + sum;
    factor
}

/// $1 / x$, or the largest number where that overflows: 0 * inf is no weight. NaN stays NaN.
#[inline(always)]
fn finite_inverse<T: Real>(x: T) -> T {
    let inverse = x.recip();
    if inverse > T::max_value() {
        T::max_value()
    } else {
        inverse
    }
}

/// Recomputes the normalised weights of a row into `p` and replaces its raw scores by
/// $\partial \log a_{ij} / \partial x_{ij}$ times the weight, for an exponential score in units of
/// its scale, for a periodic one doubled.
#[inline(always)]
fn weights_and_slopes<T: Real, A: Arithmetic>(
    score: &Score,
    block: &RowBlock,
    relative: &[T],
    statistics: &RowStatistics<T>,
    row: &mut [T],
    p: &mut [T],
) {
    // At e = 0 the normaliser can be so small that its reciprocal overflows.
    let inverse = finite_inverse(statistics.normaliser);
    match score {
        Score::Squared {
            normaliser, floor, ..
        } => {
            if statistics.level {
                let weights = p.iter_mut().zip(relative);
                weights.for_each(|(p, &g)| *p = g * inverse);
                row.fill(T::zero());
            } else {
                let (scale, floor) = (T::of(1.0 / normaliser), T::of(*floor));
                square_slopes::<T, A>(row, p, relative, inverse, scale, floor);
            }
        }
        Score::Periodic { wave, .. } => {
            wave.similarities_and_slopes(row, p);
            for ((x, p), &g) in row.iter_mut().zip(p.iter_mut()).zip(relative) {
                *p = *p * g * inverse;
                *x *= *p;
            }
        }
        Score::Exponential { scale, .. } => {
            add(row, relative);
            let (largest, scale) = (statistics.largest, binary::<T>(*scale));
            record(Operations::exponentials(row.len()));
            for (x, p) in row.iter_mut().zip(p.iter_mut()) {
                *x = exp2::<T, A>((*x - largest) * scale) * inverse;
                *p = *x;
            }
        }
    }
    block.fill_masked(p, T::zero());
    block.fill_masked(row, T::zero());
}

#[inline(always)]
fn square_slopes<T: Real, A: Arithmetic>(
    row: &mut [T],
    p: &mut [T],
    g: &[T],
    inverse: T,
    scale: T,
    floor: T,
) {
    let double = scale + scale;
    // Near a common zero of all a row's similarities, at e = 0, the derivative of their logarithms
    // grows without bound; this far it is rounding alone.
    let steepest = T::max_value().sqrt().sqrt();
    for ((x, p), &g) in row.iter_mut().zip(p).zip(g) {
        let f = *x * scale;
        *p = A::mul_add(f, f, floor) * g * inverse;
        *x = (f * g * inverse * double).max(-steepest).min(steepest);
    }
}

/// Replaces raw scores by their gradients and the weights' gradients `dp` by the weights after
/// dropout; adds what flows into the exponents.
pub(super) struct PullBack<'a, 'h, T> {
    pub(super) head: &'a Head<'h, T>,
    pub(super) queries: Range<usize>,
    pub(super) keys: &'a Range<usize>,
    /// Of each query.
    pub(super) statistics: &'a [RowStatistics<T>],
    /// $O_i$ of each query.
    pub(super) output: Mat<'a, T>,
    /// $dO_i$ of each query.
    pub(super) cotangent: Mat<'a, T>,
    pub(super) x: &'a mut [T],
    pub(super) dp: &'a mut [T],
    pub(super) d_queries: &'a mut [T],
    pub(super) d_keys: &'a mut [T],
}

impl<T: Real> Task for PullBack<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let cols = self.keys.len();
        let mut relative = Relative::new(self.head, self.keys);
        let (mut p, mut factors) = (vec![T::zero(); cols], vec![T::one(); cols]);
        let rows = self
            .x
            .chunks_exact_mut(cols)
            .zip(self.dp.chunks_exact_mut(cols));
        for (r, (x, dp)) in rows.enumerate() {
            let (i, statistics) = (self.queries.start + r, &self.statistics[r]);
            let at = RowBlock::new(self.head, i, self.keys);
            if let Some(dropout) = self.head.dropout {
                dropout.fill(i, self.keys.start, &mut factors);
            }
            let delta = dot(self.cotangent.row(r), self.output.row(r));
            if let Score::Exponential { scale, bias: None } = self.head.score {
                pull_exponential::<T, A>(*scale, statistics, &factors, delta, x, dp);
                at.fill_masked(x, T::zero());
                at.fill_masked(dp, T::zero());
                continue;
            }
            let given = relative.get(self.head, &at, statistics.reference);
            weights_and_slopes::<T, A>(self.head.score, &at, given, statistics, x, &mut p);
            at.fill_masked(dp, T::zero());
            pull_row(&factors, delta, &mut p, x, dp);
            if let Some(exponents) = self.head.score.exponents()
                && exponents.has_pairs()
            {
                exponents.scale_by_factors(i, self.keys.start, &mut p);
                self.d_queries[r] += sum(&p);
            }
            add(self.d_keys, &p);
        }
    }
}

/// One row of an exponential score without a bias: `x` becomes the gradient of the raw scores in units
/// of the scale, `dp` the weights after dropout.
#[inline(always)]
fn pull_exponential<T: Real, A: Arithmetic>(
    scale: f64,
    statistics: &RowStatistics<T>,
    factors: &[T],
    delta: T,
    x: &mut [T],
    dp: &mut [T],
) {
    let inverse = finite_inverse(statistics.normaliser);
    let (largest, scale) = (statistics.largest, binary::<T>(scale));
    record(Operations::exponentials(x.len()));
    for ((x, dp), &factor) in x.iter_mut().zip(dp).zip(factors) {
        let weight = exp2::<T, A>((*x - largest) * scale) * inverse;
        *x = weight * (*dp * factor - delta);
        *dp = weight * factor;
    }
}

/// One row: `p` becomes the gradient of the exponents, `x` that of the raw scores, `dp` the weights
/// after dropout.
#[inline(always)]
fn pull_row<T: Real>(factors: &[T], delta: T, p: &mut [T], x: &mut [T], dp: &mut [T]) {
    for (((p, x), dp), &factor) in p.iter_mut().zip(x).zip(dp).zip(factors) {
        let gradient = *dp * factor - delta;
        *dp = *p * factor;
        *x *= gradient;
        *p *= gradient;
    }
}

/// The row's maximum, in sixteen lanes so that it vectorises; NaN counts as nothing.
#[inline(always)]
fn max<T: Real>(row: &[T]) -> T {
    lanes(row, T::neg_infinity(), |a, b| if b > a { b } else { a })
}

/// The row's sum, in sixteen lanes: always the same order, whatever the machine.
#[inline(always)]
pub(super) fn sum<T: Real>(row: &[T]) -> T {
    lanes(row, T::zero(), |a, b| a + b)
}

/// The rows' inner product, in the order of [`sum`].
#[inline(always)]
pub(super) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::zero(); 16];
    let ((chunks, rest), (others, other_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (chunk, other) in chunks.iter().zip(others) {
        for (lane, (&x, &y)) in lanes.iter_mut().zip(chunk.iter().zip(other)) {
            *lane += x * y;
        }
    }
    let rest = rest.iter().zip(other_rest).map(|(&x, &y)| x * y);
    lanes
        .into_iter()
        .chain(rest)
        .fold(T::zero(), |sum, x| sum + x)
}

/// Replaces all numbers, and returns their [`sum`].
#[inline(always)]
fn map_and_sum<T: Real>(row: &mut [T], f: impl Fn(T) -> T) -> T {
    let mut lanes = [T::zero(); 16];
    let (chunks, rest) = row.as_chunks_mut::<16>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = f(*x);
            *lane += *x;
        }
    }
    rest.iter_mut().for_each(|x| *x = f(*x));
    total(lanes, rest)
}

/// The sum of sixteen lanes and of what filled none.
#[inline(always)]
fn total<T: Real>(lanes: [T; 16], rest: &[T]) -> T {
    lanes.iter().chain(rest).fold(T::zero(), |sum, &x| sum + x)
}

#[inline(always)]
fn lanes<T: Real>(row: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    let mut lanes = [start; 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, x);
        }
    }
    lanes.iter().chain(rest).fold(start, |a, &b| f(a, b))
}
