//! The features of queries and keys: their directions.

use bochner_numerics::scaling::{bounded, multiplied};
use bochner_numerics::{Real, elementary};

/// Writes $\varphi(u) = u / |u|_2$ of each row and returns the inverses of the norms; zero of a zero row.
///
/// # Numerics
/// Neither large nor small rows overflow or vanish; an inverse is at most the largest number.
pub(super) fn directions<T: Real>(rows: &[T], width: usize, phi: &mut [T]) -> Vec<T> {
    let rows = rows.chunks_exact(width).zip(phi.chunks_exact_mut(width));
    rows.map(|(row, phi)| direction(row, phi)).collect()
}

#[inline]
fn direction<T: Real>(row: &[T], phi: &mut [T]) -> T {
    let square = dot(row, row);
    // Squares of the smallest numbers that count are still accurate.
    if square > T::min_positive_value() / T::epsilon() && square <= T::max_value() {
        let inverse = square.sqrt().recip();
        phi.iter_mut()
            .zip(row)
            .for_each(|(phi, &x)| *phi = x * inverse);
        return inverse;
    }
    let scale = elementary::max_norm(row);
    if scale == T::zero() {
        phi.fill(T::zero());
        return T::zero();
    }
    phi.iter_mut()
        .zip(row)
        .for_each(|(phi, &x)| *phi = x / scale);
    let norm = dot(phi, phi).sqrt();
    phi.iter_mut().for_each(|phi| *phi /= norm);
    bounded(norm.recip() / scale)
}

/// $(g - \varphi (\varphi \cdot g)) / |u|$ of each row, times $2^p$ with p the `power`: the gradient along
/// the rows $u$ that `phi` are the directions of.
pub(super) fn directions_vjp<T: Real>(
    (phi, inverses): (&[T], &[T]),
    g: &[T],
    power: i32,
    du: &mut [T],
) {
    let width = phi.len() / inverses.len();
    let large = T::max_value().sqrt();
    let rows = phi.chunks_exact(width).zip(g.chunks_exact(width));
    for (((phi, g), du), &inverse) in rows.zip(du.chunks_exact_mut(width)).zip(inverses) {
        let along = dot(phi, g);
        let across = phi.iter().zip(g).map(|(&phi, &g)| g - phi * along);
        if power == 0 && inverse < large {
            du.iter_mut()
                .zip(across)
                .for_each(|(du, x)| *du = bounded(x * inverse));
        } else {
            let inverse = inverse.as_f64();
            let all = du.iter_mut().zip(across);
            all.for_each(|(du, x)| *du = multiplied(x.as_f64() * inverse, power));
        }
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

/// Writes the sums of the rows so far, whose directions are those of the running means.
pub(super) fn running_sums<'a, T: Real>(
    rows: impl Iterator<Item = &'a [T]>,
    sums: impl Iterator<Item = &'a mut [T]>,
) {
    let mut total = Vec::new();
    for (row, sum) in rows.zip(sums) {
        add(&mut total, row);
        write(&total, sum);
    }
}

/// The vector-Jacobian product of [`running_sums`], in place: the sums of the rows from each one on.
pub(super) fn running_sums_vjp<'a, T: Real>(rows: impl DoubleEndedIterator<Item = &'a mut [T]>) {
    let mut total = Vec::new();
    for row in rows.rev() {
        add(&mut total, row);
        write(&total, row);
    }
}

fn add<T: Real>(total: &mut Vec<f64>, row: &[T]) {
    total.resize(row.len(), 0.0);
    let all = total.iter_mut().zip(row);
    all.for_each(|(total, x)| *total = bounded(*total + x.as_f64()));
}

fn write<T: Real>(total: &[f64], row: &mut [T]) {
    let all = row.iter_mut().zip(total);
    all.for_each(|(x, &total)| *x = multiplied(total, 0));
}
