//! Sums and maxima of rows, in sixteen lanes so that they vectorise: always in one order, whatever the
//! machine.

use bochner_numerics::Real;

/// Adds numbers to others.
#[inline(always)]
pub(crate) fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.iter_mut().zip(more).for_each(|(x, &b)| *x += b);
}

/// The row's maximum; NaN counts as nothing.
#[inline(always)]
pub(crate) fn max<T: Real>(row: &[T]) -> T {
    lanes(row, T::neg_infinity(), |a, b| if b > a { b } else { a })
}

/// The maximum of what `f` makes of the rows' numbers, pair by pair; NaN counts as nothing.
#[inline(always)]
pub(crate) fn max_of<T: Real>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> T {
    let above = |top: T, x: T| if x > top { x } else { top };
    let ((chunks, rest), (others, other_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut lanes = [T::neg_infinity(); 16];
    for (chunk, other) in chunks.iter().zip(others) {
        for (lane, (&x, &y)) in lanes.iter_mut().zip(chunk.iter().zip(other)) {
            *lane = above(*lane, f(x, y));
        }
    }
    let rest = rest.iter().zip(other_rest).map(|(&x, &y)| f(x, y));
    lanes.into_iter().chain(rest).fold(T::neg_infinity(), above)
}

/// The row's sum.
#[inline(always)]
pub(crate) fn sum<T: Real>(row: &[T]) -> T {
    lanes(row, T::zero(), |a, b| a + b)
}

/// The rows' inner product, in the order of [`sum`].
#[inline(always)]
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
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
pub(crate) fn map_and_sum<T: Real>(row: &mut [T], f: impl Fn(T) -> T) -> T {
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
pub(crate) fn total<T: Real>(lanes: [T; 16], rest: &[T]) -> T {
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
