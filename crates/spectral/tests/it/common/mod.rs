//! Networks with random parameters.

use bochner_numerics::{Real, Seed, standard_normal};
use bochner_spectral::{AffineLayer, ImplicitDensity, InferenceNetwork};
use ndarray::{Array, Array1, Array2, ShapeBuilder};

/// An array of standard normal draws.
pub(crate) fn random<T: Real, Sh: ShapeBuilder>(
    shape: Sh,
    seed: u64,
    purpose: &str,
) -> Array<T, Sh::Dim> {
    let mut stream = Seed::new(seed).stream(purpose);
    Array::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

/// Three layers `[d, inputs]`, `[d, d]`, `[d, d]` with biases that are not zero.
pub(crate) struct Parameters<T> {
    pub(crate) weights: [Array2<T>; 3],
    pub(crate) biases: [Array1<T>; 3],
}

impl<T: Real> Parameters<T> {
    pub(crate) fn layers(&self) -> [AffineLayer<'_, T>; 3] {
        [0, 1, 2].map(|n| AffineLayer {
            weight: self.weights[n].view(),
            bias: self.biases[n].view(),
        })
    }

    pub(crate) fn density(&self) -> ImplicitDensity<'_, T> {
        ImplicitDensity {
            layers: self.layers(),
            slope: T::of(0.2),
        }
    }

    pub(crate) fn network(&self) -> InferenceNetwork<'_, T> {
        let [hidden, mu, log_sigma] = self.layers();
        InferenceNetwork {
            hidden,
            mu,
            log_sigma,
            slope: T::of(0.2),
            prior_std: T::of(0.1),
        }
    }

    pub(crate) fn new(width: usize, inputs: usize, seed: u64) -> Self {
        Self {
            weights: [("weight1", inputs), ("weight2", width), ("weight3", width)]
                .map(|(name, inputs)| random((width, inputs), seed, name)),
            biases: ["b1", "b2", "b3"].map(|name| random(width, seed, name)),
        }
    }
}
