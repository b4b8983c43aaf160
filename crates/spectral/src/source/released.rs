//! The authors' released code, where it differs from the paper's equations.
//!
//! It is kept so that a gap between our numbers and the published ones can be attributed. The posterior
//! contracts the factor with the noise without mixing the heads, so the heads are independent; the
//! factor is not normalised; the noise is clamped; half of the draws lie around `-mu`; and the copula
//! entropy that is added is $-\sum u \log u$ over the draws' uniform scores.

use bochner_numerics::{Real, normal};
use ndarray::{Array3, Array4, ArrayView3, ArrayView4, Zip};

/// Correlated noise is clamped to plus or minus this.
const CLAMP: f64 = 2.0;
/// Keeps the logarithm of a uniform score finite.
const SCORE_FLOOR: f64 = 1e-5;

/// A draw of the released posterior.
pub(super) struct ReleasedDraw<T> {
    /// The latent draws, `[B, M, R, d]`.
    pub(super) z: Array4<T>,
    /// $-\sum u \log(u + 10^{-5})$ of each example.
    pub(super) entropy: Vec<f64>,
}

/// Gradients of the released posterior.
pub(super) struct ReleasedGradients<T> {
    pub(super) mu: Array3<T>,
    pub(super) log_sigma: Array3<T>,
    pub(super) factor: Array4<T>,
    pub(super) eps: Array4<T>,
}

/// The part of the noise's scale that each row of the factor contributes: its sum.
fn row_sum<T: Real>(factor: ArrayView4<T>, b: usize, m: usize, l: usize) -> f64 {
    let set = b.min(factor.dim().0 - 1);
    (0..factor.dim().3)
        .map(|k| factor[[set, l, m, k]].as_f64())
        .sum()
}

/// +1 in the first half of the draws, -1 in the second.
fn side(r: usize, points: usize) -> f64 {
    if r < points / 2 { 1.0 } else { -1.0 }
}

/// `z = side mu + sigma clamp(rowsum(L) eps)`.
pub(super) fn draw<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    factor: ArrayView4<T>,
    eps: ArrayView4<T>,
) -> ReleasedDraw<T> {
    let points = eps.dim().2;
    let mut entropy = vec![0.0; eps.dim().0];
    let mut z = Array4::zeros(eps.raw_dim());
    for ((b, m, r, l), e) in eps.indexed_iter() {
        let x = (row_sum(factor, b, m, l) * e.as_f64()).clamp(-CLAMP, CLAMP);
        let u = normal::cdf(x);
        entropy[b] -= u * (u + SCORE_FLOOR).ln();
        let sigma = log_sigma[[b, m, l]].as_f64().exp();
        z[[b, m, r, l]] = T::of(side(r, points) * mu[[b, m, l]].as_f64() + sigma * x);
    }
    ReleasedDraw { z, entropy }
}

/// The vector-Jacobian product of [`draw`], for cotangents of z and of each example's entropy.
pub(super) fn draw_vjp<T: Real>(
    log_sigma: ArrayView3<T>,
    factor: ArrayView4<T>,
    eps: ArrayView4<T>,
    dz: ArrayView4<T>,
    d_entropy: &[f64],
) -> ReleasedGradients<T> {
    let points = eps.dim().2;
    let mut gradients = ReleasedGradients {
        mu: Array3::zeros(log_sigma.raw_dim()),
        log_sigma: Array3::zeros(log_sigma.raw_dim()),
        factor: Array4::zeros(factor.raw_dim()),
        eps: Array4::zeros(eps.raw_dim()),
    };
    let mut d_scale = Array3::<f64>::zeros(log_sigma.raw_dim());
    for ((b, m, r, l), e) in eps.indexed_iter() {
        let (scale, e) = (row_sum(factor, b, m, l), e.as_f64());
        let raw = scale * e;
        let x = raw.clamp(-CLAMP, CLAMP);
        let (g, sigma) = (
            dz[[b, m, r, l]].as_f64(),
            log_sigma[[b, m, l]].as_f64().exp(),
        );
        gradients.mu[[b, m, l]] += T::of(side(r, points) * g);
        gradients.log_sigma[[b, m, l]] += T::of(g * sigma * x);
        if raw.abs() <= CLAMP {
            let u = normal::cdf(x);
            let slope = -((u + SCORE_FLOOR).ln() + u / (u + SCORE_FLOOR)) * normal::density(x);
            let dx = g * sigma + d_entropy[b] * slope;
            d_scale[[b, m, l]] += dx * e;
            gradients.eps[[b, m, r, l]] = T::of(dx * scale);
        }
    }
    let sets = factor.dim().0;
    for ((b, m, l), &d) in d_scale.indexed_iter() {
        let row = ndarray::s![b.min(sets - 1), l, m, ..=m];
        Zip::from(gradients.factor.slice_mut(row)).for_each(|g| *g += T::of(d));
    }
    gradients
}
