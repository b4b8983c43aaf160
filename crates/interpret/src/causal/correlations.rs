//! The covariance of what attention puts out, as attention itself says it.

use super::ValueCovariance;
use super::independence::distinct;
use super::values::{root_of_covariance, root_of_values};
use crate::Error;
use bochner_dense::{Svd, svd};
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// The correlations between the outputs of one head for one sequence, or between variables of which there are samples,
/// and what they are computed from.
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
    /// The number of samples that they come from, if it is known.
    pub(super) samples: Option<usize>,
}

/// Tokens whose outputs vary less than this share of the values' largest variance are not told from constants.
const LEAST_VARIANCE: f64 = 1e-8;

/// The largest correlation at which weights are told apart. If all tokens are correlated more, weights that differ by
/// less than a thousandth give the same correlations for all of them.
const LARGEST_CORRELATION: f64 = 1.0 - 1e-6;

impl Correlations {
    /// The correlations between all tokens of one head.
    ///
    /// # Shapes
    /// `a: [T, T]`, rows are queries; `values` as [`ValueCovariance`] says.
    ///
    /// # Errors
    /// The errors of [`of_tokens`](Self::of_tokens), which looks at some of the tokens where these cannot be told
    /// apart.
    pub fn of_attention<T: Real>(
        a: ArrayView2<T>,
        values: ValueCovariance<T>,
    ) -> Result<Self, Error> {
        let all: Vec<usize> = (0..a.nrows()).collect();
        Self::of_tokens(a, values, &all)
    }

    /// The correlations between some of the tokens of one head, in this order. Tokens that are left out, such as
    /// padding and tokens that repeat others, keep their effect on these tokens: it is in their columns of `a`. Cutting
    /// away their columns with their rows would give another model.
    ///
    /// # Shapes
    /// `a: [T, T]`, rows are queries; `values` of all tokens, see [`ValueCovariance`].
    ///
    /// # Errors
    /// * [`Error::Argument`] for weights that are not square, other shapes of `values`, a token that does not exist, or
    ///   numbers that are not finite, among the values of all tokens and the rows of `a` that are not left out;
    /// * [`Error::RepeatedNode`] for a token that is named twice;
    /// * [`Error::TooFewTokens`] below three tokens;
    /// * [`Error::TooFewSamples`] for values of fewer than two columns;
    /// * [`Error::Dense`] if the given covariance is not symmetric and positive definite;
    /// * [`Error::LowVariance`] for a token whose variance is below 1e-8 of the largest of the values, such as one whose
    ///   row is zeros;
    /// * [`Error::NearlyUniform`] where all tokens are correlated by more than $1 - 10^{-6}$. Weights that are uniform
    ///   apart from noise pass if the noise is larger than this, and their structure is that of the noise;
    /// * [`Error::RankDeficient`] where rows depend on one another to the precision of `T`.
    ///
    /// ```
    /// use bochner_interpret::{Correlations, Error, ValueCovariance::Identity};
    /// use bochner_interpret::ndarray::array;
    ///
    /// // The last token looks at the others as the first one does.
    /// let a = array![[0.5, 0.5, 0., 0.], [0.1, 0.8, 0.1, 0.], [0., 0.3, 0.6, 0.1], [0.5, 0.5, 0., 0.]];
    /// let refused = Correlations::of_attention(a.view(), Identity);
    /// assert!(matches!(refused, Err(Error::RankDeficient { dependent, .. }) if dependent == [3]));
    /// let three = Correlations::of_tokens(a.view(), Identity, &[0, 1, 2])?;
    /// assert_eq!(three.tokens(), 3);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn of_tokens<T: Real>(
        a: ArrayView2<T>,
        values: ValueCovariance<T>,
        tokens: &[usize],
    ) -> Result<Self, Error> {
        let count = a.nrows();
        argument::shape("a", &[count, count], a.shape())?;
        distinct("tokens", tokens.iter().copied(), count)?;
        enough(tokens.len())?;
        let mut rows = Array2::zeros((tokens.len(), count));
        for (mut row, &token) in rows.outer_iter_mut().zip(tokens) {
            row.assign(&finite_row(a.row(token), token)?);
        }
        let (root, samples) = match values {
            ValueCovariance::Identity => (None, None),
            ValueCovariance::Given(covariance) => {
                (Some(root_of_covariance(covariance, count)?), None)
            }
            ValueCovariance::OfValues(values) => {
                argument::shape("values", &[count, values.ncols()], values.shape())?;
                let root = root_of_values("values", values)?;
                (Some(root), Some(values.ncols()))
            }
        };
        let (rows, largest) = match root {
            Some(root) => {
                let variances = root.map_axis(Axis(1), |row| row.dot(&row));
                (rows.dot(&root), variances.fold(0.0, |a: f64, &b| a.max(b)))
            }
            None => (rows, 1.0),
        };
        Self::of_rows(rows, LEAST_VARIANCE * largest, samples)
            .and_then(|all| {
                all.differ()?;
                all.of_full_rank(T::epsilon().as_f64())
            })
            .map_err(|error| error.of_nodes(tokens))
    }

    pub(super) fn of_rows(
        mut rows: Array2<f64>,
        least: f64,
        samples: Option<usize>,
    ) -> Result<Self, Error> {
        let deviations = rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
        argument::finite("covariance", &[rows.nrows()], &deviations)?;
        let variances = deviations.iter().map(|s| s * s).enumerate();
        for (token, variance) in variances {
            if variance < least || variance == 0.0 {
                return Err(Error::LowVariance { token, variance });
            }
        }
        rows /= &deviations.view().insert_axis(Axis(1));
        Ok(Self {
            rows,
            deviations,
            samples,
        })
    }

    /// Refuses rows that depend on one another, and shortens the others.
    pub(super) fn of_full_rank(mut self, epsilon: f64) -> Result<Self, Error> {
        let tokens = self.tokens();
        let Svd { u, s, .. } = svd(self.rows.view())?;
        let zero = tokens as f64 * epsilon * s[0];
        let rank = s.iter().filter(|&&s| s > zero).count();
        if rank < tokens {
            let dependent = dependent(self.rows, rank);
            return Err(Error::RankDeficient {
                rank,
                tokens,
                dependent,
            });
        }
        // In the right singular basis rows are no longer than there are tokens, however many samples there are.
        if self.rows.ncols() > tokens {
            self.rows = u * s;
        }
        Ok(self)
    }

    /// Refuses tokens all of which say the same.
    pub(super) fn differ(&self) -> Result<(), Error> {
        let correlation = self.correlation();
        let smallest = correlation
            .iter()
            .fold(1.0, |least: f64, r| least.min(r.abs()));
        if smallest > LARGEST_CORRELATION {
            return Err(Error::NearlyUniform { smallest });
        }
        Ok(())
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

    /// The correlations between some of these tokens, in this order; the others keep their effect on them. Where attention
    /// is refused because of all its tokens, [`of_tokens`](Self::of_tokens) takes some of them.
    ///
    /// # Errors
    /// [`Error::Argument`] for a token that is not there, [`Error::RepeatedNode`], [`Error::TooFewTokens`];
    /// [`Error::NearlyUniform`] where these tokens are all correlated by more than $1 - 10^{-6}$. Rows of which none
    /// depends on the others stay so.
    pub fn between(&self, tokens: &[usize]) -> Result<Self, Error> {
        distinct("tokens", tokens.iter().copied(), self.tokens())?;
        enough(tokens.len())?;
        let part = Self {
            rows: self.rows.select(Axis(0), tokens),
            deviations: self.deviations.select(Axis(0), tokens),
            samples: self.samples,
        };
        part.differ()?;
        Ok(part)
    }
}

