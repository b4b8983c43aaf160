//! The covariance of what attention puts out, as attention itself says it.

use crate::Error;
use bochner_dense::{Cholesky, Svd, svd, symmetrised};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// The covariance $C_V$ of the values between tokens; the columns of the values $V$, `[T, d]`, are its samples.
#[derive(Clone, Copy, Debug)]
pub enum ValueCovariance<'a, T> {
    /// $C_V = I$: the values of different tokens are uncorrelated and of unit variance.
    Identity,
    /// The covariance itself, `[T, T]`, symmetric and positive definite.
    Given(ArrayView2<'a, T>),
    /// The values, `[T, d]`: rows are centred, and products divided by $d - 1$.
    OfValues(ArrayView2<'a, T>),
}

/// The correlations between the outputs of one head for one sequence, and what they are computed from.
///
/// Attention reads as a structural equation model, $X = G X + \Lambda U$ with one variable a token: in
/// $Z = A V$ the matrix $A$ has the place of $(I - G)^{-1} \Lambda$, and the columns of $V$ are samples of the noise
/// $U$. Hence
///
/// $$C = A C_V A^\top, \qquad \rho_{ij} = \frac{C_{ij}}{\sqrt{C_{ii} C_{jj}}}$$
///
/// *where* $A$ is `a`, the weights of the head, and $C_V$ is `values`.
///
/// # Numerics
/// The struct keeps $A C_V^{1/2}$ and not $C$: partial correlations come from projections of its rows, and so lose
/// digits as the condition of $A$ does. An inverse of a part of $C$ would lose twice as many.
///
/// # Reference
/// Rohekar, Gurwicz, Nisimov, *Causal interpretation of self-attention in pre-trained transformers*, 2023;
/// there $C_V = I$.
///
/// ```
/// use bochner_interpret::{Correlations, ValueCovariance};
/// use bochner_interpret::ndarray::array;
///
/// // The total effects of the chain 0 -> 1 -> 2, whose links have the weights 1 and 2.
/// let a = array![[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 1.0]];
/// let correlations = Correlations::of_attention(a.view(), ValueCovariance::Identity)?;
/// assert_eq!(correlations.covariance()[[0, 2]], 2.0);
/// // The ends depend on one another, but not where the middle is known.
/// assert!((correlations.partial(0, 2, &[])? - 2.0 / 3.0).abs() < 1e-15);
/// assert!(correlations.partial(0, 2, &[1])?.abs() < 1e-15);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Correlations {
    /// The rows of $A C_V^{1/2}$, divided by their norms.
    rows: Array2<f64>,
    /// Their norms, the standard deviations.
    deviations: Array1<f64>,
}

/// Tokens whose outputs vary less are not told from constants.
const LEAST_VARIANCE: f64 = 1e-8;

/// Where all tokens are correlated more than this, weights that differ by less than a thousandth say the same of
/// all of them.
const LARGEST_CORRELATION: f64 = 1.0 - 1e-6;

impl Correlations {
    /// The correlations between the tokens of one head.
    ///
    /// # Shapes
    /// `a: [T, T]`, rows are queries; `values` as [`ValueCovariance`] says.
    ///
    /// # Errors
    /// * [`Error::Argument`] for weights that are not square, other shapes of `values`, or numbers that are not
    ///   finite;
    /// * [`Error::TooFewTokens`] below three tokens;
    /// * [`Error::TooFewSamples`] for values of fewer than two columns;
    /// * [`Error::Dense`] if the given covariance is not symmetric and positive definite;
    /// * [`Error::LowVariance`] for a token whose variance is below 1e-8;
    /// * [`Error::NearlyUniform`] where all tokens are correlated by more than $1 - 10^{-6}$;
    /// * [`Error::RankDeficient`] where rows depend on one another to the precision of `T`.
    pub fn of_attention<T: Real>(
        a: ArrayView2<T>,
        values: ValueCovariance<T>,
    ) -> Result<Self, Error> {
        let tokens = a.nrows();
        finite("a", &[tokens, tokens], a)?;
        if tokens < 3 {
            return Err(Error::TooFewTokens { tokens });
        }
        let a = a.mapv(T::as_f64);
        let root = match values {
            ValueCovariance::Identity => a,
            ValueCovariance::Given(covariance) => a.dot(&root_of_covariance(covariance, tokens)?),
            ValueCovariance::OfValues(values) => a.dot(&root_of_values(values, tokens)?),
        };
        Self::of_rows(root)?.checked(T::epsilon().as_f64())
    }

