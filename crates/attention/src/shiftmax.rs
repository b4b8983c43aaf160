//! Shiftmax alone: rows of whole scores to powers of two.

use crate::Error;
use crate::gamma::{gamma, levels};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::{Array1, Array2, ArrayView2};
use std::f64::consts::LN_2;

/// The result of [`shiftmax`] for rows of scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Shiftmax<T> {
    /// The weights, powers of two or zero where a mask keeps nothing, `[rows, n]`.
    pub weights: Array2<T>,
    /// $\gamma$ of each row; 0 for a row that the mask empties.
    pub gamma: Array1<i64>,
}

/// Powers of two that sum to more than 1/2 and at most 1: $s_i = 2^{x_i - \gamma}$,
/// $\gamma = \lceil \log_2 \sum_j 2^{x_j} \rceil$.
///
/// The sum runs over what the mask keeps (`true` is kept). $\gamma$ is exact: it is counted in whole numbers, since a
/// rounded sum loses terms that decide it. This is the paper's function; that of I-ViT by the same name is a softmax
/// to another base, and that of Akida rounds where this one goes up.
///
/// # Shapes
/// `x` and `mask`: `[rows, n]`.
///
/// # Errors
/// [`Error::Argument`] for a mask of another shape, and for a kept score that is not a whole number of at most
/// $2^{53}$ in size.
///
/// # Numerics
/// A weight below the range of the type is 0. A sum in floating point can come out at 1/2 by rounding.
///
/// # Reference
/// Wang et al. 2025, "Bipolar self-attention for spiking transformers".
///
/// ```
/// use bochner_attention::shiftmax::shiftmax;
/// use bochner_attention::ndarray::array;
///
/// // In double precision 1 + 2^-60 is 1, which would leave gamma at 0.
/// let rows = shiftmax(array![[0.0, -60.0], [2.0, 2.0]].view(), None)?;
/// assert_eq!(rows.gamma, array![1, 3]);
/// assert_eq!(rows.weights.row(1), array![0.5, 0.5]);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn shiftmax<T: Real>(
    x: ArrayView2<T>,
    mask: Option<ArrayView2<bool>>,
) -> Result<Shiftmax<T>, Error> {
    if let Some(mask) = &mask {
        argument::shape("mask", x.shape(), mask.shape())?;
    }
    let is_kept = |at| mask.is_none_or(|mask| mask[at]);
    let mut weights = Array2::zeros(x.raw_dim());
    let mut gammas = Array1::zeros(x.nrows());
    for (i, row) in x.rows().into_iter().enumerate() {
        let kept = || row.iter().enumerate().filter(|&(j, _)| is_kept([i, j]));
        let scores = kept()
            .map(|(_, &x)| whole(x))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(gamma) = gamma(levels(scores.into_iter())) {
            gammas[i] = gamma;
            for (j, x) in kept() {
                weights[[i, j]] = T::of((x.as_f64() - gamma as f64).exp2());
            }
        }
    }
    Ok(Shiftmax {
        weights,
        gamma: gammas,
    })
}

/// The vector-Jacobian product of [`shiftmax`], straight through the ceiling:
/// $\partial s_i / \partial x_j = s_i (\delta_{ij} - p_j) \ln 2$, where p is the softmax to the base 2.
///
/// # Errors
/// The errors of [`shiftmax`], and [`Error::Argument`] for a cotangent of another shape.
pub fn shiftmax_vjp<T: Real>(
    x: ArrayView2<T>,
    mask: Option<ArrayView2<bool>>,
    cotangent: ArrayView2<T>,
) -> Result<Array2<T>, Error> {
    argument::shape("cotangent", x.shape(), cotangent.shape())?;
    let mut gradient = shiftmax(x, mask)?.weights;
    for (mut row, g) in gradient.rows_mut().into_iter().zip(cotangent.rows()) {
        let (mut sum, mut product) = (0.0, 0.0);
        for (w, g) in row.iter().zip(g).filter(|(w, _)| **w > T::zero()) {
            sum += w.as_f64();
            product += w.as_f64() * g.as_f64();
        }
        for (w, g) in row.iter_mut().zip(g).filter(|(w, _)| **w > T::zero()) {
            *w = T::of(LN_2 * w.as_f64() * (g.as_f64() - product / sum));
        }
    }
    Ok(gradient)
}

/// A score as an integer.
fn whole<T: Real>(x: T) -> Result<i64, ArgumentError> {
    let is_whole = x.fract() == T::zero() && x.as_f64().abs() <= 2_f64.powi(53);
    argument::in_range(is_whole, "x", x, "a whole number of at most 2^53 in size")?;
    Ok(x.as_f64() as i64)
}
