//! The part of the divergence from the prior that is due to the dependence between the heads.

use crate::Error;
use crate::factor::{flat, half_neg_log_det, half_neg_log_det_vjp};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array4, ArrayView1, ArrayView4};

/// The part of the divergence that is due to the dependence between the heads, never negative.
///
/// $$\mathrm{KL}(q, p) = \mathrm{KL}_0 - \tfrac12 \sum_l \log \det \mathrm{Corr}_l$$
///
/// *where* the prior `p` is independent over heads and latent dimensions, $\mathrm{KL}_0$ is the
/// mean field's divergence, that of the marginals of the posterior `q`, and the rest, computed
/// here, is zero exactly for independent heads.
///
/// # Shapes
/// `lh: [1 or B, d, M, M]`, normalised factors, to `[1 or B]`: a factor shared by the batch gives
/// the one number that counts for each example.
///
/// # Errors
/// The errors of [`normalise`](crate::normalise).
///
/// # Numerics
/// The shapes of [`half_neg_log_det`].
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, the objective of MIKAN. With
/// Gaussian marginals the copula's entropy has this closed form, and nothing is estimated.
///
/// # Example
///
/// ```
/// use bochner_copula::heads::dependence_kl;
/// use bochner_copula::ndarray::{Axis, array};
/// use bochner_copula::normalise;
///
/// let lh = normalise(array![[[1.0, 0.0], [0.75, 1.0]]].view())?;
/// let kl = dependence_kl(lh.insert_axis(Axis(0)).view())?;
/// assert!((kl[0] + 0.5 * (1.0_f64 - 0.6 * 0.6).ln()).abs() < 1e-12);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn dependence_kl<T: Real>(lh: ArrayView4<T>) -> Result<Array1<T>, Error> {
    let each = half_neg_log_det(flat(&lh).view())?;
    let width = lh.dim().1;
    Ok(each
        .exact_chunks(width)
        .into_iter()
        .map(|x| x.sum())
        .collect())
}

/// The vector-Jacobian product of [`dependence_kl`].
///
/// # Shapes
/// `lh: [1 or B, d, M, M]`, `cotangent: [1 or B]` (for a shared factor the sum over the batch) to
/// the shape of `lh`.
///
/// # Errors
/// The errors of [`normalise`](crate::normalise).
pub fn dependence_kl_vjp<T: Real>(
    lh: ArrayView4<T>,
    cotangent: ArrayView1<T>,
) -> Result<Array4<T>, Error> {
    let (examples, width, ..) = lh.dim();
    argument::shape("cotangent", &[examples], cotangent.shape())?;
    let each = Array1::from_shape_fn(examples * width, |i| cotangent[i / width]);
    let gradient = half_neg_log_det_vjp(flat(&lh).view(), each.view())?;
    Ok(gradient
        .into_shape_with_order(lh.dim())
        .expect("the same number of elements"))
}
