//! The features of queries and keys: their directions.

use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, elementary};

/// Writes $\varphi(u) = u / |u|_2$ of each row and returns the inverses of the norms; zero of a zero row.
///
/// # Numerics
/// Small rows do not vanish; an inverse is at most the largest number.
pub(super) fn directions<T: Real>(rows: &[T], width: usize, phi: &mut [T]) -> Vec<T> {
    let rows = rows.chunks_exact(width).zip(phi.chunks_exact_mut(width));
    rows.map(|(row, phi)| direction(row, phi)).collect()
}

#[inline]
fn direction<T: Real>(row: &[T], phi: &mut [T]) -> T {
    let mut square = dot(row, row);
    let mut scale = T::one();
    phi.copy_from_slice(row);
    // Squares of the smallest numbers that count are still accurate.
    if square <= T::min_positive_value() / T::epsilon() {
        scale = elementary::max_norm(row);
        if scale == T::zero() {
            return T::zero();
        }
        phi.iter_mut().for_each(|phi| *phi /= scale);
        square = dot(phi, phi);
    }
    let inverse = square.sqrt().recip();
    phi.iter_mut().for_each(|phi| *phi *= inverse);
    bounded(inverse / scale)
}

/// $(g - \varphi (\varphi \cdot g)) / |u|$ of each row: the gradient along the rows $u$ that `phi` are the directions of.
pub(super) fn directions_vjp<T: Real>((phi, inverses): (&[T], &[T]), g: &[T], du: &mut [T]) {
    let width = phi.len() / inverses.len();
    let rows = phi.chunks_exact(width).zip(g.chunks_exact(width));
    for (((phi, g), du), &inverse) in rows.zip(du.chunks_exact_mut(width)).zip(inverses) {
        let along = dot(phi, g);
        let all = du.iter_mut().zip(phi).zip(g);
        all.for_each(|((du, &phi), &g)| *du = bounded((g - phi * along) * inverse));
    }
}

#[inline]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let mut sums = [T::zero(); LANES];
    let (a, b) = (a.chunks(LANES), b.chunks(LANES));
    for (a, b) in a.zip(b) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.into_iter().fold(T::zero(), |all, sum| all + sum)
}

/// Replaces rows by the sums of the rows so far, whose directions are those of the running means.
pub(super) fn running_sums<'a, T: Real>(rows: impl Iterator<Item = &'a mut [T]>, width: usize) {
    let mut total = vec![0.0; width];
    for row in rows {
        for (total, x) in total.iter_mut().zip(row) {
            *total += x.as_f64();
            *x = T::of(*total);
        }
    }
}
