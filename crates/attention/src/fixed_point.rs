//! Bipolar attention with integers alone: values in fixed point, weights as right shifts.

use crate::gamma::{gamma, levels};
use crate::kernels::{checked_threshold, spike};
use crate::{Error, Mask};
use bochner_numerics::{Real, argument, parallel};
use ndarray::{Array4, ArrayView2, ArrayView4, s};

/// The bits behind the point of a value in fixed point.
pub const FRACTION_BITS: u32 = 12;

const UNIT: f64 = (1 << FRACTION_BITS) as f64;

/// Values in fixed point: the nearest multiples of $2^{-12}$, each as the number of them.
///
/// # Errors
/// [`Error::Argument`] for a value that is not finite, or not in $[-2^{19}, 2^{19})$.
pub fn to_fixed_point<T: Real>(values: ArrayView4<T>) -> Result<Array4<i32>, Error> {
    argument::finite("values", values.shape(), values)?;
    let fits = |x: &f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(x);
    let fixed = values.mapv(|x| (x.as_f64() * UNIT).round());
    if let Some(&large) = fixed.iter().find(|x| !fits(x)) {
        let allowed = "at least -2^19 and below 2^19, to be held in 32 bits";
        return Err(argument::out_of_range("values", large / UNIT, allowed).into());
    }
    Ok(fixed.mapv(|x| x as i32))
}

/// The values that numbers in fixed point stand for.
pub fn from_fixed_point<T: Real>(fixed: ArrayView4<i32>) -> Array4<T> {
    fixed.mapv(|x| T::of(f64::from(x) / UNIT))
}

/// The ternary numbers $t(x) = \operatorname{sign}(x) [|x| \ge \theta]$ of queries or keys.
///
/// # Errors
/// [`Error::Argument`] for a threshold that is negative or not finite, and for NaN or an infinite number.
pub fn ternary<T: Real>(x: ArrayView4<T>, threshold: f64) -> Result<Array4<i8>, Error> {
    checked_threshold(threshold)?;
    argument::finite("x", x.shape(), x)?;
    let threshold = T::of(threshold);
    Ok(x.mapv(|x| spike(x, threshold).as_f64() as i8))
}

/// Bipolar attention of ternary queries and keys without a multiplication:
/// $o_i = \sum_j (v_j \gg n_{ij})$, $n_{ij} = \gamma_i - t(q_i) \cdot t(k_j) \ge 0$.
///
/// Scores count the bits in which two positions agree and differ, $\gamma$ is counted in whole numbers as everywhere,
/// and a weight is a right shift, which rounds towards minus infinity. So a row of n kept keys lies below the output
/// of [`kernels::bipolar`](crate::kernels::bipolar) by less than n units of $2^{-12}$, besides rounding in its type. A sum beyond 32 bits becomes
/// the nearest end of them: only values that are themselves within n units of it lead there.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, M, Tk, d]`, `v: [B, M, Tk, dv]` to `[B, M, Tq, dv]`.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit, and for queries or keys other than -1, 0 and 1; [`Error::Mask`].
///
/// # Reference
/// Wang et al. 2025, "Bipolar self-attention for spiking transformers"; the format is ours.
///
/// ```
/// use bochner_attention::{Mask, fixed_point::{attend_by_shifts, from_fixed_point, ternary, to_fixed_point}};
/// use bochner_attention::ndarray::Array4;
///
/// let x = Array4::from_shape_fn((1, 2, 3, 4), |(_, m, t, n)| (m + t * n) as f32 * 0.3 - 0.8);
/// let (spikes, values) = (ternary(x.view(), 0.5)?, to_fixed_point(x.view())?);
/// let output = attend_by_shifts(spikes.view(), spikes.view(), values.view(), &Mask::none())?;
/// assert_eq!(from_fixed_point::<f32>(output.view()).shape(), x.shape());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend_by_shifts(
    q: ArrayView4<i8>,
    k: ArrayView4<i8>,
    v: ArrayView4<i32>,
    mask: &Mask,
) -> Result<Array4<i32>, Error> {
    let (batch, heads, queries, width) = q.dim();
    let (keys, value_width) = (k.dim().2, v.dim().3);
    argument::shape("k", &[batch, heads, keys, width], k.shape())?;
    argument::shape("v", &[batch, heads, keys, value_width], v.shape())?;
    for (what, shape) in [("q", q.shape()), ("k", k.shape()), ("v", v.shape())] {
        argument::not_empty(what, shape)?;
    }
    mask.check([batch, heads, queries, keys])?;
    for (name, x) in [("q", q), ("k", k)] {
        if let Some(&x) = x.iter().find(|x| !(-1..=1).contains(*x)) {
            return Err(argument::out_of_range(name, f64::from(x), "-1, 0 or 1").into());
        }
    }
    let mut output = Array4::zeros((batch, heads, queries, value_width));
    let all = output.as_slice_mut().expect("row-major");
    parallel::for_each_chunk(all, queries * value_width, |h, output| {
        let (b, m) = (h / heads, h % heads);
        let head = Head {
            queries: q.slice(s![b, m, .., ..]),
            keys: k.slice(s![b, m, .., ..]),
            values: v.slice(s![b, m, .., ..]),
        };
        for (i, output) in output.chunks_exact_mut(value_width).enumerate() {
            head.attend(i, mask.kept_keys_of([b, m, i], [queries, keys]), output);
        }
    });
    Ok(output)
}

/// One head.
struct Head<'a> {
    queries: ArrayView2<'a, i8>,
    keys: ArrayView2<'a, i8>,
    values: ArrayView2<'a, i32>,
}

impl Head<'_> {
    /// Writes the output of one query, which keeps some keys.
    fn attend(&self, i: usize, kept: impl Iterator<Item = usize>, output: &mut [i32]) {
        let query = self.queries.row(i);
        let score = |j: usize| {
            let pairs = query.iter().zip(self.keys.row(j));
            pairs.map(|(&q, &k)| i64::from(q * k)).sum::<i64>()
        };
        let scores: Vec<(usize, i64)> = kept.map(|j| (j, score(j))).collect();
        let Some(gamma) = gamma(levels(scores.iter().map(|&(_, score)| score))) else {
            return;
        };
        let mut sums = vec![0_i64; output.len()];
        for (j, score) in scores {
            // A shift by 31 leaves the sign alone, and so does a longer one.
            let shift = (gamma - score).min(31);
            let pairs = sums.iter_mut().zip(self.values.row(j));
            pairs.for_each(|(sum, &value)| *sum += i64::from(value >> shift));
        }
        for (output, sum) in output.iter_mut().zip(sums) {
            *output = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        }
    }
}
