//! How the phases of the dimensions make one oscillation.

use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// The oscillation of a component of a [`SpectralMixture`](super::SpectralMixture), $C$ as a
/// function of the phases $\vartheta_n = 2 \pi t_n \mu_n$.
///
/// On the line the two are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cosine {
    /// $C = \cos \sum_n \vartheta_n$, the Fourier transform of a mixture of Gaussians at
    /// $\pm 2 \pi \mu$: the form as corrected by its first author.
    #[default]
    Joint,
    /// $C = \prod_n \cos \vartheta_n$, as first printed: a mixture over all signs of the
    /// coordinates of $2 \pi \mu$, independently.
    Product,
}

impl Cosine {
    /// The oscillation at the given phases.
    pub(super) fn value<T: Real>(self, phases: &[T]) -> T {
        match self {
            Self::Joint => sum(phases).cos(),
            Self::Product => phases.iter().fold(T::one(), |c, p| c * p.cos()),
        }
    }

    /// Replaces every phase by the oscillation's derivative along it, and returns the value.
    pub(super) fn derive<T: Real>(self, phases: &mut [T]) -> T {
        match self {
            Self::Joint => {
                let (sin, cos) = sum(phases).sin_cos();
                phases.fill(-sin);
                cos
            }
            Self::Product => derive_product(phases),
        }
    }
}

/// By products of all before and all after: a cosine that is zero is never divided by.
fn derive_product<T: Real>(phases: &mut [T]) -> T {
    let angles = phases.to_vec();
    let mut before = T::one();
    for (slope, angle) in phases.iter_mut().zip(&angles) {
        *slope = -angle.sin() * before;
        before *= angle.cos();
    }
    let mut after = T::one();
    for (slope, angle) in phases.iter_mut().zip(&angles).rev() {
        *slope *= after;
        after *= angle.cos();
    }
    before
}

fn sum<T: Real>(phases: &[T]) -> T {
    phases.iter().copied().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{finite_difference, relative_error};

    #[test]
    fn derivatives_agree_with_finite_differences() {
        let quarter = std::f64::consts::FRAC_PI_2;
        for cosine in [Cosine::Joint, Cosine::Product] {
            for phases in [[0.3, -1.2, 2.0], [0.3, quarter, 2.0]] {
                let want = finite_difference(&phases, |p| cosine.value(p));
                let mut got = phases;
                assert!((cosine.derive(&mut got) - cosine.value(&phases)).abs() < 1e-15);
                assert!(relative_error(&got, &want) < 1e-8);
            }
        }
    }

    #[test]
    fn they_agree_on_the_line_alone() {
        let [joint, product] = [Cosine::Joint, Cosine::Product];
        assert_eq!(joint.value(&[0.7]), product.value(&[0.7]));
        assert!((joint.value(&[0.7, 0.7_f64]) - product.value(&[0.7, 0.7])).abs() > 0.3);
    }
}
