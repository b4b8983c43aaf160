//! The density of the Gaussian copula as a function that can be trained through.

use crate::Error;
use crate::factor::{half_neg_log_det, normalise, normalise_vjp};
use crate::triangular::{solve_columns, solve_columns_transposed};
use bochner_numerics::elementary::{exp_in_place, normal_quantile_in_place};
use bochner_numerics::normal::ln_density;
use bochner_numerics::{Mat, MatMut, Real, argument, matmul, parallel};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};
use std::ops::Range;

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
/// [`Error::Score`], and those of [`normalise`].
///
/// # Numerics
/// The computation is in double precision for either type.
///
/// # Example
///
/// ```
/// use bochner_copula::copula_log_density;
/// use bochner_copula::ndarray::array;
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
    let lh = unit_rows(factor)?;
    let scores = normal_scores(u, lh.nrows())?;
    Ok(log_density_at_scores(lh.view(), scores.view()).mapv(T::of))
}

/// The gradients of [`copula_log_density`].
#[derive(Clone, Debug, PartialEq)]
pub struct CopulaGradients<T> {
    /// The gradient along `u`, `[n, M]`.
    pub u: Array2<T>,
    /// The gradient along `factor`, `[M, M]`, zero above the diagonal.
    pub factor: Array2<T>,
}

