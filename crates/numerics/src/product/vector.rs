//! Registers of several numbers.

#![allow(unsafe_code)]

use crate::elementary::lane::Lane;

/// The numbers that one register holds, and what a product does with them.
///
/// # Safety
/// For the implementor: the type holds [`LANES`](Self::LANES) numbers, and its functions read and write
/// no others. For the caller: each function may be called only where the instructions that it stands for
/// are available, and only with an address that is valid for `LANES` numbers, or for `n` where the
/// function takes a part.
pub unsafe trait Vector<T>: Copy {
    /// A register of half as many lanes; the same one where that would not be faster.
    type Half: Vector<T>;

    /// Numbers of a register.
    const LANES: usize;
    /// Rows of a tile, two registers wide, that leave a register for each of its sums.
    const ROWS: usize;

    /// `x` in each lane.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn splat(x: T) -> Self;

    /// The numbers at an address.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn load(at: *const T) -> Self;

    /// The first `n` numbers at an address, then zeros.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn load_part(at: *const T, n: usize) -> Self;

    /// Writes all numbers.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn store(self, at: *mut T);

    /// Writes the first `n` numbers.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn store_part(self, at: *mut T, n: usize);

    /// $xy + z$.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn mul_add(x: Self, y: Self, z: Self) -> Self;

    /// $x_0, y_0, x_1, y_1, \dots$ in two registers.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn interleave(x: Self, y: Self) -> (Self, Self);
}

/// A register of sixteen bytes: of SSE2 or NEON, or an array where the target has neither.
#[derive(Clone, Copy, Debug)]
pub struct Portable<T, const LANES: usize>([T; LANES]);

// SAFETY: an array of N numbers, read and written as one.
unsafe impl<T: Lane, const N: usize> Vector<T> for Portable<T, N> {
    type Half = Self;

