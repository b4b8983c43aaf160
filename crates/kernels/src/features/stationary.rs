//! The stationary feature map: cosines and sines of the angles $w_r \cdot x$ as they are.

use bochner_numerics::Real;

/// Writes rows of all $\cos a_r$, then all $\sin a_r$, for rows of `count` angles $a_r$.
#[inline(always)]
pub(super) fn combine<T: Real>(count: usize, sin: &[T], cos: &[T], phi: &mut [T]) {
    let angles = cos.chunks_exact(count).zip(sin.chunks_exact(count));
    for (row, (cos, sin)) in phi.chunks_exact_mut(2 * count).zip(angles) {
        row[..count].copy_from_slice(cos);
        row[count..].copy_from_slice(sin);
    }
}

/// The cotangent of the angles, $\sin'$ and $\cos'$ applied to the cotangent of the features.
#[inline(always)]
pub(super) fn pull_back<T: Real>(
    count: usize,
    sin: &[T],
    cos: &[T],
    cotangent: &[T],
    angles: &mut [T],
) {
    let turned = cos.chunks_exact(count).zip(sin.chunks_exact(count));
    let rows = angles
        .chunks_exact_mut(count)
        .zip(cotangent.chunks_exact(2 * count));
    for ((angles, cotangent), (cos, sin)) in rows.zip(turned) {
        let (along_cos, along_sin) = cotangent.split_at(count);
        turn(cos, sin, along_cos, along_sin, angles);
    }
}

/// $\dot s \cos a - \dot c \sin a$ elementwise.
#[inline(always)]
pub(super) fn turn<T: Real>(cos: &[T], sin: &[T], along_cos: &[T], along_sin: &[T], out: &mut [T]) {
    let n = out.len();
    let (cos, sin) = (&cos[..n], &sin[..n]);
    let (along_cos, along_sin) = (&along_cos[..n], &along_sin[..n]);
    for i in 0..n {
        out[i] = cos[i] * along_sin[i] - sin[i] * along_cos[i];
    }
}