/// The vector-Jacobian product of [`copula_log_density`].
///
/// $$\bar u_{im} = g_i \frac{x_{im} - w_{im}}{\varphi(x_{im})}, \qquad
///   \bar{\hat L} = \mathrm{lower}\Big(\sum_i g_i w_i y_i^\top\Big) -
///     \sum_i g_i \mathrm{diag}(1 / \hat L_{mm})$$
///
/// *where* $y = \hat L^{-1} x$, $w = \hat L^{-\top} y$ and $\varphi$ is the normal density.
///
/// # Shapes
/// `u: [n, M]`, `factor: [M, M]`, `cotangent` (*g*): `[n]`.
///
/// # Errors
/// The errors of [`copula_log_density`].
pub fn copula_log_density_vjp<T: Real>(
    u: ArrayView2<T>,
    factor: ArrayView2<T>,
    cotangent: ArrayView1<T>,
) -> Result<CopulaGradients<T>, Error> {
    // A factor without rows has no blocks of scores, so that it is refused first.
    unit_rows(factor)?;
    let scores = normal_scores(u, factor.nrows())?;
    let bar = ScoreGradients::of(scores.view(), factor, cotangent)?;
    let mut to_u = bar.scores;
    by_rows(&mut to_u, |rows, g| {
        let logarithms = scores.slice(s![rows, ..]).mapv(ln_density);
        let mut densities = logarithms.into_raw_vec_and_offset().0;
        exp_in_place(&mut densities);
        g.iter_mut().zip(densities).for_each(|(g, d)| *g /= d);
    });
    Ok(CopulaGradients {
        u: to_u.mapv_into_any(T::of),
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
        argument::shape("cotangent", &[scores.nrows()], cotangent.shape())?;
        let lh = unit_rows(factor)?;
        let (n, dimension) = scores.dim();
        let mut to_scores = Array2::zeros((n, dimension));
        let mut to_lh = Array2::<f64>::zeros(lh.dim());
        let blocks = by_rows(&mut to_scores, |rows, to_scores| {
            let g = cotangent.slice(s![rows.clone()]);
            let g: Vec<f64> = g.iter().map(|g| g.as_f64()).collect();
            let (along_x, along_lh) = along_rows(lh.view(), &g, &turned(scores, rows));
            ArrayViewMut2::from_shape((g.len(), dimension), to_scores)
                .expect("whole rows")
                .assign(&along_x.t());
            along_lh
        });
        blocks.iter().for_each(|along_lh| to_lh += along_lh);
        let total: f64 = cotangent.iter().map(|g| g.as_f64()).sum();
        to_lh
            .diag_mut()
            .zip_mut_with(&lh.diag(), |bar, l| *bar -= total / l);
        let wide = factor.mapv(T::as_f64).insert_axis(Axis(0));
        let gradient = normalise_vjp(wide.view(), to_lh.insert_axis(Axis(0)).view())?;
        Ok(Self {
            scores: to_scores,
            factor: first(gradient),
        })
    }
}

/// Calls `f` on blocks of rows of a row-major array, on all threads, and returns the results in order.
fn by_rows<R: Send>(
    x: &mut Array2<f64>,
    f: impl Fn(Range<usize>, &mut [f64]) -> R + Send + Sync,
) -> Vec<R> {
    let dimension = x.ncols();
    let x = x.as_slice_mut().expect("in row-major order");
    parallel::map_chunks(x, ROWS * dimension, |block, x| {
        let first = block * ROWS;
        f(first..first + x.len() / dimension, x)
    })
}

/// The gradients along turned scores `[M, rows]`, and along the factor.
fn along_rows(lh: ArrayView2<f64>, g: &[f64], x: &[f64]) -> (Array2<f64>, Array2<f64>) {
    let (dimension, rows) = (lh.nrows(), g.len());
    let mut y = x.to_vec();
    solve_columns(lh, &mut y);
    let mut w = y.clone();
    solve_columns_transposed(lh, &mut w);
    let mut along_x = x.to_vec();
    for (x, w) in along_x.chunks_exact_mut(rows).zip(w.chunks_exact_mut(rows)) {
        for ((x, w), g) in x.iter_mut().zip(w).zip(g) {
            *x = g * (*x - *w);
            *w *= g;
        }
    }
    // Only the part on and below the diagonal is read.
    let mut along_lh = vec![0.0; dimension * dimension];
    let product = MatMut::new(&mut along_lh, dimension, dimension);
    let (w, y) = (Mat::new(&w, dimension, rows), Mat::new(&y, dimension, rows));
    matmul(1.0, w, y.t(), 0.0, product);
    let shaped =
        |shape, data| Array2::from_shape_vec(shape, data).expect("allocated with this shape");
    (
        shaped((dimension, rows), along_x),
        shaped(lh.dim(), along_lh),
    )
}

/// `log c` of rows of normal scores `[n, M]`, from a factor of unit rows.
pub(crate) fn log_density_at_scores(lh: ArrayView2<f64>, scores: ArrayView2<f64>) -> Array1<f64> {
    over_whitened(
        lh,
        scores.nrows(),
        |rows| turned(scores, rows),
        relative_to_independence,
    )
}

/// `log c` of rows of uniform scores `[n, M]`, from a factor of unit rows.
#[cfg(feature = "distributions")]
pub(crate) fn log_density_at_uniforms(
    lh: ArrayView2<f64>,
    u: ArrayView2<f64>,
) -> Result<Array1<f64>, Error> {
    check_uniforms(&u, lh.nrows())?;
    let scores = |rows| {
        let mut x = turned(u, rows);
        normal_quantile_in_place(&mut x);
        x
    };
    Ok(over_whitened(
        lh,
        u.nrows(),
        scores,
        relative_to_independence,
    ))
}

/// One term of the logarithm of the density. Taken term by term, a coordinate that is independent of
/// all others cancels exactly.
fn relative_to_independence(x: f64, y: f64) -> f64 {
    0.5 * (x - y) * (x + y)
}

/// The number of rows computed together, turned so that neighbours in memory belong to different rows.
const ROWS: usize = 256;

/// The given rows of `[n, M]`, as `[M, rows]`.
pub(crate) fn turned(x: ArrayView2<f64>, rows: Range<usize>) -> Vec<f64> {
    let (rows, dimension) = (x.slice(s![rows, ..]), x.ncols());
    let mut turned = vec![0.0; rows.len()];
    ArrayViewMut2::from_shape((dimension, rows.nrows()), &mut turned)
        .expect("allocated with this shape")
        .assign(&rows.t());
    turned
}

/// `-1/2 log det R` and the values of `f(x_m, y_m)`, `y = L^-1 x`, added up for each of `n` rows.
///
/// `scores` gives the scores `x` of some rows, `[M, rows]`.
pub(crate) fn over_whitened(
    lh: ArrayView2<f64>,
    n: usize,
    scores: impl Fn(Range<usize>) -> Vec<f64> + Send + Sync,
    f: impl Fn(f64, f64) -> f64 + Send + Sync,
) -> Array1<f64> {
    let constant = half_neg_log_det(lh.insert_axis(Axis(0))).expect("a checked factor")[0];
    let mut values = vec![constant; n];
    parallel::for_each_chunk(&mut values, ROWS, |block, values| {
        let rows = values.len();
        let x = scores(block * ROWS..block * ROWS + rows);
        let mut y = x.clone();
        solve_columns(lh, &mut y);
        for (x, y) in x.chunks_exact(rows).zip(y.chunks_exact(rows)) {
            let terms = x.iter().zip(y).map(|(&x, &y)| f(x, y));
            values
                .iter_mut()
                .zip(terms)
                .for_each(|(value, term)| *value += term);
        }
        // NaN arises only from an overflow on the way to `y`, whose negative square enters the value.
        let overflown = values.iter_mut().filter(|value| value.is_nan());
        overflown.for_each(|value| *value = f64::NEG_INFINITY);
    });
    Array1::from_vec(values)
}

/// The normal scores of uniform scores `[n, M]`.
pub(crate) fn normal_scores<T: Real>(
    u: ArrayView2<T>,
    dimension: usize,
) -> Result<Array2<f64>, Error> {
    check_uniforms(&u, dimension)?;
    let mut scores: Vec<f64> = u.iter().map(|u| u.as_f64()).collect();
    parallel::for_each_chunk(&mut scores, ROWS * dimension, |_, x| {
        normal_quantile_in_place(x)
    });
    Ok(Array2::from_shape_vec(u.dim(), scores).expect("as many as there were"))
}

/// Refuses uniform scores `[n, M]` that do not lie strictly between 0 and 1.
pub(crate) fn check_uniforms<T: Real>(u: &ArrayView2<T>, dimension: usize) -> Result<(), Error> {
    argument::shape("u", &[u.nrows(), dimension], u.shape())?;
    let inside = |u: &T| *u > T::zero() && *u < T::one();
    let blocks = parallel::map(u.nrows().div_ceil(ROWS), |block| {
        let rows = u.slice(s![block * ROWS..u.nrows().min((block + 1) * ROWS), ..]);
        rows.fold(true, |all, u| all & inside(u))
    });
    if blocks.into_iter().all(|all| all) {
        return Ok(());
    }
    match u.indexed_iter().find(|(_, u)| !inside(u)) {
        Some(((row, coordinate), got)) => Err(Error::Score {
            row,
            coordinate,
            got: got.as_f64(),
        }),
        None => Ok(()),
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
