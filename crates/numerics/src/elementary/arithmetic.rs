//! Multiplication with and without the fused instruction, and sums and products with their
//! rounding errors.

#![allow(unsafe_code)]

use super::lane::Lane;
use crate::product::Vector;

/// The instructions that compute $ab + c$ on several numbers at once. A value of the type proves that the processor has
/// these instructions.
///
/// The arithmetic is chosen by the instruction set and never emulated: a fused multiply-add in software would cost more
/// than the whole function. By default it rounds once, as the instruction does.
///
/// # Safety
/// There is no value of the type unless the processor has the instructions of [`Vector`](Self::Vector).
pub unsafe trait Arithmetic: Copy {
    /// The widest register.
    type Vector<T: Lane>: Vector<T>;

    /// Whether a product is added before it is rounded.
    const FUSED: bool = true;

    /// $ab + c$.
    #[inline(always)]
    fn mul_add<T: Lane>(a: T, b: T, c: T) -> T {
        T::fused(a, b, c)
    }

    /// $ab$ and its rounding error.
    #[inline(always)]
    fn product<T: Lane>(a: T, b: T) -> (T, T) {
        let ab = a * b;
        (ab, T::fused(a, b, -ab))
    }
}

/// The arithmetic of AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// # Safety
    /// The processor has AVX-512 (F, DQ, BW, VL), AVX2 and FMA.
    #[inline(always)]
    pub(super) unsafe fn available() -> Self {
        Self(())
    }
}

#[cfg(target_arch = "x86_64")]
// SAFETY: the one function that makes a value asks for the instructions.
unsafe impl Arithmetic for Avx512 {
    type Vector<T: Lane> = T::Vector512;
}

/// The arithmetic of AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[inline(always)]
    pub(super) unsafe fn available() -> Self {
        Self(())
    }
}

#[cfg(target_arch = "x86_64")]
// SAFETY: the one function that makes a value asks for the instructions.
unsafe impl Arithmetic for Avx2 {
    type Vector<T: Lane> = T::Vector256;
}

/// The arithmetic of NEON.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon;

#[cfg(target_arch = "aarch64")]
// SAFETY: `Vector128` is `Portable`, which needs no instructions beyond those of the target.
unsafe impl Arithmetic for Neon {
    type Vector<T: Lane> = T::Vector128;
}

/// The arithmetic of any processor, which rounds the product and the sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Separate;

// SAFETY: `Vector128` is `Portable`, which needs no instructions beyond those of the target.
unsafe impl Arithmetic for Separate {
    type Vector<T: Lane> = T::Vector128;

    const FUSED: bool = false;

    #[inline(always)]
    fn mul_add<T: Lane>(a: T, b: T, c: T) -> T {
        a * b + c
    }

    #[inline(always)]
    fn product<T: Lane>(a: T, b: T) -> (T, T) {
        let ab = a * b;
        let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
        (ab, ((a0 * b0 - ab) + a0 * b1 + a1 * b0) + a1 * b1)
    }
}

/// Veltkamp's splitting: two numbers of half the digits that add up to `a`.
#[inline(always)]
fn halves<T: Lane>(a: T) -> (T, T) {
    let spread = T::SPLITTER * a;
    let high = spread - (spread - a);
    (high, a - high)
}

/// $a + b$ and its rounding error (Knuth).
#[inline(always)]
pub(super) fn sum<T: Lane>(a: T, b: T) -> (T, T) {
    let s = a + b;
    let b_seen = s - a;
    (s, (a - (s - b_seen)) + (b - b_seen))
}

/// $a + b$ and its rounding error where $a = 0$ or $|a| \ge |b|$ (Dekker), or where a is a multiple of
/// the last digit of b.
#[inline(always)]
pub(super) fn ordered_sum<T: Lane>(a: T, b: T) -> (T, T) {
    let s = a + b;
    (s, b - (s - a))
}

/// $\sum_k c_k x^k$ by Horner's rule.
#[inline(always)]
pub(super) fn polynomial<T: Lane, A: Arithmetic>(coefficients: &[T], x: T) -> T {
    let mut descending = coefficients.iter().rev();
    let leading = descending.next().copied().unwrap_or(T::zero());
    descending.fold(leading, |value, &c| A::mul_add(value, x, c))
}
