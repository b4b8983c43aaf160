//! What reaches a layer from the tokens, through all layers below it.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, ArrayView4, Axis};

/// Attention rollout: the product of the layers' weights, each of them mixed with the residual stream.
///
/// $$R_l = \tilde A_l \cdots \tilde A_1, \qquad \tilde A_l = \tfrac12 \bar A_l + \tfrac12 I$$
///
/// *where* $\bar A_l$ is the mean over the heads of layer $l$, without the rows and columns of tokens that are not
/// kept. Later layers stand on the left: row $i$ of $R_l$ says what token $i$ after layer $l$ is made of.
///
/// # Shapes
/// `a: [L, M, T, T]`, `tokens: [T]` (`true` keeps) to `[L, T, T]`; the rows and columns of other tokens are zero.
///
/// # Errors
/// [`Error::Argument`] for no weights, weights that are not square, another shape of `tokens`, a weight of kept
/// tokens that is negative or not finite, or weights whose products overflow.
///
/// # Numerics
/// In double precision. Rows are not normalised: they sum to 1 where those of all layers do.
///
/// # Reference
/// Abnar, Zuidema, *Quantifying attention flow in transformers*, 2020, section 3.
///
/// ```
/// use bochner_interpret::attention_rollout;
/// use ndarray::{Array4, array};
///
/// // Two layers of one head, in which every token looks at the first one.
/// let a = Array4::from_shape_fn((2, 1, 2, 2), |(_, _, _, j)| if j == 0 { 1.0_f32 } else { 0.0 });
/// let rollout = attention_rollout(a.view(), array![true, true].view())?;
/// assert_eq!(rollout[[0, 1, 1]], 0.5);
/// assert_eq!(rollout[[1, 1, 1]], 0.25); // The residual streams leave so much of the second token.
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn attention_rollout<T: Real>(
    a: ArrayView4<T>,
    tokens: ArrayView1<bool>,
) -> Result<Array3<f64>, Error> {
    check(a, "tokens", tokens.len())?;
    let tokens: Vec<usize> = (0..tokens.len()).filter(|&i| tokens[i]).collect();
    let layers = mean_over_heads(a, &tokens)?;
    let (count, length) = (a.dim().0, a.dim().2);
    let mut placed = Array3::zeros((count, length, length));
    for (l, product) in products(&layers)?.outer_iter().enumerate() {
        for ((i, j), &x) in product.indexed_iter() {
            placed[[l, tokens[i], tokens[j]]] = x;
        }
    }
    Ok(placed)
}

/// Refuses weights that are empty or not square, and another number of what is `named` than of tokens.
pub(crate) fn check<T: Real>(
    a: ArrayView4<T>,
    named: &'static str,
    count: usize,
) -> Result<(), Error> {
    let (layers, heads, tokens, _) = a.dim();
    argument::not_empty("weights", a.shape())?;
    argument::shape("weights", &[layers, heads, tokens, tokens], a.shape())?;
    argument::shape(named, &[tokens], &[count])?;
    Ok(())
}

/// The mean over the heads, between the tokens of these indices alone, `[L, n, n]`.
pub(crate) fn mean_over_heads<T: Real>(
    a: ArrayView4<T>,
    tokens: &[usize],
) -> Result<Array3<f64>, Error> {
    let (layers, heads, ..) = a.dim();
    let mut means = Array3::zeros((layers, tokens.len(), tokens.len()));
    for ((l, i, j), mean) in means.indexed_iter_mut() {
        for m in 0..heads {
            let weight = a[[l, m, tokens[i], tokens[j]]];
            argument::non_negative("weights of kept tokens", weight)?;
            *mean += weight.as_f64() / heads as f64;
        }
    }
    Ok(means)
}

/// $\tfrac12 A + \tfrac12 I$.
pub(crate) fn with_residual(a: ArrayView2<f64>) -> Array2<f64> {
    0.5 * (&a + &Array2::<f64>::eye(a.nrows()))
}

/// $\tilde A_l \cdots \tilde A_1$ for every layer.
pub(crate) fn products(layers: &Array3<f64>) -> Result<Array3<f64>, Error> {
    let mut products = layers.clone();
    let mut below = Array2::eye(layers.dim().1);
    for mut layer in products.axis_iter_mut(Axis(0)) {
        below = with_residual(layer.view()).dot(&below);
        layer.assign(&below);
    }
    argument::finite("products of the layers", products.shape(), &products)?;
    Ok(products)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array4, s};

    /// Rows of probabilities.
    fn weights(shape: [usize; 4]) -> Array4<f64> {
        let mut a = Array4::from_shape_fn(shape, |(l, m, i, j)| {
            ((1 + l + 3 * m + 7 * i + 5 * j) as f64).sin().abs()
        });
        let sums = a.sum_axis(Axis(3)).insert_axis(Axis(3));
        a /= &sums;
        a
    }

    #[test]
    fn later_layers_stand_on_the_left() {
        let a = weights([3, 2, 4, 4]);
        let all = Array1::from_elem(4, true);
        let rollout = attention_rollout(a.view(), all.view()).unwrap();
        let of = |l: usize| {
            let mean = a.index_axis(Axis(0), l).mean_axis(Axis(0)).unwrap();
            0.5 * (mean + Array2::<f64>::eye(4))
        };
        let want = of(2).dot(&of(1)).dot(&of(0));
        let got = rollout.index_axis(Axis(0), 2);
        assert!((&got - &want).iter().all(|x| x.abs() < 1e-15));
        let swapped = of(0).dot(&of(1)).dot(&of(2));
        assert!((&got - &swapped).iter().any(|x| x.abs() > 1e-3));
        let sums = rollout.sum_axis(Axis(2));
        assert!(sums.iter().all(|x| (x - 1.0).abs() < 1e-14));
    }

    #[test]
    fn padding_is_left_out() {
        let short = weights([2, 2, 3, 3]);
        let mut a = Array4::from_elem((2, 2, 4, 4), f64::NAN);
        a.slice_mut(s![.., .., ..3, ..3]).assign(&short);
        let kept = Array1::from_vec(vec![true, true, true, false]);
        let got = attention_rollout(a.view(), kept.view()).unwrap();
        let all = Array1::from_elem(3, true);
        let want = attention_rollout(short.view(), all.view()).unwrap();
        assert_eq!(got.slice(s![.., ..3, ..3]), want);
        assert!(got.slice(s![.., 3, ..]).iter().all(|&x| x == 0.0));
        let all = Array1::from_elem(4, true);
        assert!(attention_rollout(a.view(), all.view()).is_err());
        assert!(attention_rollout(short.view(), kept.view()).is_err());
        let huge = Array4::from_elem((2, 1, 2, 2), 1e300);
        let two = Array1::from_elem(2, true);
        assert!(attention_rollout(huge.view(), two.view()).is_err());
    }
}
