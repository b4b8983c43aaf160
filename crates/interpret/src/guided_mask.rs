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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array};

    #[test]
    fn the_set_holds_the_seed_and_has_the_size_asked_for() {
        let row = array![0.1, 0.4, 0.05, 0.25, 0.2];
        for seed in 0..5 {
            let all = attention_guided_mask(row.view(), seed, 5).unwrap();
            for count in 1..=5 {
                let masked = attention_guided_mask(row.view(), seed, count).unwrap();
                assert_eq!(masked, all[..count]);
                assert_eq!(masked[0], seed);
            }
            assert!(attention_guided_mask(row.view(), seed, 6).is_err());
        }
        assert_eq!(
            attention_guided_mask(row.view(), 2, 5).unwrap(),
            [2, 1, 3, 4, 0]
        );
    }

    #[test]
    fn equal_weights_are_taken_in_the_order_of_tokens() {
        let row = array![0.0, -0.0, 0.0, 0.0_f64];
        assert_eq!(attention_guided_mask(row.view(), 3, 3).unwrap(), [3, 0, 1]);
    }

    #[test]
    fn excluded_tokens_and_wrong_arguments_are_refused() {
        let row = array![0.5, f64::NEG_INFINITY, 0.5];
        assert_eq!(attention_guided_mask(row.view(), 0, 2).unwrap(), [0, 2]);
        assert!(attention_guided_mask(row.view(), 0, 3).is_err());
        assert!(attention_guided_mask(row.view(), 3, 1).is_err());
        assert!(attention_guided_mask(row.view(), 0, 0).is_err());
        let error = attention_guided_mask(array![0.5, f64::NAN].view(), 0, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`weights[1]` is NaN, but must be a number"
        );
    }

    /// Sorts that are not stable leave the order of short rows as it is.
    #[test]
    fn so_are_equal_weights_of_long_rows() {
        let row: Array1<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let got = attention_guided_mask(row.view(), 0, 100).unwrap();
        let others = (1..100_usize).step_by(2).chain((2..100).step_by(2));
        assert!(
            got[0] == 0 && got[1..].iter().copied().eq(others),
            "{got:?}"
        );
    }
}
