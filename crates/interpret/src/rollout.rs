//! Attention rollout: the contribution of the tokens to a layer, through all layers below it.

use crate::Error;
use crate::rows::refused;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, Array3, Array4, ArrayView2, ArrayView3, ArrayView4, Axis};

/// Attention rollout: the product of the layers' weights, each of them mixed with the residual stream.
///
/// $$R_l = \tilde A_l \cdots \tilde A_1, \qquad \tilde A_l = \tfrac12 \bar A_l + \tfrac12 I$$
///
/// *where* $\bar A_l$ is the mean over the heads of layer $l$, without the rows and columns of tokens that are not
/// kept. Later layers are the left factors: row $i$ of $R_l$ has the shares of the tokens in token $i$ after layer $l$.
///
/// # Shapes
/// `weights`: one array `[B, M, T, T]` for each layer, the lowest first, as models inspect them; layers may differ
/// in their number of heads. `queries: [B, T]` (`true` keeps). The result is `[B, L, T, T]`, example by example; the
/// rows and columns of other tokens are zero.
///
/// # Errors
/// [`Error::Argument`] for no layers, weights that are empty, not square, or for other examples or tokens than those
/// of the first layer, another shape of `queries`, a weight of kept tokens that is negative or not finite, or weights
/// whose products overflow.
///
/// # Numerics
/// In double precision. Rows are not normalised: they sum to 1 where those of all layers do. If the row of a kept token
/// is zero in all heads of a layer, the residual stream keeps half of the token there, and its row sums to less.
///
/// # Reference
/// Abnar, Zuidema, *Quantifying attention flow in transformers*, 2020, section 3.
///
/// ```
/// use bochner_interpret::attention_rollout;
/// use bochner_interpret::ndarray::{Array4, array};
///
/// // One head of one sentence, in which every token looks at the first one; both layers do so.
/// let layer = Array4::from_shape_fn((1, 1, 2, 2), |(.., j)| if j == 0 { 1.0_f32 } else { 0.0 });
/// let rollout = attention_rollout(&[layer.view(), layer.view()], array![[true, true]].view())?;
/// assert_eq!(rollout[[0, 0, 1, 1]], 0.5);
/// assert_eq!(rollout[[0, 1, 1, 1]], 0.25); // The residual streams keep this part of the second token.
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn attention_rollout<T: Real>(
    weights: &[ArrayView4<T>],
    queries: ArrayView2<bool>,
) -> Result<Array4<f64>, Error> {
    argument::at_least_one("layers of weights", weights.len())?;
    let (batch, _, tokens, _) = weights[0].dim();
    for (l, layer) in weights.iter().enumerate() {
        let (name, heads) = (format!("weights[{l}]"), layer.dim().1);
        argument::not_empty(name.clone(), layer.shape())?;
        argument::shape(name, &[batch, heads, tokens, tokens], layer.shape())?;
    }
    argument::shape("queries", &[batch, tokens], queries.shape())?;
    let mut rollouts = Array4::zeros((batch, weights.len(), tokens, tokens));
    for (b, mut rollout) in rollouts.outer_iter_mut().enumerate() {
        let kept: Vec<usize> = (0..tokens).filter(|&i| queries[[b, i]]).collect();
        let layers = weights.iter().map(|layer| layer.index_axis(Axis(0), b));
        let place = |l, m, i, j| format!("weights[{l}][[{b}, {m}, {i}, {j}]]");
        let means = mean_over_heads(layers, &kept, place)?;
        for ((l, i, j), &x) in products(&means)?.indexed_iter() {
            rollout[[l, kept[i], kept[j]]] = x;
        }
    }
    Ok(rollouts)
}

