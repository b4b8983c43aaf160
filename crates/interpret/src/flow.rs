//! The amount of attention that crosses from one modality to another.

use crate::Error;
use crate::rollout::{mean_over_heads, products, with_residual};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array3, ArrayView2, ArrayView4, Axis, s};

/// The modality of a token. Special tokens belong to the modality of their segment: `[CLS]` and `[SEP]` of BERT are
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    /// A patch of an image.
    Vision,
    /// A piece of text.
    Text,
    /// Padding, which is left out.
    Padding,
}

/// The modality of each token, from the positions of each modality.
///
/// # Errors
/// [`Error::NotPartitioned`] if a position appears twice or not at all; [`Error::Argument`] for a position that is
/// not below `tokens`.
///
/// ```
/// use bochner_interpret::{Error, Modality, modalities};
///
/// let kinds = modalities(4, &[0, 1], &[2], &[3])?;
/// assert_eq!(kinds[2], Modality::Text);
/// let twice = modalities(4, &[0, 1], &[1, 2], &[3]);
/// assert!(matches!(twice, Err(Error::NotPartitioned { token: 1, times: 2 })));
/// # Ok::<(), Error>(())
/// ```
pub fn modalities(
    tokens: usize,
    vision: &[usize],
    text: &[usize],
    padding: &[usize],
) -> Result<Vec<Modality>, Error> {
    let mut kinds = vec![Modality::Padding; tokens];
    let mut times = vec![0; tokens];
    for (kind, positions) in [
        (Modality::Vision, vision),
        (Modality::Text, text),
        (Modality::Padding, padding),
    ] {
        for &at in positions {
            argument::index("positions of a modality", at, tokens)?;
            kinds[at] = kind;
            times[at] += 1;
        }
    }
    match times.iter().position(|&times| times != 1) {
        None => Ok(kinds),
        Some(token) => Err(Error::NotPartitioned {
            token,
            times: times[token],
        }),
    }
}

/// Four readings of *inter-modality flow*, for each layer, `[L]`.
///
/// They are **reconstructions**: Xue et al. name the quantity and its purpose, and the equation itself was not
/// found. Each is a share between 0 and 1 of mass that crosses; 0 where there is no mass at all, or one modality alone.
/// Rows of zeros add no mass.
#[derive(Clone, Debug, PartialEq)]
pub struct InterModalityFlow {
    /// The share of the attention, heads averaged.
    pub attention: Array1<f64>,
    /// The share with the residual stream, $\tfrac12 A + \tfrac12 I$.
    pub residual: Array1<f64>,
    /// The share of the [rollout](crate::attention_rollout) of this layer and all below it.
    pub rollout: Array1<f64>,
    /// The share of the attention times the norm of the value vector that it fetches; `None` without values.
    pub norm_weighted: Option<Array1<f64>>,
    /// The share under uniform attention over the tokens, without the residual stream, $2 n_v n_t / (n_v + n_t)^2$. The
    /// shares depend on $n_v : n_t$; their ratio to this number does so less. It is 0 if one modality is alone, which
    /// has no such ratio.
    pub uniform: f64,
}

