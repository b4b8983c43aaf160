//! The effective rank of a matrix of weights: its number of directions.

use crate::Error;
use crate::entropy::entropy;
use crate::rows::check;
use bochner_dense::svd;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView2, ArrayView4, Axis, s};

/// The effective rank of the weights of each example and head.
///
/// $$\operatorname{erank}(\alpha) = \exp\Bigl(-\sum_k p_k \log p_k\Bigr), \qquad
/// p_k = \frac{\sigma_k}{\sum_l \sigma_l}$$
///
/// *where* $\sigma$ are the singular values of the head's matrix $\alpha$, `[Tq, Tk]`, whose rows of queries that are
/// not kept are taken for zero.
///
/// It lies between 1 (all rows are multiples of one) and the rank; 0 stands for a matrix of zeros. Rows of zeros change
/// nothing.
///
/// # Shapes
/// `weights: [B, M, Tq, Tk]`, `queries: [B, Tq]` (`true` keeps) to `[B, M]`.
///
/// # Errors
/// [`Error::Argument`] for empty weights, another shape of `queries`, or a weight of a kept query that is not finite.
/// Weights may be negative. [`Error::Dense`] if the singular values do not converge.
///
/// # Numerics
/// In double precision, $O(T_q T_k \min(T_q, T_k))$ for each head. Singular values that should be zero come out as
/// rounding of the largest one, which moves the result by about 1e-14.
///
/// # Reference
/// Roy, Vetterli, *The effective rank: a measure of effective dimensionality*, 2007, definition 1.
///
/// ```
/// use bochner_interpret::effective_rank;
/// use bochner_interpret::ndarray::{Array2, Array4};
///
/// let own = Array4::from_shape_fn((1, 1, 5, 5), |(_, _, i, j)| f64::from(u8::from(i == j)));
/// let uniform = Array4::from_elem((1, 1, 5, 5), 0.2);
/// let all = Array2::from_elem((1, 5), true);
/// assert!((effective_rank(own.view(), all.view())?[[0, 0]] - 5.0).abs() < 1e-10);
/// assert!((effective_rank(uniform.view(), all.view())?[[0, 0]] - 1.0).abs() < 1e-10);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn effective_rank<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
) -> Result<Array2<f64>, Error> {
    check(weights, queries)?;
    let (batch, heads, ..) = weights.dim();
    let mut ranks = Array2::zeros((batch, heads));
    for ((b, m), rank) in ranks.indexed_iter_mut() {
        let kept = (0..queries.ncols()).filter(|&i| queries[[b, i]]);
        let kept: Vec<usize> = kept.collect();
        let all = weights.slice(s![b, m, .., ..]);
        for &i in &kept {
            if let Some(j) = all.row(i).iter().position(|weight| !weight.is_finite()) {
                let place = format!("weights[[{b}, {m}, {i}, {j}]]");
                return Err(argument::out_of_range(place, all[[i, j]], "finite").into());
            }
        }
        let rows = all.select(Axis(0), &kept);
        *rank = of_matrix(rows.mapv(T::as_f64).view())?;
    }
    Ok(ranks)
}

fn of_matrix(a: ArrayView2<f64>) -> Result<f64, Error> {
    if a.iter().all(|&x| x == 0.0) {
        return Ok(0.0);
    }
    // The rank has no scale, and numbers of at most 1 cannot overflow.
    let largest = a.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let values = svd((&a / largest).view())?.s;
    let total = values.sum();
    Ok(entropy(values.iter().map(|value| value / total)).exp())
}
