//! A kernel that repeats itself with the distance.

use super::{AlongPoints, Given, Gradient, PairKernel, Raw, Score, Side, divided_rows, exp2};
use crate::Error;
use crate::engine::{HeadAt, NoRank};
use crate::error::period;
use crate::normaliser::Sum;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, Operations, Real, elementary};
use std::f64::consts::PI;

/// $a_{ij} = \exp(-2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d)$.
#[derive(Clone, Debug)]
pub(crate) struct Periodic {
    /// The period P, from 1e-30 to 1e30.
    pub(crate) period: f64,
}

impl<T: Real> PairKernel<T> for Periodic {
    type Score = Wave;

    fn validate(&self, _: usize, _: usize, _: usize) -> Result<(), Error> {
        Ok(period(self.period)?)
    }

    fn score(&self, at: &HeadAt<T>) -> Wave {
        let unit = self.period.log2().floor() as i32;
        Wave {
            period: self.period * exp2(-unit),
            sharpness: 2.0 / (at.width() as f64).sqrt(),
            unit,
        }
    }

    /// Distances are measured in the period's power of two: where they overflow or vanish, so does what
    /// can be told of the phase.
    fn operand(&self, at: &HeadAt<T>, score: &Wave, _: Side, x: Mat<T>) -> Option<Buffer<T>> {
        divided_rows(at, x, score.unit)
    }

    fn pull_back(
        &self,
        _: &HeadAt<T>,
        score: &Wave,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let factor = exp2(-score.unit);
        out.write(|i| given.operand[i].as_f64() * factor);
        Vec::new()
    }
}

/// $s = \exp(-c \sin^2(\pi D / P))$ of a squared distance $D^2$.
///
/// Only the fraction of a period counts, and it is found exactly. Beyond the type's resolution every
/// distance is a whole number of periods, and so is an infinite one, whose square may just have
/// overflowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wave {
    /// The period P, in units of the distances.
    period: f64,
    /// What the squared sine is multiplied with, c.
    sharpness: f64,
    /// The power of two in which distances are measured.
    unit: i32,
}

/// Numbers whose sines are held at a time, on the stack.
const PIECE: usize = 128;

impl<T: Real> Score<T> for Wave {
    type Norm = Sum;
    type Rank = NoRank;

    const RAW: Raw = Raw::Distance;
    const MULTIPLY_ADDS: usize = 1;

    fn prepare_row(&self, row: &mut [T]) {
        let turn = T::of(self.period.recip());
        // A pair costs four multiplications: its turns and its angle here, the square and its factor in
        // `exponentials`.
        record(Operations::multiply_adds(4 * row.len()));
        for row in row.chunks_mut(PIECE) {
            row.iter_mut()
                .for_each(|x| *x = T::PI() * fraction(x.sqrt() * turn));
            let (mut sin, mut cos) = ([T::zero(); PIECE], [T::zero(); PIECE]);
            let (sin, cos) = (&mut sin[..row.len()], &mut cos[..row.len()]);
            elementary::sin_cos(row, sin, cos);
            self.exponentials(sin, row);
        }
    }

    /// The slopes are doubled: the gradient of a squared distance is twice a difference.
    fn prepare_row_and_slopes(&self, row: &mut [T], s: &mut [T]) {
        let turn = T::of(self.period.recip());
        let angles: Vec<T> = row
            .iter()
            .map(|x| T::PI() * fraction(x.sqrt() * turn))
            .collect();
        let (mut sin, mut cos) = (angles.clone(), angles.clone());
        elementary::sin_cos(&angles, &mut sin, &mut cos);
        self.exponentials(&sin, s);
        let rate = PI / self.period;
        let (first, limit) = (
            T::of(-2.0 * self.sharpness * rate),
            T::of(-2.0 * self.sharpness * rate * rate),
        );
        for ((x, &sin), &cos) in row.iter_mut().zip(&sin).zip(&cos) {
            *x = if sin == T::zero() {
                // At coincident points the limit of sin / D; at a whole number of periods nothing.
                if *x == T::zero() { limit } else { T::zero() }
            } else {
                first * sin * cos / x.sqrt()
            };
        }
    }

    #[inline(always)]
    fn score_and_slope<A: Arithmetic>(&self, slope: T, score: T) -> (T, T) {
        (score, slope * score)
    }
}

impl Wave {
    fn exponentials<T: Real>(&self, sin: &[T], s: &mut [T]) {
        let c = T::of(-self.sharpness);
        s.iter_mut()
            .zip(sin)
            .for_each(|(s, &sin)| *s = c * sin * sin);
        elementary::exp_in_place(s);
    }
}

/// What is left of `y` beside the nearest whole number; nothing of what is infinite.
fn fraction<T: Real>(y: T) -> T {
    if y.is_infinite() {
        T::zero()
    } else {
        y - y.round()
    }
}
