//! The networks behind the points: where their parameters lie.

use crate::mechanism::{Named, ParameterSpec};
use bochner_numerics::Real;
use bochner_spectral::{ImplicitDensity, InferenceNetwork};
use ndarray::{Array, Array1, Array2, ArrayD, ArrayView1, ArrayView2, Dimension};

/// Prefix of the inference network's parameters.
pub(super) const INFERENCE: &str = "inference";
/// Prefixes of the two odd networks' parameters.
pub(super) const DENSITIES: [&str; 2] = ["density1", "density2"];

/// Three linear layers from `inputs` to `width`, named `w1, b1, w2, b2, w3, b3`.
pub(super) fn specs(prefix: &str, inputs: usize, width: usize) -> Vec<ParameterSpec> {
    let layer = |n: usize, inputs: usize| {
        [
            ParameterSpec::new(format!("{prefix}.w{n}"), &[width, inputs]),
            ParameterSpec::new(format!("{prefix}.b{n}"), &[width]),
        ]
    };
    [layer(1, inputs), layer(2, width), layer(3, width)]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn inference<'a, T: Real>(
    named: &Named<'a, T>,
    slope: f64,
    prior_std: f64,
) -> InferenceNetwork<'a, T> {
    let [(w1, b1), (w2, b2), (w3, b3)] = layers(named, INFERENCE);
    let (slope, prior_std) = (T::of(slope), T::of(prior_std));
    InferenceNetwork {
        w1,
        b1,
        w2,
        b2,
        w3,
        b3,
        slope,
        prior_std,
    }
}

pub(super) fn density<'a, T: Real>(
    named: &Named<'a, T>,
    prefix: &str,
    slope: f64,
) -> ImplicitDensity<'a, T> {
    let [(w1, b1), (w2, b2), (w3, b3)] = layers(named, prefix);
    ImplicitDensity {
        w1,
        b1,
        w2,
        b2,
        w3,
        b3,
        slope: T::of(slope),
    }
}

fn layers<'a, T: Real>(
    named: &Named<'a, T>,
    prefix: &str,
) -> [(ArrayView2<'a, T>, ArrayView1<'a, T>); 3] {
    [1, 2, 3].map(|n| {
        (
            named.get(&format!("{prefix}.w{n}")),
            named.get(&format!("{prefix}.b{n}")),
        )
    })
}

/// Gradients by name, in any order.
pub(super) struct NamedArrays<T>(Vec<(String, ArrayD<T>)>);

impl<T: Real> NamedArrays<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push<D: Dimension>(&mut self, name: &str, array: Array<T, D>) {
        self.0.push((name.to_string(), array.into_dyn()));
    }

    pub(super) fn push_layers(
        &mut self,
        prefix: &str,
        weights: [Array2<T>; 3],
        biases: [Array1<T>; 3],
    ) {
        for (n, (w, b)) in weights.into_iter().zip(biases).enumerate() {
            self.push(&format!("{prefix}.w{}", n + 1), w);
            self.push(&format!("{prefix}.b{}", n + 1), b);
        }
    }
}

impl<T> From<NamedArrays<T>> for Vec<(String, ArrayD<T>)> {
    fn from(arrays: NamedArrays<T>) -> Self {
        arrays.0
    }
}
