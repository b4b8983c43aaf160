//! The part of the mechanism that tests use.

use super::{Performer, Redraw};
use crate::conformance::*;
use bochner_kernels::{Coupling, Norms, RandomFeatureMap};
use ndarray::{ArrayView1, ArrayView2, Axis};

impl Conformance for Performer {
    fn examples() -> Vec<Self> {
        let of = |features, points, coupling, norms| Self {
            features,
            points,
            coupling,
            norms,
            ..Self::default()
        };
        let redrawn = Self {
            redraw: Redraw::Every { steps: 2 },
            ..of(
                RandomFeatureMap::Hyperbolic,
                4,
                Coupling::Simplex,
                Norms::Chi,
            )
        };
        // Sums of trigonometric features may cancel, which no bound on rounding takes; they have tests of their
        // own.
        vec![
            of(
                RandomFeatureMap::Positive,
                5,
                Coupling::Orthogonal,
                Norms::Chi,
            ),
            redrawn,
            of(
                RandomFeatureMap::Hyperbolic,
                4,
                Coupling::Independent,
                Norms::Root,
            ),
            of(
                RandomFeatureMap::Relu { epsilon: 0.1 },
                6,
                Coupling::Orthogonal,
                Norms::Root,
            ),
            // More than wide instructions take at a time.
            of(
                RandomFeatureMap::Positive,
                19,
                Coupling::Independent,
                Norms::Chi,
            ),
        ]
    }

    fn refused() -> Vec<(&'static str, Self)> {
        let points = |points| Self {
            points,
            ..Self::default()
        };
        let redraw = Self {
            redraw: Redraw::Every { steps: 0 },
            ..Self::default()
        };
        let features = Self {
            features: RandomFeatureMap::Relu { epsilon: 0.0 },
            ..Self::default()
        };
        vec![
            ("points", points(0)),
            ("points", points(1_000_000_000_000)),
            ("redraw", redraw),
            ("epsilon", features),
        ]
    }

    fn extreme(&self, rng: &mut dyn RngCore) -> Self {
        let epsilon = power_of_ten(-37.0..2.0, rng);
        let features = match self.features {
            RandomFeatureMap::Relu { .. } => RandomFeatureMap::Relu { epsilon },
            other => other,
        };
        Self {
            features,
            ..self.clone()
        }
    }

    fn reference(&self, inputs: &Streams<f64>, _: &[f64], pass: &Pass) -> Result<Reference, Error> {
        let w = self.frequencies(0, inputs.size())?;
        Reference::by_weight(inputs, pass, |pair| {
            let (w, root) = (w.index_axis(Axis(0), pair.m), pair.root().sqrt());
            let phi = |x: ArrayView1<f64>| self.phi((&x / root).view(), w);
            phi(pair.q)
                .iter()
                .zip(phi(pair.k))
                .map(|(q, k)| q * k)
                .sum()
        })
    }
}

impl Performer {
    /// The features of one row, straight from the formulas.
    fn phi(&self, x: ArrayView1<f64>, w: ArrayView2<f64>) -> Vec<f64> {
        let (u, half) = (w.dot(&x), x.dot(&x) / 2.0);
        let mut phi = Vec::new();
        match self.features {
            RandomFeatureMap::Positive => phi.extend(u.iter().map(|u| (u - half).exp())),
            RandomFeatureMap::Hyperbolic => {
                phi.extend(u.iter().map(|u| (u - half).exp()));
                phi.extend(u.iter().map(|u| (-u - half).exp()));
            }
            RandomFeatureMap::Trigonometric => {
                phi.extend(u.iter().map(|u| half.exp() * u.cos()));
                phi.extend(u.iter().map(|u| half.exp() * u.sin()));
            }
            RandomFeatureMap::Relu { epsilon } => {
                phi.extend(u.iter().map(|u| u.max(0.0) + epsilon));
            }
        }
        phi
    }
}
