//! The density of the Gaussian copula as a function that can be trained through.

use crate::dense::{solve, solve_transposed};
use crate::error::{Error, same_shape};
use crate::factor::{half_neg_log_det, normalise, normalise_vjp};
use crate::normal::{ln_normal_density, normal_quantile};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, Axis};

/// The logarithm of the Gaussian copula's density, from a triangular factor.
///
/// $$\log c(u) = -\tfrac12 \log \det R - \tfrac12 x^\top (R^{-1} - I) x, \qquad
///   x_m = \Phi^{-1}(u_m)$$
///
/// *where* $R = \hat L \hat L^\top$, and $\hat L$ is the factor with its rows divided by their
/// norms.
///
/// # Shapes
/// `u: [n, M]`, strictly between 0 and 1, `factor: [M, M]` to `[n]`.
///
/// # Errors
/// [`Error::Score`], [`Error::ShapeMismatch`], and as [`normalise`].
///
/// # Numerics
/// In double precision for either type.
///
/// # Example
///
/// ```
/// use bochner_copula::copula_log_density;
/// use ndarray::array;
///
/// let factor = array![[1.0, 0.0], [0.75, 1.0]];
/// let value = copula_log_density(array![[0.5, 0.5]].view(), factor.view())?;
/// assert!((value[0] + 0.8_f64.ln()).abs() < 1e-12);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn copula_log_density<T: Real>(
    u: ArrayView2<T>,
    factor: ArrayView2<T>,
) -> Result<Array1<T>, Error> {
    let scores = normal_scores(u, factor.nrows())?;
    let lh = unit_rows(factor)?;
    Ok(log_density_at_scores(lh.view(), scores.view()).mapv(T::of))
}

/// The gradients of [`copula_log_density`].
#[derive(Clone, Debug, PartialEq)]
pub struct CopulaGradients<T> {
    /// `[n, M]`.
    pub u: Array2<T>,
    /// `[M, M]`, zero above the diagonal.
    pub factor: Array2<T>,
}

/// The vector-Jacobian product of [`copula_log_density`].
///
/// $$\bar u_{im} = g_i \frac{x_{im} - w_{im}}{\varphi(x_{im})}, \qquad
///   \bar{\hat L} = \mathrm{lower}\Big(\sum_i g_i w_i y_i^\top\Big)
///     - \sum_i g_i \, \mathrm{diag}(1 / \hat L_{mm})$$
///
/// *where* $y = \hat L^{-1} x$, $w = \hat L^{-\top} y$ and $\varphi$ is the normal density.
///
/// # Shapes
/// `u: [n, M]`, `factor: [M, M]`, `cotangent` (*g*): `[n]`.
///
/// # Errors
/// As [`copula_log_density`].
pub fn copula_log_density_vjp<T: Real>(
    u: ArrayView2<T>,
    factor: ArrayView2<T>,
    cotangent: ArrayView1<T>,
) -> Result<CopulaGradients<T>, Error> {
    let scores = normal_scores(u, factor.nrows())?;
    let bar = ScoreGradients::of(scores.view(), factor, cotangent)?;
    let mut to_u = bar.scores;
    to_u.zip_mut_with(&scores, |g, &x| *g /= ln_normal_density(x).exp());
    Ok(CopulaGradients {
        u: to_u.mapv(T::of),
        factor: bar.factor.mapv(T::of),
    })
}

/// The gradients of `sum_i g_i log c` along the normal scores, and along the given factor.
pub(crate) struct ScoreGradients {
    pub(crate) scores: Array2<f64>,
    pub(crate) factor: Array2<f64>,
}

impl ScoreGradients {
    pub(crate) fn of<T: Real>(
        scores: ArrayView2<f64>,
        factor: ArrayView2<T>,
        cotangent: ArrayView1<T>,
    ) -> Result<Self, Error> {
        same_shape("cotangent", &[scores.nrows()], cotangent.shape())?;
        let lh = unit_rows(factor)?;
        let mut to_scores = scores.to_owned();
        let mut to_lh = Array2::<f64>::zeros(lh.dim());
        for (mut row, g) in to_scores.rows_mut().into_iter().zip(&cotangent) {
            let g = g.as_f64();
            let row = row.as_slice_mut().expect("made in standard layout");
            along_one_row(lh.view(), g, row, &mut to_lh);
        }
        let wide = factor.mapv(T::as_f64).insert_axis(Axis(0));
        let gradient = normalise_vjp(wide.view(), to_lh.insert_axis(Axis(0)).view())?;
        Ok(Self {
            scores: to_scores,
            factor: first(gradient),
        })
    }
}

/// Replaces the scores `x` by the gradient along them and adds that along the factor.
fn along_one_row(lh: ArrayView2<f64>, g: f64, x: &mut [f64], to_lh: &mut Array2<f64>) {
    let mut y = x.to_vec();
    solve(lh, &mut y);
    let mut w = y.clone();
    solve_transposed(lh, &mut w);
    for m in 0..x.len() {
        x[m] = g * (x[m] - w[m]);
        for k in 0..=m {
            to_lh[[m, k]] += g * w[m] * y[k];
        }
        to_lh[[m, m]] -= g / lh[[m, m]];
    }
}

/// `log c` of rows of normal scores `[n, M]`, from a factor of unit rows.
pub(crate) fn log_density_at_scores(lh: ArrayView2<f64>, scores: ArrayView2<f64>) -> Array1<f64> {
    // Term by term, so that a coordinate on which nothing depends cancels exactly.
    let term = |(x, y): (&f64, &f64)| 0.5 * (x - y) * (x + y);
    over_whitened(lh, scores, |x, y| x.iter().zip(y).map(term).sum())
}