    const LANES: usize = N;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; N])
    }

    #[inline(always)]
    unsafe fn load(at: *const T) -> Self {
        // SAFETY: valid for N numbers, which need no more than their own alignment.
        Self(unsafe { at.cast::<[T; N]>().read() })
    }

    #[inline(always)]
    unsafe fn load_part(at: *const T, n: usize) -> Self {
        // SAFETY: valid for n numbers.
        let part = unsafe { std::slice::from_raw_parts(at, n) };
        let mut all = [T::zero(); N];
        all[..n].copy_from_slice(part);
        Self(all)
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut T) {
        // SAFETY: valid for N numbers, which need no more than their own alignment.
        unsafe { at.cast::<[T; N]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, at: *mut T, n: usize) {
        // SAFETY: valid for n numbers, and not lent to anybody else.
        let part = unsafe { std::slice::from_raw_parts_mut(at, n) };
        part.copy_from_slice(&self.0[..n]);
    }

    #[inline(always)]
    unsafe fn mul_add(x: Self, y: Self, z: Self) -> Self {
        let mut sum = z;
        for (sum, (x, y)) in sum.0.iter_mut().zip(x.0.into_iter().zip(y.0)) {
            // Some targets, such as AArch64, have the instruction without asking.
            *sum = if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
                T::fused(x, y, *sum)
            } else {
                x * y + *sum
            };
        }
        sum
    }

    #[inline(always)]
    unsafe fn interleave(x: Self, y: Self) -> (Self, Self) {
        let (mut low, mut high) = (x, x);
        for i in 0..N / 2 {
            [low.0[2 * i], low.0[2 * i + 1]] = [x.0[i], y.0[i]];
            [high.0[2 * i], high.0[2 * i + 1]] = [x.0[N / 2 + i], y.0[N / 2 + i]];
        }
        (low, high)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Portable, Vector};
    use crate::elementary::lane::Lane;
    use std::arch::x86_64::*;
    use std::mem::transmute_copy;

    /// One implementation for a register and a type, by the names of its intrinsics.
    macro_rules! vector {
        ($register:ty, $number:ty, half: $half:ty, lanes: $lanes:literal, rows: $rows:literal,
         $splat:ident, $load:ident, $load_part:ident, $store:ident, $store_part:ident, $fma:ident,
         $interleave:ident, mask: $mask:expr) => {
            // SAFETY: the register holds as many numbers, and each intrinsic takes one register.
            unsafe impl Vector<$number> for $register {
                type Half = $half;

                const LANES: usize = $lanes;
                const ROWS: usize = $rows;

                #[inline(always)]
                unsafe fn splat(x: $number) -> Self {
                    // SAFETY: the instructions are available by contract.
                    unsafe { $splat(x) }
                }

                #[inline(always)]
                unsafe fn load(at: *const $number) -> Self {
                    // SAFETY: the same, and the address is valid for all lanes.
                    unsafe { $load(at) }
                }

                #[inline(always)]
                unsafe fn load_part(at: *const $number, n: usize) -> Self {
                    // SAFETY: the same, and the mask hides what lies behind the first n.
                    unsafe { $load_part(at, $mask(n)) }
                }

                #[inline(always)]
                unsafe fn store(self, at: *mut $number) {
                    // SAFETY: as in `load`.
                    unsafe { $store(at, self) }
                }

                #[inline(always)]
                unsafe fn store_part(self, at: *mut $number, n: usize) {
                    // SAFETY: as in `load_part`.
                    unsafe { $store_part(at, $mask(n), self) }
                }

                #[inline(always)]
                unsafe fn mul_add(x: Self, y: Self, z: Self) -> Self {
                    // SAFETY: the instructions are available by contract.
                    unsafe { $fma(x, y, z) }
                }

                #[inline(always)]
                unsafe fn interleave(x: Self, y: Self) -> (Self, Self) {
                    // SAFETY: the instructions are available by contract.
                    unsafe { $interleave(x, y) }
                }
            }
        };
    }

    vector!(__m512, f32, half: __m256, lanes: 16, rows: 12,
        _mm512_set1_ps, _mm512_loadu_ps, load_part_512_ps,
        _mm512_storeu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps, interleave_512_ps,
        mask: first_16);
    vector!(__m512d, f64, half: __m256d, lanes: 8, rows: 12,
        _mm512_set1_pd, _mm512_loadu_pd, load_part_512_pd,
        _mm512_storeu_pd, _mm512_mask_storeu_pd, _mm512_fmadd_pd, interleave_512_pd,
        mask: first_8);
    vector!(__m256, f32, half: __m256, lanes: 8, rows: 6,
        _mm256_set1_ps, _mm256_loadu_ps, _mm256_maskload_ps,
        _mm256_storeu_ps, _mm256_maskstore_ps, _mm256_fmadd_ps, interleave_256_ps,
        mask: first_of_8);
    vector!(__m256d, f64, half: __m256d, lanes: 4, rows: 6,
        _mm256_set1_pd, _mm256_loadu_pd, _mm256_maskload_pd,
        _mm256_storeu_pd, _mm256_maskstore_pd, _mm256_fmadd_pd, interleave_256_pd,
        mask: first_of_4);

    /// # Safety
    /// AVX-512 F is available.
    #[inline(always)]
    unsafe fn interleave_512_ps(x: __m512, y: __m512) -> (__m512, __m512) {
        // SAFETY: nothing but the instructions, which are available by contract.
        unsafe {
            if cfg!(miri) {
                return interleave_in_miri::<f32, __m512, 16>(x, y);
            }
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            (
                _mm512_permutex2var_ps(x, low, y),
                _mm512_permutex2var_ps(x, high, y),
            )
        }
    }

    /// # Safety
    /// AVX-512 F is available.
    #[inline(always)]
    unsafe fn interleave_512_pd(x: __m512d, y: __m512d) -> (__m512d, __m512d) {
        // SAFETY: nothing but the instructions, which are available by contract.
        unsafe {
            if cfg!(miri) {
                return interleave_in_miri::<f64, __m512d, 8>(x, y);
            }
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_add_epi64(low, _mm512_set1_epi64(4));
            (
                _mm512_permutex2var_pd(x, low, y),
                _mm512_permutex2var_pd(x, high, y),
            )
        }
    }

    /// The interleaving of the two functions above for Miri, which does not know their permutations.
    ///
    /// # Safety
    /// `V` is a register of `N` numbers.
    unsafe fn interleave_in_miri<T: Lane, V: Copy, const N: usize>(x: V, y: V) -> (V, V) {
        // SAFETY: registers and arrays of the same numbers, which any bits are.
        unsafe {
            let [x, y] = [x, y].map(|v| Portable(transmute_copy::<V, [T; N]>(&v)));
            let (low, high) = Portable::interleave(x, y);
            (transmute_copy(&low.0), transmute_copy(&high.0))
        }
    }

    /// # Safety
    /// AVX is available.
    #[inline(always)]
    unsafe fn interleave_256_ps(x: __m256, y: __m256) -> (__m256, __m256) {
        // SAFETY: nothing but the instructions, which are available by contract.
        unsafe {
            let (a, b) = (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
            (
                _mm256_permute2f128_ps::<0x20>(a, b),
                _mm256_permute2f128_ps::<0x31>(a, b),
            )
        }
    }

    /// # Safety
    /// AVX is available.
    #[inline(always)]
    unsafe fn interleave_256_pd(x: __m256d, y: __m256d) -> (__m256d, __m256d) {
        // SAFETY: nothing but the instructions, which are available by contract.
        unsafe {
            let (a, b) = (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
            (
                _mm256_permute2f128_pd::<0x20>(a, b),
                _mm256_permute2f128_pd::<0x31>(a, b),
            )
        }
    }

    /// # Safety
    /// AVX-512 F is available, and the address is valid for the numbers that the mask shows.
    #[inline(always)]
    unsafe fn load_part_512_ps(at: *const f32, mask: __mmask16) -> __m512 {
        // SAFETY: what the mask hides is not read; the rest is the caller's.
        unsafe { _mm512_maskz_loadu_ps(mask, at) }
    }

    /// # Safety
    /// AVX-512 F is available, and the address is valid for the numbers that the mask shows.
    #[inline(always)]
    unsafe fn load_part_512_pd(at: *const f64, mask: __mmask8) -> __m512d {
        // SAFETY: what the mask hides is not read; the rest is the caller's.
        unsafe { _mm512_maskz_loadu_pd(mask, at) }
    }

    #[inline(always)]
    fn first_16(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }

    #[inline(always)]
    fn first_8(n: usize) -> __mmask8 {
        ((1u32 << n) - 1) as __mmask8
    }

    const MASK_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    const MASK_64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

    /// # Panics
    /// If `n` is more than eight.
    ///
    /// # Safety
    /// AVX is available.
    #[inline(always)]
    unsafe fn first_of_8(n: usize) -> __m256i {
        // SAFETY: the address is that of a slice of eight numbers; the instructions are available by
        // contract.
        unsafe { _mm256_loadu_si256(MASK_32[8 - n..][..8].as_ptr().cast()) }
    }

    /// # Panics
    /// If `n` is more than four.
    ///
    /// # Safety
    /// AVX is available.
    #[inline(always)]
    unsafe fn first_of_4(n: usize) -> __m256i {
        // SAFETY: the address is that of a slice of four numbers; the instructions are available by
        // contract.
        unsafe { _mm256_loadu_si256(MASK_64[4 - n..][..4].as_ptr().cast()) }
    }
}
