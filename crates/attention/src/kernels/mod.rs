//! Pairwise kernels and feature maps of the mechanisms, one file each, for the engine.

mod bipolar;
mod linear;
mod random_features;
mod squared;

pub(crate) use bipolar::{checked_threshold, spike};
pub use bochner_kernels::{Coupling, Norms, RandomFeatureMap};
pub use random_features::Trained;
pub(crate) use squared::Squared;
pub use squared::{Points, PointsGradients, points_gradients};

use crate::{Expsin, RbfOnly};
use bochner_engine::{Mask, Scored, Settings};
use bochner_numerics::Real;
use ndarray::ArrayView3;
use std::sync::Arc;

/// Returns attention by $a_{ij} = \exp(-|q_i - k_j|^2 / (2\sqrt d))$, softmax attention's own kernel.
pub fn rbf<T: Real>(mask: &Mask) -> Settings<T> {
    Settings::pairs(Scored::new(RbfOnly {}), mask)
}

/// Returns attention by $a_{ij} = \exp(-2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d)$ with the period P, from 1e-6 to 1e6:
/// alike at every whole number of periods.
#[doc(alias = "ExpSineSquared")]
pub fn expsin<T: Real>(period: f64, mask: &Mask) -> Settings<T> {
    Settings::pairs(Scored::new(Expsin { period }), mask)
}

/// Returns attention by $a_{ij} = (q_i \cdot k_j / \sqrt d)^2$, squared so that it is not negative.
pub fn linear<T: Real>(mask: &Mask) -> Settings<T> {
    Settings::pairs(linear::Linear, mask)
}

/// Returns bipolar attention: weights $2^{x_{ij} - \gamma_i}$ with the whole scores $x_{ij} = t(q_i) \cdot t(k_j)$ of
/// ternary numbers, $t(x) = \operatorname{sign}(x) [|x| \ge \theta]$, and the smallest whole $\gamma_i$ with
/// which a row sums to at most 1, whatever the rounding of the sum.
///
/// Backwards t has the slope 1 / `surrogate_width` where $||x| - \theta|$ is less than half that width. With
/// a bias or a magnitude scores are not whole, and $\gamma$ follows their sum in `f64`, its rounding errors added.
pub fn bipolar<T: Real>(threshold: f64, surrogate_width: f64, mask: &Mask) -> Settings<T> {
    by_shiftmax(
        bipolar::Bipolar {
            threshold,
            window: Some(surrogate_width),
        },
        mask,
    )
}

/// Returns [`bipolar`] attention of queries and keys that are ternary already; their gradient is passed through.
#[cfg(feature = "dfdx")]
pub(crate) fn spikes<T: Real>(mask: &Mask) -> Settings<T> {
    by_shiftmax(
        bipolar::Bipolar {
            threshold: 0.5,
            window: None,
        },
        mask,
    )
}

fn by_shiftmax<T: Real>(kernel: bipolar::Bipolar, mask: &Mask) -> Settings<T> {
    let normaliser = Arc::new(bipolar::ShiftmaxNormaliser);
    Settings {
        normaliser,
        ..Settings::pairs(kernel, mask)
    }
}

/// Returns attention by $a_{ij} = f(q_i, k_j)^2 + e$ with a kernel given by its spectral points and a floor e from 0 to
/// 1, the largest that $f^2$ can be; 1e-5 by default elsewhere (equations 12 to 16). The points are copied.
pub fn squared<T: Real>(points: Points<T>, floor: f64, mask: &Mask) -> Settings<T> {
    let sets = points.sets().map(|w| w.to_owned()).collect();
    Settings::pairs(Squared::new(sets, floor), mask)
}

/// Returns attention by $a_{ij} = \phi(q_i / d^{1/4}) \cdot \phi(k_j / d^{1/4})$ with the random features of a map at the
/// frequencies `w`, `[M, m, d]`: in the mean over the frequencies those of softmax attention, apart from the ReLU's.
/// Frequencies are copied; they have a gradient if they are [`Trained`].
pub fn random_features<T: Real>(
    w: ArrayView3<T>,
    map: RandomFeatureMap,
    trained: Trained,
    mask: &Mask,
) -> Settings<T> {
    Settings::features(random_features::RandomFeatures::new(w, map, trained), mask)
}
