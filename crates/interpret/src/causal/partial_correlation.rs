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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueCovariance;
    use bochner_dense::Cholesky;
    use bochner_numerics::check::random;
    use bochner_numerics::{Seed, fill_standard_normal};
    use ndarray::{Array2, Axis, array};

    fn of(a: &Array2<f64>) -> Correlations {
        Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap()
    }

    /// The definition, by the inverse of the correlations of $i$, $j$ and $S$.
    fn by_inverse(correlations: &Correlations, i: usize, j: usize, given: &[usize]) -> f64 {
        let tokens = [&[i, j], given].concat();
        let rho = correlations.correlation();
        let part = rho.select(Axis(0), &tokens).select(Axis(1), &tokens);
        let p = Cholesky::new(part.view()).unwrap().inverse();
        -p[[0, 1]] / (p[[0, 0]] * p[[1, 1]]).sqrt()
    }

    #[test]
    fn it_is_the_inverse_of_the_correlations() {
        let correlations = of(&random((7, 7), "a"));
        let rho = correlations.correlation();
        let sets: [&[usize]; 5] = [&[], &[5], &[6, 0], &[3, 5, 0], &[0, 3, 4, 5, 6]];
        for given in sets {
            let got = correlations.partial(1, 2, given).unwrap();
            let want = by_inverse(&correlations, 1, 2, given);
            assert!((got - want).abs() < 1e-12, "{given:?}: {got} {want}");
            assert_eq!(got, correlations.partial(2, 1, given).unwrap());
            // The sign of the off-diagonal entry, forgotten, would be seen.
            assert!((got + want).abs() > 0.01);
        }
        let of = |i: usize, j: usize| rho[[i, j]];
        let closed = (of(1, 2) - of(1, 5) * of(2, 5))
            / ((1.0 - of(1, 5).powi(2)) * (1.0 - of(2, 5).powi(2))).sqrt();
        assert!((correlations.partial(1, 2, &[5]).unwrap() - closed).abs() < 1e-14);
    }

    #[test]
    fn zeros_survive_a_chain_whose_covariance_is_nearly_singular() {
        // Weights of 2 multiply the variance by 4 at each of eleven links.
        let a = Array2::from_shape_fn((12, 12), |(i, j)| match i >= j {
            true => 2f64.powi((i - j) as i32),
            false => 0.0,
        });
        let correlations = of(&a);
        for (i, middle, j) in [(0, 1, 2), (9, 10, 11), (0, 6, 11), (0, 10, 11)] {
            let got = correlations.partial(i, j, &[middle]).unwrap();
            assert!(got.abs() < 1e-13, "{i} {middle} {j}: {got:e}");
        }
        let all: Vec<usize> = (1..11).collect();
        assert!(correlations.partial(0, 11, &all).unwrap().abs() < 1e-12);
        // The inverse has lost the zero that the projections keep.
        assert!(by_inverse(&correlations, 9, 11, &[10]).abs() > 1e-12);
    }

    #[test]
    fn tokens_must_be_distinct_and_there() {
        let correlations = of(&random((4, 4), "a"));
        for (i, j, given) in [(1, 1, vec![]), (0, 1, vec![1]), (0, 1, vec![2, 2])] {
            let refused = correlations.partial(i, j, &given);
            assert!(matches!(refused, Err(Error::RepeatedNode { .. })));
        }
        assert!(matches!(
            correlations.partial(0, 4, &[]),
            Err(Error::Argument(_))
        ));
    }

    #[test]
    fn the_test_at_its_ends() {
        let of = |r, samples, given| FisherTest::new(r, samples, given);
        for r in [1.0, -1.0, 1.0 + 1e-12] {
            assert_eq!(of(r, 10, 0).unwrap().p_value, 0.0);
        }
        let none = of(0.0, 10, 0).unwrap();
        assert!((none.p_value - 1.0).abs() < 1e-15 && none.statistic == 0.0);
        assert!(of(-0.5, 10, 0).unwrap().z < 0.0);
        // At n - |S| - 3 = 1 the statistic is |z| itself, and 1.96 leaves five in a hundred.
        let border = of(1.959963984540054f64.tanh(), 6, 2).unwrap();
        assert!((border.p_value - 0.05).abs() < 1e-12);
        assert!(matches!(
            of(0.5, 0, 0),
            Err(Error::TooFewSamples {
                samples: 0,
                least: 4
            })
        ));
        assert!(matches!(
            of(0.5, 5, 2),
            Err(Error::TooFewSamples {
                samples: 5,
                least: 6
            })
        ));
        assert!(of(f64::NAN, 10, 0).is_err());
    }

    #[test]
    fn one_true_independence_in_twenty_is_rejected_at_five_percent() {
        // Two tokens that a third one drives; the noise is that of the values.
        let a = array![[1.0, 0.0, 0.0], [0.8, 1.0, 0.0], [-1.3, 0.0, 1.0]];
        let mut stream = Seed::new(28).stream("noise");
        let mut values = Array2::zeros((3, 64));
        let trials = 20_000;
        let mut rejected = [0_u32; 2];
        for _ in 0..trials {
            fill_standard_normal(&mut stream, values.as_slice_mut().unwrap());
            let drawn = ValueCovariance::OfValues(values.view());
            let correlations = Correlations::of_attention(a.view(), drawn).unwrap();
            for (rejected, given) in rejected.iter_mut().zip([&[0][..], &[]]) {
                let r = correlations.partial(1, 2, given).unwrap();
                let p = FisherTest::new(r, 64, given.len()).unwrap().p_value;
                *rejected += u32::from(p <= 0.05);
            }
        }
        let [conditional, marginal] = rejected.map(|count| f64::from(count) / f64::from(trials));
        println!("type I error at .05: {conditional}");
        assert!((conditional - 0.05).abs() < 0.005, "{conditional}");
        assert!(marginal > 0.9, "dependence is seen: {marginal}");
    }

    /// Rows of length 1 that point the same way have a product that rounding brings above 1.
    #[test]
    fn no_partial_correlation_is_above_one() {
        let rows: Array2<f64> = random((300, 5), "rows");
        for row in rows.outer_iter() {
            let mut a = Array2::eye(5);
            a.row_mut(0).assign(&row);
            a.row_mut(1).assign(&row);
            a[[1, 1]] += 1e-9;
            let correlations = of(&a);
            for given in [&[][..], &[3]] {
                let r = correlations.partial(0, 1, given).unwrap();
                assert!((1.0 - 1e-12..=1.0).contains(&r), "{r}");
            }
        }
    }
}
