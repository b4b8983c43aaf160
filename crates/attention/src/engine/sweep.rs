//! Sweeps over the rows of a block: what happens between two matrix products.

use super::{Bias, Exponents, Head, Level, RowStatistics, Score};
use bochner_numerics::operations::record;
use bochner_numerics::{Operations, Real, elementary};
use std::ops::Range;

/// The keys of a block as one row sees them.
pub(super) struct RowBlock<'m> {
    /// The row.
    pub(super) i: usize,
    /// The first key of the block.
    pub(super) start: usize,
    /// How many keys of the block the lengths and causality keep.
    kept: usize,
    /// What the matrix says of those.
    matrix: Option<&'m [bool]>,
}

impl<'m> RowBlock<'m> {
    pub(super) fn new<T: Real>(head: &Head<'m, T>, i: usize, keys: &Range<usize>) -> Self {
        let kept = head.rows.limit(i).clamp(keys.start, keys.end) - keys.start;
        Self {
            i,
            start: keys.start,
            kept,
            matrix: head
                .rows
                .matrix(i)
                .map(|row| &row[keys.start..keys.start + kept]),
        }
    }

    /// Overwrites what the row does not keep, whatever stands there.
    pub(super) fn fill_masked<T: Copy>(&self, row: &mut [T], value: T) {
        row[self.kept..].fill(value);
        for (x, &keep) in row.iter_mut().zip(self.matrix.unwrap_or_default()) {
            if !keep {
                *x = value;
            }
        }
    }
}

/// What the exponents of a key block come to, kept from row to row while the reference stays.
pub(super) struct Relative<T> {
    reference: Option<Level>,
    values: Vec<T>,
}

impl<T: Real> Relative<T> {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            reference: None,
            values: vec![T::zero(); keys],
        }
    }

    /// `f(j, u_ij - reference)` of each key j of the block, at the given cost a key.
    fn get(
        &mut self,
        exponents: &Exponents,
        block: &RowBlock,
        reference: Level,
        cost: fn(usize) -> Operations,
        f: impl Fn(usize, f64) -> f64,
    ) -> &[T] {
        if exponents.has_pairs() || self.reference != Some(reference) {
            record(cost(self.values.len()));
            for (j, value) in (block.start..).zip(&mut self.values) {
                *value = T::of(f(j, exponents.difference(block.i, j, reference)));
            }
            self.reference = Some(reference);
        }
        &self.values
    }

    /// Relative exponentials, of which one a key is enough.
    fn exponentials(&mut self, exponents: &Exponents, block: &RowBlock, reference: Level) -> &[T] {
        let cost = Operations::exponentials;
        self.get(exponents, block, reference, cost, |_, difference| {
            difference.exp()
        })
    }

    /// What to add to the raw scores, in their own units; never so low that a sum with them would
    /// overflow.
    fn biases(&mut self, bias: &Bias, scale: f64, block: &RowBlock, reference: Level) -> &[T] {
        let lowest = T::min_value().as_f64() / 4.0;
        let cost = Operations::multiply_adds;
        self.get(&bias.exponents, block, reference, cost, |j, difference| {
            (difference / scale - bias.squares[j]).max(lowest)
        })
    }
}

/// Turns raw scores into weights relative to the row's reference and adds them to the normaliser.
///
/// Returns the factor by which what was summed up before must be multiplied.
pub(super) fn weigh<T: Real>(
    score: &Score,
    block: &RowBlock,
    relative: &mut Relative<T>,
    row: &mut [T],
    statistics: &mut RowStatistics<T>,
) -> T {
    let factor = match score {
        Score::Squared {
            normaliser,
            floor,
            exponents,
        } => {
            let g = relative.exponentials(exponents, block, statistics.reference);
            if statistics.level {
                row.copy_from_slice(g);
            } else {
                square(row, g, T::of(1.0 / normaliser), T::of(*floor));
            }
            block.fill_masked(row, T::zero());
            T::one()
        }
        Score::Periodic { wave, exponents } => {
            let g = relative.exponentials(exponents, block, statistics.reference);
            wave.similarities(row);
            record(Operations::multiply_adds(row.len()));
            row.iter_mut().zip(g).for_each(|(s, &g)| *s *= g);
            block.fill_masked(row, T::zero());
            T::one()
        }
        Score::Exponential { scale, bias } => {
            if let Some(bias) = bias {
                add(
                    row,
                    relative.biases(bias, *scale, block, statistics.reference),
                );
            }
            block.fill_masked(row, T::neg_infinity());
            online_exponential(row, saturated(*scale), &mut statistics.largest)
        }
    };
    statistics.normaliser = factor * statistics.normaliser + sum(row);
    factor
}

