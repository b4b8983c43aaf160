//! Small operations on rows, inlined into functions compiled for each instruction set.

use crate::sums::weighted_sum;
use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;

pub(super) const LANES: usize = 8;

/// $x \cdot y$, in eight sums that are added in pairs.
#[inline(always)]
pub(super) fn dot<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> T {
    added(dot_in_lanes::<T, A>(x, y))
}

/// $x \cdot y$ in eight sums.
#[inline(always)]
pub(super) fn dot_in_lanes<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> [T; LANES] {
    let mut lanes = [T::zero(); LANES];
    let (whole_x, rest_x) = x.as_chunks::<LANES>();
    let (whole_y, rest_y) = y.as_chunks::<LANES>();
    for (x, y) in whole_x.iter().zip(whole_y) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = A::mul_add(x, y, *lane);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(rest_x).zip(rest_y) {
        *lane = A::mul_add(x, y, *lane);
    }
    lanes
}

/// The sum of eight numbers, in pairs.
#[inline(always)]
pub(super) fn added<T: Real>(lanes: [T; LANES]) -> T {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// $y \leftarrow y + f x$.
#[inline(always)]
pub(super) fn add_scaled<T: Real, A: Arithmetic>(y: &mut [T], factor: T, x: &[T]) {
    let (whole_y, rest_y) = y.as_chunks_mut::<LANES>();
    let (whole_x, rest_x) = x.as_chunks::<LANES>();
    for (y, x) in whole_y.iter_mut().zip(whole_x) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = A::mul_add(factor, x, *y);
        }
    }
    for (y, &x) in rest_y.iter_mut().zip(rest_x) {
        *y = A::mul_add(factor, x, *y);
    }
}

/// $y_h \leftarrow y_h + f_h x_h$ of all heads, `width` numbers each.
#[inline(always)]
pub(super) fn add_scaled_heads<T: Real, A: Arithmetic>(
    y: &mut [T],
    factors: &[T],
    x: &[T],
    width: usize,
) {
    if width == LANES {
        // A known length takes no loop.
        let heads = y.as_chunks_mut::<LANES>().0.iter_mut();
        let heads = heads.zip(x.as_chunks::<LANES>().0);
        for ((y, x), &factor) in heads.zip(factors) {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = A::mul_add(factor, x, *y);
            }
        }
        return;
    }
    let heads = y.chunks_exact_mut(width).zip(x.chunks_exact(width));
    for ((y, x), &factor) in heads.zip(factors) {
        add_scaled::<T, A>(y, factor, x);
    }
}

/// $y_h = \sum_i f_{ih} x_{ih}$ of all heads, `width` numbers each: eight numbers at a time over all
/// terms, so that the sums stay in a register.
#[inline(always)]
pub(super) fn weighted_sums<'a, T: Real, A: Arithmetic>(
    terms: impl ExactSizeIterator<Item = (&'a [T], &'a [T])> + Clone,
    width: usize,
    y: &mut [T],
) {
    for (head, y) in y.chunks_exact_mut(width).enumerate() {
        let first = head * width;
        let terms = terms.clone().map(|(f, x)| (f[head], &x[first..][..width]));
        let (whole, rest) = y.as_chunks_mut::<LANES>();
        let after = whole.len() * LANES;
        for (block, y) in whole.iter_mut().enumerate() {
            let terms = terms
                .clone()
                .map(|(f, x)| (f, &x[block * LANES..][..LANES]));
            *y = weighted_sum::<T, A, LANES>(terms);
        }
        if !rest.is_empty() {
            let terms = terms.map(|(f, x)| (f, &x[after..]));
            rest.copy_from_slice(&weighted_sum::<T, A, LANES>(terms)[..rest.len()]);
        }
    }
}

/// $x_h \cdot y_h$ of all heads, `width` numbers each.
#[inline(always)]
pub(super) fn dot_heads<T: Real, A: Arithmetic>(x: &[T], y: &[T], width: usize, out: &mut [T]) {
    if width == LANES {
        let heads = x.as_chunks::<LANES>().0.iter();
        let heads = heads.zip(y.as_chunks::<LANES>().0);
        for ((x, y), out) in heads.zip(out) {
            *out = dot::<T, A>(x, y);
        }
        return;
    }
    let heads = x.chunks_exact(width).zip(y.chunks_exact(width));
    for ((x, y), out) in heads.zip(out) {
        *out = dot::<T, A>(x, y);
    }
}

/// $y \leftarrow y + x$.
#[inline(always)]
pub(super) fn add<T: Real>(y: &mut [T], x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += x);
}

/// `x` where it is not negative, the slope times it otherwise.
#[inline(always)]
pub(super) fn leaky<T: Real>(x: T, slope: T) -> T {
    if x >= T::zero() { x } else { slope * x }
}

/// The derivative of [`leaky`].
#[inline(always)]
pub(super) fn leak<T: Real>(x: T, slope: T) -> T {
    if x >= T::zero() { T::one() } else { slope }
}

/// Row `i` of rows of `width` numbers.
#[inline(always)]
pub(super) fn row<T>(x: &[T], i: usize, width: usize) -> &[T] {
    &x[i * width..][..width]
}
