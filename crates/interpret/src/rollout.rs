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