fn square<T: Real>(row: &mut [T], g: &[T], inverse: T, floor: T) {
    record(Operations::multiply_adds(3 * row.len()));
    for (x, &g) in row.iter_mut().zip(g) {
        let f = *x * inverse;
        *x = (f * f + floor) * g;
    }
}

fn add<T: Real>(row: &mut [T], more: &[T]) {
    row.iter_mut().zip(more).for_each(|(x, &b)| *x += b);
}

/// `x`, or the largest finite number: a scale multiplies differences, of which zero must stay zero.
fn saturated<T: Real>(x: f64) -> T {
    T::of(x).min(T::max_value())
}

/// `exp((x - max) scale)` with a running maximum; returns what the old maximum costs.
///
/// The difference comes first: it is exact where it decides anything, and never inf - inf.
fn online_exponential<T: Real>(row: &mut [T], scale: T, largest: &mut T) -> T {
    let before = *largest;
    let now = max(row).max(before);
    if now == T::neg_infinity() {
        row.fill(T::zero());
        return T::one();
    }
    *largest = now;
    record(Operations::multiply_adds(row.len() + 1) + Operations::exponentials(1));
    row.iter_mut().for_each(|x| *x = (*x - now) * scale);
    elementary::exp_in_place(row);
    ((before - now) * scale).exp()
}

/// Recomputes the normalised weights of a row into `p` and replaces its raw scores by
/// $\partial \log a_{ij} / \partial x_{ij}$ times the weight, for an exponential score in units of
/// its scale, for a periodic one doubled.
pub(super) fn weights_and_slopes<T: Real>(
    score: &Score,
    block: &RowBlock,
    relative: &mut Relative<T>,
    statistics: &RowStatistics<T>,
    row: &mut [T],
    p: &mut [T],
) {
    // At e = 0 the normaliser can be so small that its reciprocal overflows; 0 * inf is no weight.
    let inverse = statistics.normaliser.recip().min(T::max_value());
    match score {
        Score::Squared {
            normaliser,
            floor,
            exponents,
        } => {
            let g = relative.exponentials(exponents, block, statistics.reference);
            if statistics.level {
                p.iter_mut().zip(g).for_each(|(p, &g)| *p = g * inverse);
                row.fill(T::zero());
            } else {
                square_slopes(row, p, g, inverse, T::of(1.0 / normaliser), T::of(*floor));
            }
        }
        Score::Periodic { wave, exponents } => {
            let g = relative.exponentials(exponents, block, statistics.reference);
            wave.similarities_and_slopes(row, p);
            for ((x, p), &g) in row.iter_mut().zip(p.iter_mut()).zip(g) {
                *p = *p * g * inverse;
                *x *= *p;
            }
        }
        Score::Exponential { scale, bias } => {
            if let Some(bias) = bias {
                add(
                    row,
                    relative.biases(bias, *scale, block, statistics.reference),
                );
            }
            let (largest, scale) = (statistics.largest, saturated::<T>(*scale));
            row.iter_mut().for_each(|x| *x = (*x - largest) * scale);
            elementary::exp_in_place(row);
            for (x, p) in row.iter_mut().zip(p.iter_mut()) {
                *x *= inverse;
                *p = *x;
            }
        }
    }
    block.fill_masked(p, T::zero());
    block.fill_masked(row, T::zero());
}

fn square_slopes<T: Real>(row: &mut [T], p: &mut [T], g: &[T], inverse: T, scale: T, floor: T) {
    let double = scale + scale;
    // Near a common zero of all a row's similarities, at e = 0, the derivative of their logarithms
    // grows without bound; this far it is rounding alone.
    let steepest = T::max_value().sqrt().sqrt();
    for ((x, p), &g) in row.iter_mut().zip(p).zip(g) {
        let f = *x * scale;
        *p = (f * f + floor) * g * inverse;
        *x = (f * g * inverse * double).max(-steepest).min(steepest);
    }
}

/// The row's maximum, in sixteen lanes so that it vectorises; NaN counts as nothing.
fn max<T: Real>(row: &[T]) -> T {
    lanes(row, T::neg_infinity(), |a, b| if b > a { b } else { a })
}

/// The largest finite number without its sign.
pub(crate) fn largest<T: Real>(data: &[T]) -> T {
    lanes(data, T::zero(), |a, b| {
        let b = b.abs();
        if b > a && b < T::infinity() { b } else { a }
    })
}

/// The row's sum, in sixteen lanes: always the same order, whatever the machine.
pub(super) fn sum<T: Real>(row: &[T]) -> T {
    lanes(row, T::zero(), |a, b| a + b)
}

#[inline(always)]
fn lanes<T: Real>(row: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    let mut lanes = [start; 16];
    let chunks = row.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, x);
        }
    }
    lanes.iter().chain(rest).fold(start, |a, &b| f(a, b))
}
