//! Spectral points drawn jointly over the heads, from networks of one layer.

use super::pairs::Pairs;
use super::{Fault, R};
use crate::conformance::common::{Drawn, Latent};
use bochner_attention::{
    Cotangents, Error, Forward, Gradients, Inputs, Inspection, Mechanism, ParameterSpec, Pass, Size,
};
use bochner_numerics::standard_normal;
use ndarray::{
    Array, Array1, Array2, Array3, Array4, ArrayView3, Axis, Dimension, ShapeBuilder, s,
};
use rand::RngCore;

pub(super) const PRIOR_STD: f64 = 0.5;
pub(super) const BETA: f64 = 0.3;

/// `mu = A h`, `log sigma = B h + log s0` with h the mean of the kept keys, `z = mu + sigma Lh eps`,
/// `w1 = C z`, `w2 = D z`.
#[derive(Debug)]
pub(super) struct Joint {
    pub(super) fault: Option<Fault>,
}

pub(super) struct Parameters {
    pub(super) mean: Array2<f64>,
    pub(super) log_sigma: Array2<f64>,
    pub(super) points: [Array2<f64>; 2],
    pub(super) factor: Array3<f64>,
}

impl Parameters {
    pub(super) fn of(Size { heads, width }: Size, flat: &[f64]) -> Self {
        let mut rest = flat;
        let mut square = || take(&mut rest, (width, width));
        let (mean, log_sigma, points) = (square(), square(), [square(), square()]);
        let factor = take(&mut rest, (width, heads, heads));
        Self {
            mean,
            log_sigma,
            points,
            factor,
        }
    }
}

/// Cuts an array off the front.
fn take<D: Dimension>(flat: &mut &[f64], shape: impl ShapeBuilder<Dim = D>) -> Array<f64, D> {
    let shape = shape.into_shape_with_order();
    let (front, rest) = flat.split_at(shape.raw_dim().size());
    *flat = rest;
    Array::from_shape_vec(shape, front.to_vec()).unwrap()
}

impl Joint {
    /// The keys that some query sees, in an example.
    pub(super) fn seen(&self, inputs: &Inputs<f64>, b: usize) -> Vec<usize> {
        let (queries, keys) = (inputs.q.dim().2, inputs.k.dim().2);
        let all = matches!(self.fault, Some(Fault::PaddingInNetwork));
        let is_seen =
            |&j: &usize| all || (0..queries).any(|i| inputs.mask.keeps(b, i, j, queries, keys));
        (0..keys).filter(is_seen).collect()
    }

    /// Mean of the keys that some query sees, `[B, M, d]`.
    pub(super) fn features(&self, inputs: &Inputs<f64>) -> Array3<f64> {
        let (batch, heads, _, width) = inputs.k.dim();
        let mut features = Array3::zeros((batch, heads, width));
        for (b, mut mean) in features.outer_iter_mut().enumerate() {
            let seen = self.seen(inputs, b);
            for &j in &seen {
                mean.scaled_add(1.0 / seen.len() as f64, &inputs.k.slice(s![b, .., j, ..]));
            }
        }
        features
    }

    /// `[d, M, M]`.
    pub(super) fn factor(&self, raw: ArrayView3<f64>) -> Array3<f64> {
        let mut factor = raw.to_owned();
        for ((_, m, k), x) in factor.indexed_iter_mut() {
            if m <= k {
                *x = if m == k { 1.0 } else { 0.0 };
            }
        }
        if matches!(self.fault, Some(Fault::FactorNotNormalised)) {
            return factor;
        }
        for mut row in factor.rows_mut() {
            row /= row.dot(&row).sqrt();
        }
        factor
    }

    /// Noise that depends on each other over the heads.
    fn mixed(&self, factor: &Array3<f64>, eps: &Array4<f64>) -> Array4<f64> {
        let heads = eps.dim().1;
        Array4::from_shape_fn(eps.raw_dim(), |(b, m, r, l)| {
            let from = |k| match self.fault {
                Some(Fault::HeadsNotMixed) => m,
                _ => k,
            };
            let parts = (0..heads).map(|k| factor[[l, m, k]] * eps[[b, from(k), r, l]]);
            parts.sum()
        })
    }

    fn penalty(
        &self,
        mu: &Array3<f64>,
        log_sigma: &Array3<f64>,
        factor: &Array3<f64>,
    ) -> Array1<f64> {
        let mut kl = Array1::zeros(mu.dim().0);
        for ((b, m, l), &mu) in mu.indexed_iter() {
            let log_ratio = log_sigma[[b, m, l]] - PRIOR_STD.ln();
            let square = (2.0 * log_ratio).exp() + (mu / PRIOR_STD).powi(2);
            let dependence = match self.fault {
                Some(Fault::DependenceNegated) => factor[[l, m, m]].ln(),
                _ => -factor[[l, m, m]].ln(),
            };
            kl[b] += -log_ratio + 0.5 * square - 0.5 + dependence;
        }
        match self.fault {
            Some(Fault::DivergenceNegated) => kl * -BETA,
            _ => kl * BETA,
        }
    }

