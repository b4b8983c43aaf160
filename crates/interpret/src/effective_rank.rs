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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::check::random;
    use ndarray::{Array4, array};

    fn of(a: &Array2<f64>) -> f64 {
        let weights = a.view().insert_axis(Axis(0)).insert_axis(Axis(0));
        let all = Array2::from_elem((1, a.nrows()), true);
        effective_rank(weights, all.view()).unwrap()[[0, 0]]
    }

    #[test]
    fn ranks_worked_out_by_hand() {
        assert_eq!(of(&Array2::zeros((3, 2))), 0.0);
        // The singular values are 3 and 1.
        let want = (-(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln())).exp();
        assert!((of(&array![[0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]]) - want).abs() < 1e-14);
    }

    #[test]
    fn the_effective_rank_lies_between_one_and_the_rank() {
        for rank in 1..5 {
            let left: Array2<f64> = random((6, rank), "left");
            let rank_of = of(&left.dot(&random((rank, 7), "right")));
            assert!((1.0 - 1e-12..rank as f64 + 1e-9).contains(&rank_of));
            assert!(rank == 1 || rank_of > 1.01, "{rank_of}");
        }
    }

    #[test]
    fn it_has_no_scale() {
        let a: Array2<f64> = random((4, 4), "weights");
        for scale in [1e-300, 1e307] {
            assert!((of(&(scale * &a)) - of(&a)).abs() < 1e-10);
        }
    }

    #[test]
    fn rows_of_padding_count_for_zero() {
        let mut weights: Array4<f64> = random((1, 2, 3, 3), "weights");
        weights.slice_mut(s![.., .., 2, ..]).fill(f64::NAN);
        let kept = array![[true, true, false]];
        let got = effective_rank(weights.view(), kept.view()).unwrap();
        weights.slice_mut(s![.., .., 2, ..]).fill(0.0);
        let all = array![[true, true, true]];
        let want = effective_rank(weights.view(), all.view()).unwrap();
        assert!((&got - &want).iter().all(|x| x.abs() < 1e-12));
        weights[[0, 0, 0, 0]] = f64::NAN;
        let error = effective_rank(weights.view(), kept.view()).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let said = "`weights[[0, 0, 0, 0]]` is NaN, but must be finite";
        assert_eq!(error.to_string(), said);
        let none = array![[false, false, false]];
        assert_eq!(
            effective_rank(weights.view(), none.view()).unwrap(),
            array![[0.0, 0.0]]
        );
    }

    #[test]
    fn each_example_keeps_queries_of_its_own() {
        let weights: Array4<f64> = random((2, 1, 3, 3), "weights");
        let kept = array![[true, false, false], [true, true, true]];
        let got = effective_rank(weights.view(), kept.view()).unwrap();
        for b in 0..2 {
            let (weights, kept) = (
                weights.slice(s![b..=b, .., .., ..]),
                kept.slice(s![b..=b, ..]),
            );
            assert_eq!(
                got.slice(s![b..=b, ..]),
                effective_rank(weights, kept).unwrap()
            );
        }
        assert!((got[[0, 0]] - 1.0).abs() < 1e-12 && got[[1, 0]] > 1.01);
    }
}
