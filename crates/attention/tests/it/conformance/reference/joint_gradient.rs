//! The way back through a draw.

use super::joint::{BETA, Joint, PRIOR_STD, Parameters};
use super::pairs::PairGradients;
use crate::conformance::common::Drawn;
use bochner_attention::Inputs;
use ndarray::{Array2, Array3, Array4, ArrayView1, s};

impl Joint {
    /// From gradients of the points and the penalty to those of the parameters; adds to those of
    /// the keys what the features take from them.
    pub(super) fn pull_back(
        &self,
        inputs: &Inputs<f64>,
        flat: &[f64],
        drawn: &Drawn<f64>,
        eps: &Array4<f64>,
        penalty: ArrayView1<f64>,
        g: &mut PairGradients,
    ) -> Vec<f64> {
        let parameters = Parameters::of(inputs.size(), flat);
        let mut d_points = parameters
            .points
            .each_ref()
            .map(|w| Array2::zeros(w.raw_dim()));
        let mut d_mu = Array3::<f64>::zeros(drawn.mu.raw_dim());
        let mut d_log_sigma = d_mu.clone();
        let mut d_factor = Array3::zeros(parameters.factor.raw_dim());
        let heads = drawn.mu.dim().1;
        for (b, m, r, l) in ndarray::indices(drawn.z.raw_dim()) {
            let mut dz = 0.0;
            for ((dw, layer), d_layer) in g.points.iter().zip(&parameters.points).zip(&mut d_points)
            {
                let dw = dw.slice(s![b, m, r, ..]);
                dz += dw.dot(&layer.column(l));
                let mut d_layer = d_layer.column_mut(l);
                d_layer.scaled_add(drawn.z[[b, m, r, l]], &dw);
            }
            d_mu[[b, m, l]] += dz;
            d_log_sigma[[b, m, l]] += dz * (drawn.z[[b, m, r, l]] - drawn.mu[[b, m, l]]);
            let sigma = drawn.log_sigma[[b, m, l]].exp();
            for k in 0..heads {
                d_factor[[l, m, k]] += dz * sigma * eps[[b, k, r, l]];
            }
        }
        let factor = self.factor(parameters.factor.view());
        for ((b, m, l), &mu) in drawn.mu.indexed_iter() {
            let weight = BETA * penalty[b];
            let variance = (2.0 * drawn.log_sigma[[b, m, l]]).exp();
            d_mu[[b, m, l]] += weight * mu / PRIOR_STD.powi(2);
            d_log_sigma[[b, m, l]] += weight * (variance / PRIOR_STD.powi(2) - 1.0);
            d_factor[[l, m, m]] -= weight / factor[[l, m, m]];
        }
        let layers = self.pull_back_features(inputs, &parameters, [&d_mu, &d_log_sigma], g);
        let d_raw = normalise_vjp(&factor, &d_factor);
        layers
            .iter()
            .chain(&d_points)
            .flatten()
            .chain(&d_raw)
            .copied()
            .collect()
    }

    /// The gradients of the two layers above the features.
    fn pull_back_features(
        &self,
        inputs: &Inputs<f64>,
        parameters: &Parameters,
        cotangents: [&Array3<f64>; 2],
        g: &mut PairGradients,
    ) -> [Array2<f64>; 2] {
        let features = self.features(inputs);
        let layers = [&parameters.mean, &parameters.log_sigma];
        let mut gradients = layers.map(|layer| Array2::zeros(layer.raw_dim()));
        let (batch, heads, width) = features.dim();
        for (b, m, l) in ndarray::indices((batch, heads, width)) {
            let seen = self.seen(inputs, b);
            for n in 0..2 {
                let d = cotangents[n][[b, m, l]];
                let mut row = gradients[n].row_mut(l);
                row.scaled_add(d, &features.slice(s![b, m, ..]));
                for &j in &seen {
                    let mut key = g.k.slice_mut(s![b, m, j, ..]);
                    key.scaled_add(d / seen.len() as f64, &layers[n].row(l));
                }
            }
        }
        gradients
    }
}

/// Through the division of every row by its norm, whose diagonal was one before it.
fn normalise_vjp(factor: &Array3<f64>, cotangent: &Array3<f64>) -> Array3<f64> {
    let along = |l: usize, m: usize| {
        factor
            .slice(s![l, m, ..])
            .dot(&cotangent.slice(s![l, m, ..]))
    };
    Array3::from_shape_fn(factor.raw_dim(), |(l, m, k)| {
        let inverse_norm = factor[[l, m, m]];
        if k < m {
            (cotangent[[l, m, k]] - along(l, m) * factor[[l, m, k]]) * inverse_norm
        } else {
            0.0
        }
    })
}