/// The share of attention that crosses between vision and text, in four reconstructions.
///
/// $$F(A) = \frac{\sum_{i \in V, j \in T} A_{ij} + \sum_{i \in T, j \in V} A_{ij}}{\sum_{i, j \in V \cup T} A_{ij}}$$
///
/// | field | $A$ in layer $l$ |
/// |---|---|
/// | `attention` | $\bar A_l$, the mean over the heads |
/// | `residual` | $\tilde A_l = \tfrac12 \bar A_l + \tfrac12 I$ |
/// | `rollout` | $\tilde A_l \cdots \tilde A_1$ |
/// | `norm_weighted` | the mean over the heads of $A_{ij} \lVert v_j \rVert_2$ |
///
/// *where*
///
/// * $V, T$: the tokens that `kinds` calls vision and text. Rows and columns of padding are left out first, and
///   the rest is not normalised again
/// * $v_j$: `v`, the head's value vector, before the output map
///
/// # Shapes
/// `a: [L, M, T, T]`, `v: [L, M, T, dv]`, `kinds: [T]`; one example at a time.
///
/// # Errors
/// [`Error::Argument`] for no weights, weights that are not square, values or kinds of another length, a weight
/// between tokens that is negative or not finite, weights whose products overflow, or a value of a token that is
/// not finite;
/// [`Error::OnlyPadding`] if no token is left.
///
/// # Numerics
/// In double precision.
///
/// # Reference
/// Xue et al., *Probing inter-modality: visual parsing with self-attention for vision-and-language pre-training*,
/// NeurIPS 2021, which these reconstruct. Rollout: Abnar, Zuidema 2020. Norms: Kobayashi et al., *Attention is not
/// only a weight*, 2020, which takes the norm after the output map.
///
/// ```
/// use bochner_interpret::{Modality::{Text, Vision}, inter_modality_flow};
/// use bochner_interpret::ndarray::Array4;
///
/// let uniform = Array4::from_elem((2, 1, 4, 4), 0.25_f32);
/// let flow = inter_modality_flow(uniform.view(), None, &[Vision, Vision, Vision, Text])?;
/// assert_eq!(flow.uniform, 6.0 / 16.0);
/// assert_eq!(flow.attention.to_vec(), [flow.uniform; 2]);
/// assert!((flow.residual[0] - flow.uniform / 2.0).abs() < 1e-15);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn inter_modality_flow<T: Real>(
    a: ArrayView4<T>,
    v: Option<ArrayView4<T>>,
    kinds: &[Modality],
) -> Result<InterModalityFlow, Error> {
    let (layers, heads, length, _) = a.dim();
    argument::not_empty("a", a.shape())?;
    argument::shape("a", &[layers, heads, length, length], a.shape())?;
    argument::shape("kinds", &[length], &[kinds.len()])?;
    let tokens = (0..kinds.len()).filter(|&i| kinds[i] != Modality::Padding);
    let tokens: Vec<usize> = tokens.collect();
    if tokens.is_empty() {
        return Err(Error::OnlyPadding);
    }
    let is_vision = tokens.iter().map(|&i| kinds[i] == Modality::Vision);
    let is_vision: Vec<bool> = is_vision.collect();
    let attention = mean_over_heads(a.outer_iter(), &tokens, |l, m, i, j| {
        format!("a[[{l}, {m}, {i}, {j}]]")
    })?;
    let shares = |layers: &Array3<f64>| -> Array1<f64> {
        let layers = layers.outer_iter();
        layers.map(|layer| share(layer, &is_vision)).collect()
    };
    let residual = attention.outer_iter().map(with_residual);
    let [of_vision, all] = [is_vision.iter().filter(|x| **x).count(), tokens.len()];
    Ok(InterModalityFlow {
        attention: shares(&attention),
        residual: residual.map(|a| share(a.view(), &is_vision)).collect(),
        rollout: shares(&products(&attention)?),
        norm_weighted: match v {
            Some(v) => Some(shares(&weighted_by_norms(a, v, &tokens)?)),
            None => None,
        },
        uniform: (2 * of_vision * (all - of_vision)) as f64 / (all * all) as f64,
    })
}

/// The share of the mass of one matrix that crosses; 0 without mass.
fn share(a: ArrayView2<f64>, is_vision: &[bool]) -> f64 {
    // The share has no scale, and numbers of at most 1 have no sum that overflows.
    let largest = a.iter().fold(0.0, |largest: f64, &x| largest.max(x));
    if largest == 0.0 {
        return 0.0;
    }
    let (mut crossing, mut total) = (0.0, 0.0);
    for ((i, j), x) in a.indexed_iter() {
        let x = x / largest;
        total += x;
        if is_vision[i] != is_vision[j] {
            crossing += x;
        }
    }
    crossing / total
}

/// The mean over the heads of the weights times the norms of the values, `[L, n, n]`.
fn weighted_by_norms<T: Real>(
    a: ArrayView4<T>,
    v: ArrayView4<T>,
    tokens: &[usize],
) -> Result<Array3<f64>, Error> {
    let (layers, heads, length, _) = a.dim();
    argument::shape("v", &[layers, heads, length, v.dim().3], v.shape())?;
    let mut weighted = Array3::zeros((layers, tokens.len(), tokens.len()));
    for l in 0..layers {
        // A share has no scale, and values of at most 1 have norms and sums that cannot overflow.
        let values = v.index_axis(Axis(0), l).select(Axis(1), tokens);
        if let Some(((m, j, n), &got)) = values.indexed_iter().find(|(_, x)| !x.is_finite()) {
            let place = format!("v[[{l}, {m}, {}, {n}]]", tokens[j]);
            return Err(argument::out_of_range(place, got, "finite").into());
        }
        let largest = values
            .iter()
            .fold(0.0, |largest: f64, x| largest.max(x.as_f64().abs()));
        if largest == 0.0 {
            continue;
        }
        for m in 0..heads {
            for (j, &key) in tokens.iter().enumerate() {
                let squares = values
                    .slice(s![m, j, ..])
                    .map(|x| (x.as_f64() / largest).powi(2));
                let norm = squares.sum().sqrt() / heads as f64;
                for (i, &query) in tokens.iter().enumerate() {
                    weighted[[l, i, j]] += norm * a[[l, m, query, key]].as_f64();
                }
            }
        }
    }
    argument::finite("weights times values", weighted.shape(), &weighted)?;
    Ok(weighted)
}