/// Refuses fewer than three tokens.
pub(super) fn enough(tokens: usize) -> Result<(), Error> {
    match tokens {
        0..3 => Err(Error::TooFewTokens { tokens }),
        _ => Ok(()),
    }
}

/// The rows that depend on `rank` others: what is left of them beside those is shortest.
fn dependent(mut rows: Array2<f64>, rank: usize) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..rows.nrows()).collect();
    for _ in 0..rank {
        let norm = |&token: &usize| rows.row(token).dot(&rows.row(token)).sqrt();
        let norms: Vec<f64> = rest.iter().map(norm).collect();
        let longest = norms.iter().copied().fold(0.0, f64::max);
        // The first one stays of tokens that repeat each other, whatever rounding says of their norms.
        let at = norms.iter().position(|&norm| norm >= 0.5 * longest);
        let at = at.expect("one is the longest");
        let direction = rows.row(rest.remove(at)).to_owned() / norms[at];
        for &token in &rest {
            let mut row = rows.row_mut(token);
            let along = row.dot(&direction);
            row.scaled_add(-along, &direction);
        }
    }
    rest
}

/// A token's row in double precision.
fn finite_row<T: Real>(row: ArrayView1<T>, token: usize) -> Result<Array1<f64>, ArgumentError> {
    match row.iter().position(|weight| !weight.is_finite()) {
        None => Ok(row.mapv(T::as_f64)),
        Some(key) => Err(ArgumentError::NotFinite {
            name: "a".into(),
            index: vec![token, key],
            got: row[key].as_f64(),
        }),
    }
}