    fn of_rows(mut rows: Array2<f64>) -> Result<Self, Error> {
        let deviations = rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
        argument::finite("covariance", &[rows.nrows()], &deviations)?;
        let variances = deviations.iter().map(|s| s * s).enumerate();
        for (token, variance) in variances {
            if variance < LEAST_VARIANCE {
                return Err(Error::LowVariance { token, variance });
            }
        }
        rows /= &deviations.view().insert_axis(Axis(1));
        Ok(Self { rows, deviations })
    }

    /// Refuses correlations that say nothing, and shortens the rows.
    fn checked(mut self, epsilon: f64) -> Result<Self, Error> {
        let tokens = self.tokens();
        let correlation = self.correlation();
        let smallest = correlation
            .iter()
            .fold(1.0, |least: f64, r| least.min(r.abs()));
        if smallest > LARGEST_CORRELATION {
            return Err(Error::NearlyUniform { smallest });
        }
        let Svd { u, s, .. } = svd(self.rows.view())?;
        let zero = tokens as f64 * epsilon * s[0];
        let rank = s.iter().filter(|&&s| s > zero).count();
        if rank < tokens {
            return Err(Error::RankDeficient { rank, tokens });
        }
        // In the right singular basis rows are no longer than there are tokens, however many samples there are.
        if self.rows.ncols() > tokens {
            self.rows = u * s;
        }
        Ok(self)
    }

    /// The number of tokens.
    pub fn tokens(&self) -> usize {
        self.rows.nrows()
    }

    /// The rows of $A C_V^{1/2}$ at length 1, whose products are the correlations.
    pub(super) fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// The covariance $C$, `[T, T]`.
    pub fn covariance(&self) -> Array2<f64> {
        let column = self.deviations.view().insert_axis(Axis(1));
        self.rows.dot(&self.rows.t()) * column * &self.deviations
    }

    /// The correlations $\rho$, `[T, T]`, with an exact diagonal.
    pub fn correlation(&self) -> Array2<f64> {
        let mut correlation = self.rows.dot(&self.rows.t());
        correlation.mapv_inplace(|x| x.clamp(-1.0, 1.0));
        correlation.diag_mut().fill(1.0);
        correlation
    }

    /// The correlations between some of the tokens, in this order. What the others do to these is kept, which it
    /// would not be if rows and columns of the attention itself were left out.
    ///
    /// # Errors
    /// [`Error::Argument`] for a token that is not there, [`Error::RepeatedNode`], [`Error::TooFewTokens`].
    pub fn between(&self, tokens: &[usize]) -> Result<Self, Error> {
        distinct(tokens.iter().copied(), self.tokens())?;
        if tokens.len() < 3 {
            let tokens = tokens.len();
            return Err(Error::TooFewTokens { tokens });
        }
        Ok(Self {
            rows: self.rows.select(Axis(0), tokens),
            deviations: self.deviations.select(Axis(0), tokens),
        })
    }
}

/// Refuses tokens that are not there or that are named twice.
pub(super) fn distinct(tokens: impl Iterator<Item = usize>, count: usize) -> Result<(), Error> {
    let mut seen = vec![false; count];
    for token in tokens {
        argument::index("tokens", token, count)?;
        if std::mem::replace(&mut seen[token], true) {
            return Err(Error::RepeatedNode { node: token });
        }
    }
    Ok(())
}

fn finite<T: Real>(name: &'static str, expected: &[usize], x: ArrayView2<T>) -> Result<(), Error> {
    argument::shape(name, expected, x.shape())?;
    argument::finite(name, x.shape(), x)?;
    Ok(())
}

fn root_of_covariance<T: Real>(
    covariance: ArrayView2<T>,
    tokens: usize,
) -> Result<Array2<f64>, Error> {
    finite("covariance of the values", &[tokens, tokens], covariance)?;
    let covariance = covariance.mapv(T::as_f64);
    let rounding = tokens as f64 * T::epsilon().as_f64();
    let covariance = symmetrised("covariance of the values", covariance.view(), rounding)?;
    let factor = Cholesky::new(covariance.view())?;
    Ok(factor.lower().to_owned())
}

fn root_of_values<T: Real>(values: ArrayView2<T>, tokens: usize) -> Result<Array2<f64>, Error> {
    let samples = values.ncols();
    finite("values", &[tokens, samples], values)?;
    if samples < 2 {
        let least = 2;
        return Err(Error::TooFewSamples { samples, least });
    }
    let values = values.mapv(T::as_f64);
    let means = values.mean_axis(Axis(1)).expect("two samples at least");
    Ok((values - means.insert_axis(Axis(1))) / ((samples - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests;
