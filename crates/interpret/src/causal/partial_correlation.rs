//! Partial correlations of two tokens given others, and their tests against chance.

use super::Correlations;
use super::independence::distinct;
use crate::Error;
use bochner_numerics::{argument, normal};
use ndarray::Array1;

impl Correlations {
    /// The partial correlation of tokens $i$ and $j$, given the tokens $S$.
    ///
    /// $$r_{ij \mid S} = \frac{-P_{12}}{\sqrt{P_{11} P_{22}}}, \qquad
    /// P = \bigl(\rho_{\lbrace i, j \rbrace \cup S}\bigr)^{-1}$$
    ///
    /// *where* $S$ is `given`, and the first two rows of $P$ belong to $i$ and $j$. For jointly normal outputs it is
    /// 0 exactly where the two are independent given $S$.
    ///
    /// # Errors
    /// [`Error::Argument`] for a token that is not there, [`Error::RepeatedNode`] if $i$, $j$ and $S$ are not
    /// distinct.
    ///
    /// # Numerics
    /// It is computed as the cosine of the angle between what the rows of $i$ and of $j$ in $A C_V^{1/2}$ leave of
    /// themselves beside those of $S$, by modified Gram-Schmidt in two passes, $O(|S|^2 T)$. Where it should be zero,
    /// a small multiple of the rounding times the condition of $A$ is left.
    ///
    /// # Reference
    /// Whittaker, *Graphical models in applied multivariate statistics*, 1990.
    pub fn partial(&self, i: usize, j: usize, given: &[usize]) -> Result<f64, Error> {
        let both = [i, j].into_iter();
        distinct("tokens", both.chain(given.iter().copied()), self.tokens())?;
        let mut basis: Vec<Array1<f64>> = Vec::with_capacity(given.len());
        for &token in given {
            basis.push(self.left_of(token, &basis));
        }
        let [x, y] = [i, j].map(|token| self.left_of(token, &basis));
        Ok(x.dot(&y).clamp(-1.0, 1.0))
    }

    /// Returns the part of a token's row that is orthogonal to an orthonormal basis, at length 1. The rows are linearly
    /// independent.
    fn left_of(&self, token: usize, basis: &[Array1<f64>]) -> Array1<f64> {
        let mut row = self.rows().row(token).to_owned();
        for direction in basis.iter().chain(basis) {
            let along = row.dot(direction);
            row.scaled_add(-along, direction);
        }
        let norm = row.dot(&row).sqrt();
        row / norm
    }
}

/// Fisher's test of a partial correlation against zero.
///
/// $$z = \operatorname{artanh} r, \qquad t = \sqrt{n - |S| - 3} |z|, \qquad
/// p = \operatorname{erfc} \frac{t}{\sqrt 2}$$
///
/// *where* $r$ is the partial correlation given $|S|$ tokens in $n$ samples. Attention has as many samples as its
/// values have columns.
///
/// # Reference
/// Fisher, *The distribution of the partial correlation coefficient*, 1924.
///
/// ```
/// use bochner_interpret::FisherTest;
///
/// let test = FisherTest::new(0.3, 64, 1)?;
/// assert!((test.statistic - 60f64.sqrt() * 0.3f64.atanh()).abs() < 1e-12);
/// assert!(test.p_value < 0.05);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FisherTest {
    /// $z$, infinite for a correlation of 1.
    pub z: f64,
    /// $t$.
    pub statistic: f64,
    /// $p$, the probability of a statistic as large by chance.
    pub p_value: f64,
}

impl FisherTest {
    /// Tests the partial correlation `r` of `samples`, given so many tokens. A correlation of 1 in absolute value
    /// or more has $p = 0$.
    ///
    /// # Errors
    /// [`Error::TooFewSamples`] where `samples` is not above $|S| + 3$, [`Error::Argument`] if `r` is NaN.
    pub fn new(r: f64, samples: usize, given: usize) -> Result<Self, Error> {
        argument::in_range(!r.is_nan(), "r", r, "a number")?;
        let least = given + 4;
        if samples < least {
            return Err(Error::TooFewSamples { samples, least });
        }
        let z = r.clamp(-1.0, 1.0).atanh();
        let statistic = ((samples - given - 3) as f64).sqrt() * z.abs();
        Ok(Self {
            z,
            statistic,
            p_value: 2.0 * normal::cdf(-statistic),
        })
    }
}