/// `-1/2 log det R` and the value of `f(x, L^-1 x)`, added up for each row `x` of the scores.
pub(crate) fn over_whitened(
    lh: ArrayView2<f64>,
    scores: ArrayView2<f64>,
    f: impl Fn(&[f64], &[f64]) -> f64,
) -> Array1<f64> {
    let constant = half_neg_log_det(lh.insert_axis(Axis(0))).expect("a checked factor")[0];
    let value = |x: ArrayView1<f64>| {
        let x = x.to_vec();
        let mut y = x.clone();
        solve(lh, &mut y);
        let value = constant + f(&x, &y);
        // The only way to NaN is an overflow on the way to `y`, and `y` enters by minus its
        // square.
        if value.is_nan() {
            f64::NEG_INFINITY
        } else {
            value
        }
    };
    scores.rows().into_iter().map(value).collect()
}

/// The normal scores of uniform scores `[n, M]`.
pub(crate) fn normal_scores<T: Real>(
    u: ArrayView2<T>,
    dimension: usize,
) -> Result<Array2<f64>, Error> {
    same_shape("u", &[u.nrows(), dimension], u.shape())?;
    let inside = |u: T| u > T::zero() && u < T::one();
    match u.indexed_iter().find(|&(_, &u)| !inside(u)) {
        Some(((row, coordinate), got)) => Err(Error::Score {
            row,
            coordinate,
            got: got.as_f64(),
        }),
        None => Ok(u.mapv(|u| normal_quantile(u.as_f64()))),
    }
}

/// The factor in double precision with its rows divided by their norms.
pub(crate) fn unit_rows<T: Real>(factor: ArrayView2<T>) -> Result<Array2<f64>, Error> {
    let wide = factor.mapv(T::as_f64).insert_axis(Axis(0));
    Ok(first(normalise(wide.view())?))
}

fn first(stack: Array3<f64>) -> Array2<f64> {
    stack.index_axis_move(Axis(0), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{finite_difference, relative_error};
    use ndarray::array;

    fn factor() -> Array2<f64> {
        array![[1.3, 0.0, 0.0], [-0.4, 0.7, 0.0], [0.9, 0.5, 1.1]]
    }

    fn scores() -> Array2<f64> {
        array![[0.2, 0.5, 0.9], [0.8, 0.35, 0.66]]
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (u, factor, g) = (scores(), factor(), array![0.7, -1.4]);
        let got = copula_log_density_vjp(u.view(), factor.view(), g.view()).unwrap();
        // In a parameter in which the step of the differences stays inside the unit interval.
        let scaled: Vec<f64> = u.iter().map(|u| u * 20.0).collect();
        let want = finite_difference(&scaled, |u| {
            let u = ArrayView2::from_shape((2, 3), u)
                .unwrap()
                .mapv(|u| u / 20.0);
            copula_log_density(u.view(), factor.view()).unwrap().dot(&g)
        });
        let per_scaled: Vec<f64> = got.u.iter().map(|g| g / 20.0).collect();
        assert!(relative_error(&per_scaled, &want) < 1e-6);
        let want = finite_difference(factor.as_slice().unwrap(), |factor| {
            let factor = ArrayView2::from_shape((3, 3), factor).unwrap();
            copula_log_density(u.view(), factor).unwrap().dot(&g)
        });
        assert!(relative_error(got.factor.as_slice().unwrap(), &want) < 1e-6);
    }

    #[test]
    fn independence_has_density_one_exactly() {
        let u = array![[1e-300, 1.0 - 1e-16], [0.3, 0.4]];
        let value = copula_log_density(u.view(), Array2::eye(2).view()).unwrap();
        assert_eq!(value, array![0.0, 0.0]);
    }

    #[test]
    fn an_almost_degenerate_factor_does_not_give_nan() {
        let factor = array![[1.0, 0.0, 0.0], [1.0, 1e-300, 0.0], [0.0, 1.0, 1e-300]];
        let u = array![[0.1, 0.9, 0.5], [0.5, 0.5, 0.5], [0.9, 0.1, 1e-300]];
        let value = copula_log_density(u.view(), factor.view()).unwrap();
        assert!(value[0] == f64::NEG_INFINITY && value[1] > 1000.0 && !value[2].is_nan());
    }

    #[test]
    fn single_precision_is_double_precision_rounded() {
        let (u, l) = (scores().mapv(|x| x as f32), factor().mapv(|x| x as f32));
        let single = copula_log_density(u.view(), l.view()).unwrap();
        let (u, l) = (u.mapv(f64::from), l.mapv(f64::from));
        let double = copula_log_density(u.view(), l.view()).unwrap();
        assert_eq!(single, double.mapv(|x| x as f32));
    }

    #[test]
    fn scores_on_the_border_and_wrong_shapes_are_refused() {
        let call = |u: Array2<f64>| copula_log_density(u.view(), factor().view()).unwrap_err();
        let border = call(array![[0.5, 0.5, 0.5], [0.5, 1.0, 0.5]]);
        let (row, coordinate) = (1, 1);
        assert_eq!(
            border,
            Error::Score {
                row,
                coordinate,
                got: 1.0
            }
        );
        assert!(matches!(
            call(array![[0.5, f64::NAN, 0.5]]),
            Error::Score { .. }
        ));
        assert!(matches!(
            call(array![[0.5, 0.5]]),
            Error::ShapeMismatch { .. }
        ));
    }
}
