//! Shiftmax alone: rows of whole scores to powers of two.

use crate::Error;
use crate::gamma::{gamma, levels};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Zip};
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
    let mut rows = Shiftmax {
        weights: Array2::zeros(x.raw_dim()),
        gamma: Array1::zeros(x.nrows()),
    };
    let weights = rows.weights.rows_mut();
    for_each_row(
        x,
        mask,
        weights,
        &mut rows.gamma,
        |row, mut weights, place| {
            *place = row.gamma;
            let of = |w: &mut T, x: f64| *w = T::of((x - row.gamma as f64).exp2());
            row.for_each(&mut weights, of);
        },
    )?;
    Ok(rows)
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
    let mut gradient = cotangent.to_owned();
    let mut none = Array1::zeros(x.nrows());
    for_each_row(x, mask, gradient.rows_mut(), &mut none, |row, mut g, _| {
        let (mut sum, mut product) = (0.0, 0.0);
        Zip::from(&mut g)
            .and(&row.x)
            .and(&row.kept)
            .for_each(|g, x, &kept| {
                if kept {
                    let weight = (x.as_f64() - row.gamma as f64).exp2();
                    sum += weight;
                    product += weight * g.as_f64();
                }
            });
        let mean = product / sum;
        let of = |g: &mut T, x: f64| {
            let weight = (x - row.gamma as f64).exp2();
            *g = T::of(LN_2 * weight * (g.as_f64() - mean));
        };
        row.for_each(&mut g, of);
    })?;
    Ok(gradient)
}

/// One row of scores of which something is kept.
struct Row<'a, T> {
    x: ArrayView1<'a, T>,
    kept: Array1<bool>,
    gamma: i64,
}

impl<T: Real> Row<'_, T> {
    /// Calls `f` with the places of kept scores, and clears the others.
    fn for_each(&self, places: &mut ArrayViewMut1<T>, mut f: impl FnMut(&mut T, f64)) {
        Zip::from(places)
            .and(&self.x)
            .and(&self.kept)
            .for_each(|place, x, &kept| match kept {
                true => f(place, x.as_f64()),
                false => *place = T::zero(),
            });
    }
}

/// Calls `f` with each row of which something is kept, and its places; clears those of the other rows.
fn for_each_row<'a, T: Real>(
    x: ArrayView2<T>,
    mask: Option<ArrayView2<bool>>,
    places: impl IntoIterator<Item = ArrayViewMut1<'a, T>>,
    gammas: &mut Array1<i64>,
    mut f: impl FnMut(Row<T>, ArrayViewMut1<T>, &mut i64),
) -> Result<(), Error> {
    if let Some(mask) = &mask {
        argument::shape("mask", x.shape(), mask.shape())?;
    }
    let rows = x.rows().into_iter().zip(places).zip(gammas);
    for (i, ((x, mut place), gamma_place)) in rows.enumerate() {
        let kept = match &mask {
            Some(mask) => mask.row(i).to_owned(),
            None => Array1::from_elem(x.len(), true),
        };
        let scores = x.iter().zip(&kept).filter(|(_, kept)| **kept);
        let scores = scores
            .map(|(&x, _)| whole(x))
            .collect::<Result<Vec<_>, _>>()?;
        match gamma(levels(scores.into_iter())) {
            Some(gamma) => f(Row { x, kept, gamma }, place, gamma_place),
            None => place.fill(T::zero()),
        }
    }
    Ok(())
}

/// A score as an integer.
fn whole<T: Real>(x: T) -> Result<i64, ArgumentError> {
    let is_whole = x.fract() == T::zero() && x.as_f64().abs() <= 2_f64.powi(53);
    argument::in_range(is_whole, "x", x, "a whole number of at most 2^53 in size")?;
    Ok(x.as_f64() as i64)
}
