//! The similarity that repeats itself with the distance.

use bochner_numerics::operations::record;
use bochner_numerics::{Operations, Real, elementary};
use std::f64::consts::PI;

/// $s = \exp(-c \sin^2(\pi D / P))$ of a squared distance $D^2$.
///
/// Only the fraction of a period counts, and it is found exactly. Beyond the type's resolution
/// every distance is a whole number of periods, and so is an infinite one, whose square may just have
/// overflowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wave {
    /// The period P.
    pub(crate) period: f64,
    /// What the squared sine is multiplied with, c.
    pub(crate) sharpness: f64,
}

/// Numbers whose sines are held at a time, on the stack.
const PIECE: usize = 128;

impl Wave {
    /// Replaces squared distances by similarities.
    pub(super) fn similarities<T: Real>(&self, row: &mut [T]) {
        let turn = T::of(self.period.recip());
        // Of each pair the turns and the angle here, the square and its factor below.
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

    /// Replaces squared distances by $2\, \partial \log s / \partial D^2$ and fills in the
    /// similarities.
    pub(super) fn similarities_and_slopes<T: Real>(&self, row: &mut [T], s: &mut [T]) {
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