/// The mean over the heads of each layer, `[M, T, T]`, between the tokens of these indices alone: `[L, n, n]`. A weight
/// that is refused is named by the place that layer, head, query and key have.
pub(crate) fn mean_over_heads<'a, T: Real>(
    layers: impl ExactSizeIterator<Item = ArrayView3<'a, T>>,
    tokens: &[usize],
    place: impl Fn(usize, usize, usize, usize) -> String,
) -> Result<Array3<f64>, Error> {
    let mut means = Array3::zeros((layers.len(), tokens.len(), tokens.len()));
    for (l, (mut of_layer, layer)) in means.outer_iter_mut().zip(layers).enumerate() {
        let heads = layer.dim().0;
        for ((i, j), mean) in of_layer.indexed_iter_mut() {
            for m in 0..heads {
                let weight = layer[[m, tokens[i], tokens[j]]];
                if !(weight.is_finite() && weight >= T::zero()) {
                    return Err(refused(place(l, m, tokens[i], tokens[j]), weight));
                }
                *mean += weight.as_f64() / heads as f64;
            }
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
    use crate::kept_queries;
    use ndarray::s;

    /// Rows of probabilities, of two examples with three heads and four tokens, which differ between layers.
    fn weights(layer: usize) -> Array4<f64> {
        let mut a = Array4::from_shape_fn((2, 3, 4, 4), |(b, m, i, j)| {
            ((1 + layer + 11 * b + 3 * m + 7 * i + 5 * j) as f64)
                .sin()
                .abs()
        });
        let sums = a.sum_axis(Axis(3)).insert_axis(Axis(3));
        a /= &sums;
        a
    }

    /// The rollout of layers that are kept in arrays.
    fn rollout(layers: &[Array4<f64>], lengths: [usize; 2]) -> Result<Array4<f64>, Error> {
        let views: Vec<_> = layers.iter().map(|layer| layer.view()).collect();
        attention_rollout(&views, kept_queries(&lengths, 4)?.view())
    }

    #[test]
    fn later_layers_stand_on_the_left() {
        let layers = [0, 1, 2].map(weights);
        let rollout = rollout(&layers, [4, 4]).unwrap();
        assert_eq!(rollout.dim(), (2, 3, 4, 4));
        for b in 0..2 {
            let of = |l: usize| {
                let mean = layers[l].index_axis(Axis(0), b).mean_axis(Axis(0)).unwrap();
                0.5 * (mean + Array2::<f64>::eye(4))
            };
            let want = of(2).dot(&of(1)).dot(&of(0));
            let got = rollout.slice(s![b, 2, .., ..]);
            assert!((&got - &want).iter().all(|x| x.abs() < 1e-15));
            let swapped = of(0).dot(&of(1)).dot(&of(2));
            assert!((&got - &swapped).iter().any(|x| x.abs() > 1e-3));
        }
        let sums = rollout.sum_axis(Axis(3));
        assert!(sums.iter().all(|x| (x - 1.0).abs() < 1e-14));
    }

    /// The mean of three heads as the one head of a layer.
    #[test]
    fn layers_may_differ_in_their_number_of_heads() {
        let layers = [0, 1].map(weights);
        let want = rollout(&layers, [4, 3]).unwrap();
        for l in 0..2 {
            let mut layers = layers.clone();
            layers[l] = layers[l].mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
            let got = rollout(&layers, [4, 3]).unwrap();
            assert!((&got - &want).iter().all(|x| x.abs() < 1e-15));
        }
    }

    #[test]
    fn sentences_of_a_batch_do_not_meet() {
        let layers = [0, 1].map(weights);
        let both = rollout(&layers, [4, 3]).unwrap();
        for (b, length) in [4, 3].into_iter().enumerate() {
            let alone = [0, 1].map(|l| layers[l].slice(s![b..=b, .., .., ..]));
            let kept = kept_queries(&[length], 4).unwrap();
            let alone = attention_rollout(&alone, kept.view()).unwrap();
            assert_eq!(both.slice(s![b..=b, .., .., ..]), alone);
        }
    }

    #[test]
    fn padding_is_left_out() {
        let mut layers = [0, 1].map(weights);
        let short = layers.clone();
        for layer in &mut layers {
            layer.slice_mut(s![1, .., 3, ..]).fill(f64::NAN);
            layer.slice_mut(s![1, .., .., 3]).fill(f64::NAN);
        }
        let got = rollout(&layers, [4, 3]).unwrap();
        let short: Vec<_> = short
            .iter()
            .map(|layer| layer.slice(s![1.., .., ..3, ..3]))
            .collect();
        let kept = kept_queries(&[3], 3).unwrap();
        let want = attention_rollout(&short, kept.view()).unwrap();
        assert_eq!(got.slice(s![1.., .., ..3, ..3]), want);
        assert!(got.slice(s![1, .., 3, ..]).iter().all(|&x| x == 0.0));
        assert!(got.slice(s![1, .., .., 3]).iter().all(|&x| x == 0.0));
        let error = rollout(&layers, [4, 4]).unwrap_err().to_string();
        let said = "`weights[0][[1, 0, 0, 3]]` is NaN, but must be finite and at least 0";
        assert_eq!(error, said);
        let mut wrong = [0, 1].map(weights);
        wrong[1][[0, 2, 3, 1]] = -0.5;
        let error = rollout(&wrong, [4, 4]).unwrap_err().to_string();
        assert!(
            error.starts_with("`weights[1][[0, 2, 3, 1]]` is -0.5"),
            "{error}"
        );
        let nothing = rollout(&layers, [4, 0]).unwrap();
        assert!(nothing.slice(s![1, .., .., ..]).iter().all(|&x| x == 0.0));
    }

    #[test]
    fn layers_that_do_not_fit_are_named() {
        let says = |layers: &[Array4<f64>]| rollout(layers, [4, 4]).unwrap_err().to_string();
        assert!(says(&[]).starts_with("`layers of weights`"));
        let one = weights(0).slice(s![..1, .., .., ..]).to_owned();
        assert!(says(&[weights(0), one]).starts_with("`weights[1]`"));
        let wide = weights(0).slice(s![.., .., ..3, ..]).to_owned();
        assert!(says(&[wide]).starts_with("`weights[0]`"));
        let small = weights(0).slice(s![.., .., ..3, ..3]).to_owned();
        assert!(says(&[small]).starts_with("`queries`"));
        let huge = Array4::from_elem((2, 1, 4, 4), 1e300);
        assert!(says(&[huge.clone(), huge]).starts_with("`products of the layers`"));
    }

    #[test]
    fn padding_may_stand_among_the_tokens() {
        let layers = [0, 1].map(weights);
        let tokens = [0, 2, 3];
        let kept = Array2::from_shape_fn((2, 4), |(_, t)| tokens.contains(&t));
        let between = |a: &Array4<f64>| a.select(Axis(2), &tokens).select(Axis(3), &tokens);
        let without = layers.each_ref().map(between);
        let all = Array2::from_elem((2, 3), true);
        let got = attention_rollout(&layers.each_ref().map(|layer| layer.view()), kept.view());
        let want = attention_rollout(&without.each_ref().map(|layer| layer.view()), all.view());
        let got = got.unwrap();
        assert_eq!(between(&got), want.unwrap());
        assert!(got.slice(s![.., .., 1, ..]).iter().all(|&x| x == 0.0));
        assert!(got.slice(s![.., .., .., 1]).iter().all(|&x| x == 0.0));
    }
}
