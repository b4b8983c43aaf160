//! Bounds on the distance of a posterior from its prior.

use crate::MeanField;
use bochner_numerics::Real;
use ndarray::{Array3, Zip};

/// Bound of $|\mu| / s_0$.
const MEAN: f64 = 1e3;
/// Bounds of $\log(\sigma / s_0)$.
const LOG_RATIO: [f64; 2] = [-60.0, 7.0];

/// Bounds that no sensible posterior meets: at the upper ones each coordinate diverges from the
/// prior by half a million nats. Without them huge inputs overflow the draws, and from there on
/// everything is NaN.
pub(super) struct Bounds<T> {
    mu: [T; 2],
    log_sigma: [T; 2],
}

impl<T: Real> Bounds<T> {
    pub(super) fn around(prior_std: f64) -> Self {
        Self {
            mu: [-MEAN, MEAN].map(|bound| T::of(bound * prior_std)),
            log_sigma: LOG_RATIO.map(|bound| T::of(bound + prior_std.ln())),
        }
    }

    pub(super) fn hold(&self, posterior: &mut MeanField<T>) {
        // Not max and min, which would sweep NaN under the bounds.
        let clamp = |[low, high]: [T; 2]| {
            move |x: T| match x {
                x if x < low => low,
                x if x > high => high,
                x => x,
            }
        };
        posterior.mu.mapv_inplace(clamp(self.mu));
        posterior.log_sigma.mapv_inplace(clamp(self.log_sigma));
    }

    /// The vector-Jacobian product of [`Bounds::hold`], given what it returned: nothing flows
    /// through a bound.
    pub(super) fn release(&self, held: &MeanField<T>, cotangent: &mut MeanField<T>) {
        let cut = |gradient: &mut Array3<T>, held: &Array3<T>, [low, high]: [T; 2]| {
            Zip::from(gradient).and(held).for_each(|g, &x| {
                if x <= low || x >= high {
                    *g = T::zero();
                }
            });
        };
        cut(&mut cotangent.mu, &held.mu, self.mu);
        cut(&mut cotangent.log_sigma, &held.log_sigma, self.log_sigma);
    }
}
