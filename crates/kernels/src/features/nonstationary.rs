//! The non-stationary feature map: the cosines of two families of angles added, and their sines.

use super::stationary::turn;
use bochner_numerics::Real;

/// Writes rows of all $\cos a_r + \cos b_r$, then all $\sin a_r + \sin b_r$, for rows of
/// `2 count` angles, the $a_r$ first.
#[inline(always)]
pub(super) fn combine<T: Real>(count: usize, sin: &[T], cos: &[T], phi: &mut [T]) {
    let angles = cos.chunks_exact(2 * count).zip(sin.chunks_exact(2 * count));
    for (row, (cos, sin)) in phi.chunks_exact_mut(2 * count).zip(angles) {
        let (cosines, sines) = row.split_at_mut(count);
        add_halves(cos, cosines);
        add_halves(sin, sines);
    }
}

/// The cotangent of both families of angles: each sees the cotangent of the features whole.
#[inline(always)]
pub(super) fn pull_back<T: Real>(
    count: usize,
    sin: &[T],
    cos: &[T],
    cotangent: &[T],
    angles: &mut [T],
) {
    let turned = cos.chunks_exact(count).zip(sin.chunks_exact(count));
    // Each row of the cotangent serves two runs of `count` angles.
    let cotangents = cotangent.chunks_exact(2 * count).flat_map(|row| [row, row]);
    let runs = angles.chunks_exact_mut(count).zip(cotangents);
    for ((angles, cotangent), (cos, sin)) in runs.zip(turned) {
        let (along_cos, along_sin) = cotangent.split_at(count);
        turn(cos, sin, along_cos, along_sin, angles);
    }
}

#[inline(always)]
fn add_halves<T: Real>(both: &[T], sum: &mut [T]) {
    let (first, second) = both.split_at(sum.len());
    for ((sum, &a), &b) in sum.iter_mut().zip(first).zip(second) {
        *sum = a + b;
    }
}
