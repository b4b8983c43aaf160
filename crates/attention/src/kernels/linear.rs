//! The inner product, squared.

use bochner_engine::{HeadRows, Kind, PairKernel, Side, Tile};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Operations, Real};

/// $a_{ij} = (q_i \cdot k_j)^2$ up to a constant of the row.
///
/// The weights of a row do not depend on the size of its query, so that each query is multiplied by the power of two
/// that brings its largest coordinate near one: squares of products then stay in range.
#[derive(Clone, Debug)]
pub(super) struct Linear;

impl<T: Real> PairKernel<T> for Linear {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn operands(&self, rows: HeadRows<T>, out: &mut Vec<T>) {
        if rows.side == Side::Queries {
            let width = rows.x.shape().1;
            for row in rows.x.data().chunks_exact(width) {
                let factor = power(row);
                out.extend(row.iter().map(|&x| x * factor));
            }
        }
    }

    fn pull_operands(&self, rows: HeadRows<T>, gradient: Mat<T>, out: &mut [T], _: &mut [T]) {
        out.copy_from_slice(gradient.data());
        if rows.side == Side::Queries {
            let width = rows.x.shape().1;
            for (row, out) in rows
                .x
                .data()
                .chunks_exact(width)
                .zip(out.chunks_exact_mut(width))
            {
                let factor = power(row);
                out.iter_mut().for_each(|x| *x *= factor);
            }
        }
    }

    fn scores(&self, _: &Tile<T>, raw: &mut [T]) {
        record(Operations::multiply_adds(raw.len()));
        instructions::run(Square(raw));
    }

    fn slopes(&self, _: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        for (x, score) in raw.iter_mut().zip(scores) {
            *score = *x * *x;
            *x += *x;
        }
    }
}

struct Square<'a, T>(&'a mut [T]);

impl<T: Real> Task for Square<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        self.0.iter_mut().for_each(|x| *x *= *x);
    }
}

/// The power of two that brings the largest coordinate of a query near one.
fn power<T: Real>(query: &[T]) -> T {
    let largest = query
        .iter()
        .fold(0.0, |largest: f64, x| largest.max(x.as_f64().abs()));
    let (_, exponent) = libm::frexp(largest);
    T::of(libm::scalbn(1.0, -exponent.clamp(-120, 120)))
}
