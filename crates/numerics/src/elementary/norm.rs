//! Norms of rows, in parts that neither overflow nor vanish.

use super::arithmetic::Arithmetic;
use super::block::MapInPlace;
use super::instruction_set::{InstructionSet, Task};
use super::lane::Lane;
use super::power::Power;
use crate::Real;
use num_traits::Zero;

/// The p-norm of a row x: $|x|_p = s (\sum_n |x_n / s|^p)^{1/p}$.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PNorm {
    /// The largest $|x_n|$, called s.
    pub scale: f64,
    /// $\sum_n |x_n / s|^p$: from 1 to the row's width, or 0 in a row of zeros.
    pub sum: f64,
}

/// Writes the p-norms of the rows of `x`, `width` entries each; $p > 0$.
///
/// # Numerics
/// Powers are taken in double precision, rounded to multiples of $2^{-52}$ and added without error: a row
/// and its permutations have the same norm to the bit. A row that is not finite has
/// the norm NaN.
///
/// Only rows of more than 2048 entries take memory.
///
/// # Panics
/// If there is not one norm a row.
pub fn p_norms_into<T: Real>(x: &[T], width: usize, p: f64, out: &mut [PNorm]) {
    assert_eq!(x.len(), out.len() * width, "p_norms: rows of {width}");
    InstructionSet::fastest().run(Norms { x, width, p, out });
}

/// The maximum norm $|x|_\infty$: the largest absolute value, 0 without numbers; NaN if any number is.
///
/// All numbers are finite exactly if their maximum norm is.
pub fn max_norm<T: Real>(x: &[T]) -> T {
    let mut norm = T::zero();
    InstructionSet::fastest().run(MaxNorm { x, norm: &mut norm });
    norm
}

/// $\text{out}\_{in} = f_i \operatorname{sign}(x_{in}) \max(|x_{in} / s_i|, l)^p$, zero where
/// $x_{in}$ is, for the rows $x_i$ with the scales $s_i$ of their norms.
///
/// *where* $f$ is `factors`, $l$ is `lowest` and $p$ may have any sign.
///
/// `x` and `out` have a row of the same width for each norm and factor.
pub(super) fn signed_powers<T: Real>(
    x: &[T],
    norms: &[PNorm],
    p: f64,
    lowest: f64,
    factors: &[f64],
    out: &mut [f64],
) {
    if x.is_empty() {
        return;
    }
    let width = x.len() / norms.len();
    InstructionSet::fastest().run(SignedPowers {
        powers: Powers {
            x,
            width,
            p,
            lowest,
        },
        norms,
        factors,
        out,
    });
}

/// Entries whose powers are computed at a time.
const ENTRIES: usize = 2048;

struct MaxNorm<'a, T> {
    x: &'a [T],
    norm: &'a mut T,
}

impl<T: Lane> Task for MaxNorm<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        *self.norm = largest(self.x);
    }
}

struct Norms<'a, T> {
    x: &'a [T],
    width: usize,
    p: f64,
    out: &'a mut [PNorm],
}

impl<T: Lane + Real> Task for Norms<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, available: A) {
        let Self { width, p, .. } = self;
        let rows = (ENTRIES / width).max(1);
        let (mut usual, mut wide) = ([0.0; ENTRIES], Vec::new());
        let buffer = if width <= ENTRIES {
            &mut usual[..]
        } else {
            wide.resize(width, 0.0);
            &mut wide[..]
        };
        for (norms, x) in self.out.chunks_mut(rows).zip(self.x.chunks(rows * width)) {
            for (norm, row) in norms.iter_mut().zip(x.chunks_exact(width)) {
                norm.scale = largest(row).as_f64();
            }
            let powers = &mut buffer[..x.len()];
            Powers {
                x,
                width,
                p,
                lowest: 0.0,
            }
            .compute(available, norms, powers);
            for (norm, powers) in norms.iter_mut().zip(powers.chunks_exact(width)) {
                norm.sum = if norm.scale.is_finite() {
                    sum(powers)
                } else {
                    f64::NAN
                };
            }
        }
    }
}

