//! The distributions of statrs as marginals.

use super::Univariate;
use crate::distributions::marginal::{LogTails, Marginal};
use ::statrs::distribution as statrs;
use ::statrs::statistics::{Distribution, Max, Median, Min, Mode};
use bochner_numerics::ArgumentError;
use std::f64::consts::TAU;

/// Computes with a distribution of statrs by the functions of [`Univariate`], whose tails keep their digits.
macro_rules! marginals {
    ($($name:ident: $d:ident => $univariate:expr;)*) => {$(
        impl From<&statrs::$name> for Univariate {
            fn from($d: &statrs::$name) -> Self {
                $univariate
            }
        }

        impl From<statrs::$name> for Univariate {
            fn from(distribution: statrs::$name) -> Self {
                Self::from(&distribution)
            }
        }

        impl Marginal for statrs::$name {
            fn log_density(&self, z: f64) -> f64 {
                Univariate::from(self).log_density(z)
            }

            fn log_tails(&self, z: f64) -> LogTails {
                Univariate::from(self).log_tails(z)
            }

            fn support(&self) -> (f64, f64) {
                Univariate::from(self).support()
            }

            fn at_score(&self, x: f64) -> f64 {
                Univariate::from(self).at_score(x)
            }

            fn at_scores(&self, scores: &mut [f64]) {
                Univariate::from(self).at_scores(scores);
            }

            fn check(&self) -> Result<(), ArgumentError> {
                Univariate::from(self).check()
            }
        }
    )*};
}

marginals! {
    Beta: d => Self::Beta { shape_a: d.shape_a(), shape_b: d.shape_b() };
    Cauchy: d => Self::StudentsT { location: d.location(), scale: d.scale(), freedom: 1.0 };
    Chi: d => Self::Chi { freedom: d.freedom() as f64 };
    ChiSquared: d => Self::Gamma { shape: d.shape(), rate: d.rate() };
    Erlang: d => Self::Gamma { shape: d.shape() as f64, rate: d.rate() };
    Exp: d => Self::Exponential { rate: d.rate() };
    FisherSnedecor: d => Self::FisherSnedecor { freedom_1: d.freedom_1(), freedom_2: d.freedom_2() };
    Gamma: d => Self::Gamma { shape: d.shape(), rate: d.rate() };
    Gumbel: d => Self::Gumbel { location: d.location(), scale: d.scale() };
    InverseGamma: d => Self::InverseGamma { shape: d.shape(), rate: d.rate() };
    Laplace: d => Self::Laplace { location: d.location(), scale: d.scale() };
    LogNormal: d => log_normal(d);
    Normal: d => Self::Normal { mean: number(d.mean()), std_dev: number(d.std_dev()) };
    Pareto: d => Self::Pareto { scale: d.scale(), shape: d.shape() };
    StudentsT: d => Self::StudentsT { location: d.location(), scale: d.scale(), freedom: d.freedom() };
    Triangular: d => Self::Triangular { min: d.min(), max: d.max(), mode: number(d.mode()) };
    Uniform: d => Self::Uniform { min: d.min(), max: d.max() };
    Weibull: d => Self::Weibull { shape: d.shape(), scale: d.scale() };
}

fn number(parameter: Option<f64>) -> f64 {
    parameter.unwrap_or(f64::NAN)
}

/// The parameters have no accessors: they come from the median and the entropy.
fn log_normal(d: &statrs::LogNormal) -> Univariate {
    let location = d.median().ln();
    let scale = (number(d.entropy()) - 0.5 - 0.5 * TAU.ln() - location).exp();
    Univariate::LogNormal { location, scale }
}
