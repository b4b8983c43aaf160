//! Covariances of the values of tokens.

use crate::Error;
use bochner_dense::{Cholesky, symmetrised};
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The covariance $C_V$ of the values between tokens; the columns of the values $V$, `[T, d]`, are its samples.
#[derive(Clone, Copy, Debug)]
pub enum ValueCovariance<'a, T> {
    /// $C_V = I$: the values of different tokens are uncorrelated and of unit variance.
    Identity,
    /// The covariance itself, `[T, T]`, symmetric and positive definite.
    Given(ArrayView2<'a, T>),
    /// The values, `[T, d]`: rows are centred, and products divided by $d - 1$. A row that varies by no more than the
    /// rounding of its numbers counts as constant.
    OfValues(ArrayView2<'a, T>),
}

/// The lower Cholesky factor, `[T, T]`.
pub(super) fn root_of_covariance<T: Real>(
    covariance: ArrayView2<T>,
    tokens: usize,
) -> Result<Array2<f64>, Error> {
    let name = "covariance of the values";
    argument::shape(name, &[tokens, tokens], covariance.shape())?;
    argument::finite(name, covariance.shape(), covariance)?;
    let covariance = covariance.mapv(T::as_f64);
    let rounding = tokens as f64 * T::epsilon().as_f64();
    let covariance = symmetrised(name, covariance.view(), rounding)?;
    let factor = Cholesky::new(covariance.view())?;
    Ok(factor.lower().to_owned())
}

/// The centred values over the root of $d - 1$, `[T, d]`.
pub(super) fn root_of_values<T: Real>(
    name: &'static str,
    values: ArrayView2<T>,
) -> Result<Array2<f64>, Error> {
    let samples = values.ncols();
    if samples < 2 {
        let least = 2;
        return Err(Error::TooFewSamples { samples, least });
    }
    argument::finite(name, values.shape(), values)?;
    let mut root = values.mapv(T::as_f64);
    for mut row in root.outer_iter_mut() {
        let rounding = largest(&row.view()) * T::epsilon().as_f64();
        // Without its first number a constant row is zero, and its mean too.
        let first = row[0];
        row -= first;
        let mean = row.mean().expect("two samples at least");
        row -= mean;
        if largest(&row.view()) <= rounding {
            row.fill(0.0);
        }
    }
    Ok(root / ((samples - 1) as f64).sqrt())
}

fn largest(row: &ArrayView1<f64>) -> f64 {
    row.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()))
}
