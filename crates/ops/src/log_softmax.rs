//! Logarithms of probabilities.

use crate::rows::sum;
use bochner_numerics::Real;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::instructions::{self, Arithmetic, Task};

/// Replaces the logits of a row by the logarithms of their softmax, $x_i - \log \sum_j e^{x_j}$.
///
/// # Numerics
/// Exponentials are taken relative to the largest logit, in the type's own precision, with an error below one ulp; their sum and the
/// differences are taken in double precision. A row that holds NaN or plus infinity, or nothing but minus infinity,
/// becomes NaN, at least where it is not minus infinity.
///
/// ```
/// let mut row = [1.0, 1.0, f64::NEG_INFINITY];
/// bochner_ops::log_softmax(&mut row);
/// assert_eq!(row, [-2_f64.ln(), -2_f64.ln(), f64::NEG_INFINITY]);
/// ```
pub fn log_softmax<T: Real>(row: &mut [T]) {
    let (largest, total) = largest_and_total(row);
    let total = total.ln();
    instructions::run(Relate {
        row,
        largest,
        total,
    });
}

/// The largest number of a row, and the sum of the exponentials relative to it.
pub(crate) fn largest_and_total<T: Real>(row: &[T]) -> (T, f64) {
    /// Exponentials that are computed at a time.
    const PIECE: usize = 256;
    let larger = |a: T, &b: &T| if b > a { b } else { a };
    let mut lanes = [T::neg_infinity(); 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, x);
        }
    }
    let largest = lanes.iter().chain(rest).fold(T::neg_infinity(), larger);
    let (mut room, mut total) = ([T::zero(); PIECE], 0.0);
    for piece in row.chunks(PIECE) {
        let room = &mut room[..piece.len()];
        for (y, &x) in room.iter_mut().zip(piece) {
            *y = x - largest;
        }
        exp_in_place(room);
        // In double precision, so that a loss below the type's epsilon is not lost beside the 1 of the largest logit.
        total += sum(room.len(), |i| room[i].as_f64());
    }
    (largest, total)
}

/// Subtracts two numbers, the second in double precision.
struct Relate<'a, T> {
    row: &'a mut [T],
    largest: T,
    total: f64,
}

impl<T: Real> Task for Relate<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.row {
            *x = T::of((*x - self.largest).as_f64() - self.total);
        }
    }
}
