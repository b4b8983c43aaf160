//! The three estimators with parameters of their own, so that they can be fitted.

use crate::{AffineLayer, Error, GaussianPoints, ImplicitDensity};
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView2};
use std::fmt::Debug;

/// A density of spectral points that is given by a list of numbers.
///
/// The noise behind the points, where there is any, is part of the estimator and stays as it is,
/// so that the points are a smooth function of the parameters.
pub trait Estimator: Debug {
    /// The parameters.
    fn parameters(&self) -> Vec<f64>;

    /// Replaces all parameters, in the order of [`parameters`](Self::parameters).
    ///
    /// # Errors
    /// [`Error::Argument`] if there are too few or too many.
    fn set_parameters(&mut self, values: &[f64]) -> Result<(), Error>;

    /// The spectral points, `[R, d]`.
    ///
    /// # Errors
    /// The errors of the density that the estimator holds.
    fn points(&self) -> Result<Array2<f64>, Error>;

    /// The vector-Jacobian product of [`points`](Self::points) along the parameters.
    ///
    /// # Errors
    /// The errors of [`points`](Self::points), and [`Error::Argument`] unless `cotangent` is `[R, d]`.
    fn points_vjp(&self, cotangent: ArrayView2<f64>) -> Result<Vec<f64>, Error>;
}

/// Points that are parameters themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectEstimator {
    /// The points, `[R, d]`.
    pub w: Array2<f64>,
}

/// [`GaussianPoints`] with parameter and noise.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianEstimator {
    /// The parameter, `[d]` or `[1]`.
    pub log_std: Array1<f64>,
    /// Standard normal draws, `[R, d]`.
    pub eps: Array2<f64>,
}

/// [`ImplicitDensity`] with parameters and noise.
#[derive(Clone, Debug, PartialEq)]
pub struct ImplicitEstimator {
    /// The weights of the three layers, `[d, d]`.
    pub weights: [Array2<f64>; 3],
    /// The biases of the three layers, `[d]`.
    pub biases: [Array1<f64>; 3],
    /// Slope of LeakyReLU on the negative side.
    pub slope: f64,
    /// The noise, `[R, d]`.
    pub z: Array2<f64>,
}

impl Estimator for DirectEstimator {
    fn parameters(&self) -> Vec<f64> {
        self.w.iter().copied().collect()
    }

    fn set_parameters(&mut self, values: &[f64]) -> Result<(), Error> {
        replace(values, self.w.iter_mut().collect())
    }

    fn points(&self) -> Result<Array2<f64>, Error> {
        Ok(self.w.clone())
    }

    fn points_vjp(&self, cotangent: ArrayView2<f64>) -> Result<Vec<f64>, Error> {
        argument::shape("cotangent", self.w.shape(), cotangent.shape())?;
        Ok(cotangent.iter().copied().collect())
    }
}

impl GaussianEstimator {
    fn density(&self) -> GaussianPoints<'_, f64> {
        let log_std = self.log_std.view();
        GaussianPoints { log_std }
    }
}

impl Estimator for GaussianEstimator {
    fn parameters(&self) -> Vec<f64> {
        self.log_std.to_vec()
    }

    fn set_parameters(&mut self, values: &[f64]) -> Result<(), Error> {
        replace(values, self.log_std.iter_mut().collect())
    }

    fn points(&self) -> Result<Array2<f64>, Error> {
        self.density().points(self.eps.view())
    }

    fn points_vjp(&self, cotangent: ArrayView2<f64>) -> Result<Vec<f64>, Error> {
        let along = self.density().points_vjp(self.eps.view(), cotangent)?;
        Ok(along.log_std.to_vec())
    }
}

impl ImplicitEstimator {
    fn density(&self) -> ImplicitDensity<'_, f64> {
        ImplicitDensity {
            layers: [0, 1, 2].map(|n| AffineLayer {
                weight: self.weights[n].view(),
                bias: self.biases[n].view(),
            }),
            slope: self.slope,
        }
    }
}

impl Estimator for ImplicitEstimator {
    fn parameters(&self) -> Vec<f64> {
        let weights = self.weights.iter().flatten();
        weights
            .chain(self.biases.iter().flatten())
            .copied()
            .collect()
    }

    fn set_parameters(&mut self, values: &[f64]) -> Result<(), Error> {
        let weights = self.weights.iter_mut().flatten();
        let all = weights.chain(self.biases.iter_mut().flatten());
        replace(values, all.collect())
    }

    fn points(&self) -> Result<Array2<f64>, Error> {
        self.density().points(self.z.view())
    }

    fn points_vjp(&self, cotangent: ArrayView2<f64>) -> Result<Vec<f64>, Error> {
        let along = self.density().points_vjp(self.z.view(), cotangent)?;
        let weights = along.layers.iter().flat_map(|layer| &layer.weight);
        let biases = along.layers.iter().flat_map(|layer| &layer.bias);
        Ok(weights.chain(biases).copied().collect())
    }
}

fn replace(values: &[f64], parameters: Vec<&mut f64>) -> Result<(), Error> {
    argument::shape("values", &[parameters.len()], &[values.len()])?;
    let pairs = parameters.into_iter().zip(values);
    pairs.for_each(|(parameter, &value)| *parameter = value);
    Ok(())
}