struct SignedPowers<'a, T> {
    powers: Powers<'a, T>,
    norms: &'a [PNorm],
    factors: &'a [f64],
    out: &'a mut [f64],
}

impl<T: Lane + Real> Task for SignedPowers<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, available: A) {
        let Powers { x, width, .. } = self.powers;
        self.powers.compute(available, self.norms, self.out);
        let rows = self.out.chunks_exact_mut(width).zip(x.chunks_exact(width));
        for ((out, x), &factor) in rows.zip(self.factors) {
            for (out, &x) in out.iter_mut().zip(x) {
                let value = *out * factor;
                let value = if x < T::zero() { -value } else { value };
                *out = if x == T::zero() { 0.0 } else { value };
            }
        }
    }
}

/// Powers of the ratios of entries to the scales of their rows.
struct Powers<'a, T> {
    x: &'a [T],
    width: usize,
    p: f64,
    lowest: f64,
}

impl<T: Lane + Real> Powers<'_, T> {
    #[inline(always)]
    fn compute<A: Arithmetic>(&self, available: A, norms: &[PNorm], out: &mut [f64]) {
        // The usual exponents cost a root at most.
        match self.p {
            0.0 => out.fill(1.0),
            0.5 => self.of_ratios(norms, out, |x| x.sqrt()),
            1.0 => self.of_ratios(norms, out, |x| x),
            1.5 => self.of_ratios(norms, out, |x| x * x.sqrt()),
            2.0 => self.of_ratios(norms, out, |x| x * x),
            3.0 => self.of_ratios(norms, out, |x| x * x * x),
            p => {
                self.of_ratios(norms, out, |x| x);
                let (function, x) = (Power::new(p), out);
                MapInPlace { function, x }.run(available);
            }
        }
    }

    #[inline(always)]
    fn of_ratios(&self, norms: &[PNorm], out: &mut [f64], power: impl Fn(f64) -> f64) {
        let at_least = |ratio| {
            if ratio < self.lowest {
                self.lowest
            } else {
                ratio
            }
        };
        let rows = out.chunks_exact_mut(self.width);
        for ((out, x), norm) in rows.zip(self.x.chunks_exact(self.width)).zip(norms) {
            let scale = if norm.scale == 0.0 { 1.0 } else { norm.scale };
            let inverse = scale.recip();
            // A product is faster than a quotient; none is above one, and the largest entry's is one. Rows
            // that are not finite, or nearly not, have no inverse that is exact to half an ulp.
            if inverse.is_normal() {
                let of = |x| if x == scale { 1.0 } else { x * inverse };
                each(x, out, |x| power(at_least(of(x))));
            } else {
                each(x, out, |x| power(at_least(x / scale)));
            }
        }
    }
}

#[inline(always)]
fn each<T: Real>(x: &[T], out: &mut [f64], f: impl Fn(f64) -> f64) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f(x.abs().as_f64());
    }
}

/// The largest absolute value, by the bits: those of NaN are above all others.
#[inline(always)]
fn largest<T: Lane>(row: &[T]) -> T {
    let bits = row.iter().map(|x| T::bits(x.abs()));
    T::of_bits(bits.fold(T::Bits::zero(), |a, b| if b > a { b } else { a }))
}

/// The sum of numbers from 0 to 1 as multiples of $2^{-52}$, whatever their order.
#[inline(always)]
fn sum(x: &[f64]) -> f64 {
    let (mut high, mut low) = (0u64, 0u64);
    for x in x {
        let multiple = (x + 1.0).to_bits().wrapping_sub(1f64.to_bits());
        high = high.wrapping_add(multiple >> 32);
        low = low.wrapping_add(multiple & 0xffff_ffff);
    }
    high as f64 / f64::from(1 << 20) + low as f64 * f64::EPSILON
}
