//! Groups of tokens that are masked together.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::ArrayView1;

/// Attention-guided masking: a token and those that it attends to most, to be masked together.
///
/// A patch of an image says much about its neighbours; masked alone, it is guessed from them. The set holds `seed`
/// first, then the `count - 1` other tokens of the largest weights, in descending order; among equal weights, such as
/// those of a row of zeros, the one that comes first.
///
/// # Shapes
/// `weights: [T]`, the seed's row of weights, heads averaged or not. Weights of tokens that must not be masked,
/// such as padding, are left out by the caller, who sets them to minus infinity.
///
/// # Errors
/// [`Error::Argument`] for a seed that is no token, a count of 0, a count above the number of tokens that may be
/// masked, or a NaN.
///
/// # Reference
/// Xue et al., *Probing inter-modality: visual parsing with self-attention for vision-and-language pre-training*,
/// NeurIPS 2021, masked feature regression. The order among equal weights is ours.
///
/// ```
/// use bochner_interpret::attention_guided_mask;
/// use bochner_interpret::ndarray::array;
///
/// let row = array![0.3_f32, 0.1, 0.3, 0.2, 0.1];
/// assert_eq!(attention_guided_mask(row.view(), 1, 3)?, [1, 0, 2]);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn attention_guided_mask<T: Real>(
    weights: ArrayView1<T>,
    seed: usize,
    count: usize,
) -> Result<Vec<usize>, Error> {
    argument::index("seed", seed, weights.len())?;
    argument::at_least_one("count", count)?;
    if let Some(at) = weights.iter().position(|weight| weight.is_nan()) {
        let place = format!("weights[{at}]");
        return Err(argument::out_of_range(place, weights[at], "a number").into());
    }
    let may_be_masked = |&i: &usize| i != seed && weights[i] > T::neg_infinity();
    let mut others: Vec<usize> = (0..weights.len()).filter(may_be_masked).collect();
    let enough = count <= others.len() + 1;
    let most = format!("at most {}, the tokens there are", others.len() + 1);
    argument::in_range(enough, "count", count as f64, most)?;
    // A stable sort keeps the first of equals first.
    // Zeros of both signs are equal, which `total_cmp` denies.
    others.sort_by(|&i, &j| weights[j].partial_cmp(&weights[i]).expect("no NaN"));
    others.truncate(count - 1);
    others.insert(0, seed);
    Ok(others)
}