    fn noise(&self, inputs: &Inputs<f64>, pass: &Pass) -> Array4<f64> {
        let (batch, heads, _, width) = inputs.q.dim();
        let mut stream = pass.seed().stream("noise");
        Array4::from_shape_simple_fn((batch, heads, R, width), || standard_normal(&mut stream))
    }

    fn draw(
        &self,
        inputs: &Inputs<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<(Drawn<f64>, [Array4<f64>; 2]), Error> {
        if inputs.mask.is_causal() && !matches!(self.fault, Some(Fault::FutureInNetwork)) {
            return Err(Error::CausalLeak);
        }
        let drawn = self.drawn(inputs, flat, &self.noise(inputs, pass));
        let Parameters { points, .. } = Parameters::of(inputs.size(), flat);
        let points = points.map(|layer| along_last(&drawn.z, &layer));
        Ok((drawn, points))
    }
}

/// Applies a linear layer to the last axis.
fn along_last<D: Dimension>(x: &Array<f64, D>, layer: &Array2<f64>) -> Array<f64, D> {
    let mut out = x.clone();
    for (mut out, x) in out.rows_mut().into_iter().zip(x.rows()) {
        out.assign(&layer.dot(&x));
    }
    out
}

impl Latent<f64> for Joint {
    fn drawn(&self, inputs: &Inputs<f64>, flat: &[f64], eps: &Array4<f64>) -> Drawn<f64> {
        let parameters = Parameters::of(inputs.size(), flat);
        let h = self.features(inputs);
        let mu = along_last(&h, &parameters.mean);
        let log_sigma = along_last(&h, &parameters.log_sigma) + PRIOR_STD.ln();
        let factor = self.factor(parameters.factor.view());
        let mut z = self.mixed(&factor, eps);
        for ((b, m, _, l), z) in z.indexed_iter_mut() {
            let deviation = match self.fault {
                Some(Fault::DeviationAsVariance) => (0.5 * log_sigma[[b, m, l]]).exp(),
                _ => log_sigma[[b, m, l]].exp(),
            };
            *z = mu[[b, m, l]] + deviation * *z;
        }
        Drawn {
            penalty: self.penalty(&mu, &log_sigma, &factor),
            mu,
            log_sigma,
            factor: Some(factor.insert_axis(Axis(0))),
            z,
            prior_std: PRIOR_STD,
            beta: BETA,
        }
    }
}

impl Mechanism<f64> for Joint {
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    fn parameters(&self, Size { heads, width }: Size) -> Vec<ParameterSpec> {
        let squares = ["mean", "log sigma", "points 1", "points 2"];
        let mut specs: Vec<_> = squares
            .map(|name| ParameterSpec::new(name, &[width, width]))
            .into();
        specs.push(ParameterSpec::new("factor", &[width, heads, heads]));
        specs
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<f64>, Error> {
        let specs = self.parameters(size);
        let count = specs.iter().map(ParameterSpec::count).sum();
        Ok((0..count).map(|_| standard_normal(rng)).collect())
    }

    fn forward(
        &self,
        inputs: &Inputs<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Forward<f64>, Error> {
        let (drawn, points) = self.draw(inputs, parameters, pass)?;
        let output = Pairs::new(inputs, &points, pass, self.fault).output();
        Ok(Forward::new(output, drawn.penalty, ()))
    }

    fn backward(
        &self,
        inputs: &Inputs<f64>,
        flat: &[f64],
        pass: &Pass,
        _: &Forward<f64>,
        cotangent: Cotangents<f64>,
    ) -> Result<Gradients<f64>, Error> {
        let (drawn, points) = self.draw(inputs, flat, pass)?;
        let mut g = Pairs::new(inputs, &points, pass, self.fault).pull_back(cotangent.output);
        let eps = self.noise(inputs, pass);
        let parameters = self.pull_back(inputs, flat, &drawn, &eps, cotangent.penalty, &mut g);
        Ok(Gradients {
            q: g.q,
            k: g.k,
            v: g.v,
            parameters,
        })
    }

    fn inspect(
        &self,
        inputs: &Inputs<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Inspection<f64>, Error> {
        let (drawn, points) = self.draw(inputs, parameters, pass)?;
        let weights = Pairs::new(inputs, &points, pass, self.fault).weights();
        let [w1, w2] = points;
        let correlation = drawn.factor.map(|factor| {
            let products = factor.index_axis_move(Axis(0), 0);
            let products = products.outer_iter().map(|lh| lh.dot(&lh.t()));
            let products: Vec<Array2<f64>> = products.collect();
            let products: Vec<_> = products.iter().map(|corr| corr.view()).collect();
            ndarray::stack(Axis(0), &products).unwrap()
        });
        Ok(Inspection {
            weights,
            points: Some((w1, w2)),
            correlation,
        })
    }
}
