//! The inner product, squared.

use super::{AlongPoints, Earlier, Given, Gradient, PairKernel, Side, Square};
use crate::engine::HeadAt;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::{largest as largest_of, log2_range};
use bochner_numerics::{Buffer, Mat, Operations, Real};
use std::ops::Range;

/// $a_{ij} = (q_i \cdot k_j)^2$ up to a constant of the row.
///
/// The weights of a row depend neither on the size of its query nor on that of all its keys. So each
/// query is multiplied by the power of two that brings the largest product of its coordinates with
/// those of a key near one; keys that the row does not keep have no say in it.
#[derive(Clone, Debug)]
pub(crate) struct Linear;

impl<T: Real> PairKernel<T> for Linear {
    type Score = Square;

    fn score(&self, at: &HeadAt<T>) -> Square {
        Square {
            powers: powers(at, None),
            ..Square::default()
        }
    }

    fn score_after(&self, at: &HeadAt<T>, earlier: &Earlier<T>) -> Square {
        Square {
            powers: powers(at, Some(earlier)),
            ..Square::default()
        }
    }

    fn operand(&self, at: &HeadAt<T>, score: &Square, side: Side, x: Mat<T>) -> Option<Buffer<T>> {
        (side == Side::Queries).then(|| {
            let mut scaled = at.numbers().empty(x.data().len());
            for (row, &power) in x.data().chunks_exact(at.width()).zip(&score.powers) {
                scaled.extend(row.iter().map(|x| T::of(libm::scalbn(x.as_f64(), power))));
            }
            scaled
        })
    }

    fn pull_back(
        &self,
        at: &HeadAt<T>,
        score: &Square,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let (operand, first, width) = (given.operand, given.rows.start, at.width());
        match given.side {
            Side::Keys => out.write(|i| operand[i].as_f64()),
            Side::Queries => {
                out.write(|i| libm::scalbn(operand[i].as_f64(), score.powers[first + i / width]))
            }
        }
        Vec::new()
    }
}

/// The power of two of every query, which may have keys before those of the call.
fn powers<T: Real>(at: &HeadAt<T>, earlier: Option<&Earlier<T>>) -> Buffer<i32> {
    let (queries, width, doubles) = (at.queries(), at.width(), at.workspace().pool());
    record(Operations::multiply_adds(queries.data().len()));
    let mut largest = doubles.empty(width);
    let earlier_numbers = earlier.map_or(&[][..], |earlier| earlier.largest);
    largest.extend(earlier_numbers.iter().map(|x| x.as_f64()));
    largest.resize(width, 0.0);
    // In a window, or on a path of its own, each row keeps some of the earlier keys; otherwise it keeps all.
    let partly = earlier.filter(|earlier| !earlier.rows.keep_prefixes());
    let mut columns = Columns {
        earlier: partly.map(|earlier| earlier.keys),
        keys: at.keys(),
        largest,
        of_row: doubles.empty(width),
        seen: 0,
    };
    let rows = partly.map_or(at.rows(), |earlier| earlier.rows);
    // The bound leaves room for products with keys that the row does not keep.
    let most = log2_range::<T>() - 28.0;
    let power = |i: usize| {
        let query = queries.row(i);
        let product = columns.log2_largest(query, rows.range(i), rows.matrix(i));
        let power = (-product).min(most - largest_of(query).as_f64().log2());
        if power.is_finite() { power as i32 } else { 0 }
    };
    let count = queries.shape().0;
    let mut powers = at.workspace().pool().empty(count);
    // Queries that only fill places have no row.
    powers.extend((0..count.min(rows.queries)).map(power));
    powers.resize(count, 0);
    powers
}

/// The largest coordinates of the keys that a row keeps.
struct Columns<'a, T> {
    /// Keys before those of the call, if rows keep some of them and not all.
    earlier: Option<Mat<'a, T>>,
    keys: Mat<'a, T>,
    /// The largest coordinates of the first keys, as many as have been seen: limits never decrease.
    largest: Buffer<f64>,
    /// The largest coordinates of the keys that one row keeps.
    of_row: Buffer<f64>,
    seen: usize,
}

impl<T: Real> Columns<'_, T> {
    /// The logarithm of the largest product of one coordinate of `query` with that of a kept key.
    fn log2_largest(&mut self, query: &[T], keys: Range<usize>, kept: Option<&[bool]>) -> f64 {
        let of = |columns: &[f64]| {
            let pairs = query.iter().zip(columns).filter(|(q, _)| q.is_finite());
            let products = pairs.map(|(q, k)| q.as_f64().abs().log2() + k.log2());
            products.fold(f64::NEG_INFINITY, f64::max)
        };
        match kept {
            None if keys.start == 0 && self.earlier.is_none() => {
                let new = self.seen..keys.end.max(self.seen);
                self.seen = new.end;
                new.for_each(|j| raise(&mut self.largest, self.keys.row(j)));
                of(&self.largest)
            }
            kept => {
                self.of_row.clear();
                self.of_row.resize(query.len(), 0.0);
                for j in keys.filter(|&j| kept.is_none_or(|kept| kept[j])) {
                    let before = self.earlier.filter(|earlier| j < earlier.shape().0);
                    let first = self.earlier.map_or(0, |earlier| earlier.shape().0);
                    let key = match before {
                        Some(earlier) => earlier.row(j),
                        None => self.keys.row(j - first),
                    };
                    raise(&mut self.of_row, key);
                }
                of(&self.of_row)
            }
        }
    }
}

fn raise<T: Real>(largest: &mut [f64], row: &[T]) {
    for (largest, x) in largest.iter_mut().zip(row) {
        if x.is_finite() {
            *largest = largest.max(x.as_f64().abs());
        }
    }
}
