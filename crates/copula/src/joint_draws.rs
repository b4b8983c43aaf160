//! Draws from a joint distribution, with and without some coordinates given.

use crate::error::Error;
use crate::joint::Joint;
use crate::marginal::{Marginal, at_normal_score, normal_score};
use ndarray::Array2;
use rand::RngCore;

impl<D: Marginal> Joint<D> {
    /// Independent draws, through the quantile functions of the marginals.
    ///
    /// # Shapes
    /// `[n, M]`.
    ///
    /// # Numerics
    /// The marginals' quantiles are corrected by their distribution functions, to full precision.
    pub fn sample(&self, n: usize, rng: &mut impl RngCore) -> Array2<f64> {
        self.at_scores(self.copula().sample_scores(n, rng))
    }

    /// Independent draws with some coordinates held at given values.
    ///
    /// # Shapes
    /// `given`: pairs of a coordinate below `M` and its value, in any order, to `[n, M]`.
    ///
    /// # Errors
    /// [`Error::Coordinate`], [`Error::NotFinite`] (of row 0), [`Error::Marginal`].
    pub fn conditional_sample(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut impl RngCore,
    ) -> Result<Array2<f64>, Error> {
        let score = |&(coordinate, z)| Ok((coordinate, self.given_score(coordinate, z)?));
        let scores: Vec<_> = given.iter().map(score).collect::<Result<_, Error>>()?;
        let mut z = self.at_scores(self.copula().conditional_scores(&scores, n, rng)?);
        for &(coordinate, given) in given {
            z.column_mut(coordinate).fill(given);
        }
        Ok(z)
    }

    fn given_score(&self, coordinate: usize, z: f64) -> Result<f64, Error> {
        let dimension = self.marginals().len();
        let marginal = self.marginals().get(coordinate).ok_or(Error::Coordinate {
            coordinate,
            dimension,
        })?;
        if !z.is_finite() {
            return Err(Error::NotFinite {
                what: "given",
                row: 0,
                column: coordinate,
                got: z,
            });
        }
        normal_score(marginal, coordinate, z)
    }

    fn at_scores(&self, mut scores: Array2<f64>) -> Array2<f64> {
        for (mut column, marginal) in scores.columns_mut().into_iter().zip(self.marginals()) {
            column.mapv_inplace(|x| at_normal_score(marginal, x));
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaussianCopula;
    use bochner_numerics::Seed;
    use ndarray::array;
    use statrs::distribution::Normal;

    /// Means 1 and -3, standard deviations 2 and 1/2, correlation -0.6.
    fn normals() -> Joint<Normal> {
        let r = array![[1.0, -0.6], [-0.6, 1.0]];
        let copula = GaussianCopula::from_correlation(r.view()).unwrap();
        let marginals = vec![
            Normal::new(1.0, 2.0).unwrap(),
            Normal::new(-3.0, 0.5).unwrap(),
        ];
        Joint::new(copula, marginals).unwrap()
    }

    #[test]
    fn draws_have_the_moments_of_the_normal_distribution() {
        let mut rng = Seed::new(1).stream("draws");
        let n = 20_000;
        let z = normals().sample(n, &mut rng);
        let (x, y) = ((&z.column(0) - 1.0) / 2.0, (&z.column(1) + 3.0) / 0.5);
        let error = 5.0 / (n as f64).sqrt();
        assert!(x.mean().unwrap().abs() < error && y.mean().unwrap().abs() < error);
        assert!(((&x * &y).mean().unwrap() + 0.6).abs() < 1.2 * error);
        assert!(((&x * &x).mean().unwrap() - 1.0).abs() < 1.5 * error);
    }

    #[test]
    fn conditional_draws_follow_the_regression_line() {
        let mut rng = Seed::new(1).stream("draws");
        let n = 20_000;
        let z = normals()
            .conditional_sample(&[(0, 5.0)], n, &mut rng)
            .unwrap();
        assert!(z.column(0).iter().all(|&z| z == 5.0));
        let y = (&z.column(1) + 3.0) / 0.5;
        assert!((y.mean().unwrap() + 1.2).abs() < 5.0 * 0.8 / (n as f64).sqrt());
        assert!((y.var(1.0) / 0.64 - 1.0).abs() < 0.05);
    }

    #[test]
    fn what_cannot_be_given_is_refused() {
        let mut rng = Seed::new(1).stream("draws");
        let mut given = |at| {
            normals()
                .conditional_sample(&[at], 1, &mut rng)
                .unwrap_err()
        };
        assert!(matches!(
            given((2, 0.0)),
            Error::Coordinate { coordinate: 2, .. }
        ));
        assert!(matches!(
            given((1, f64::INFINITY)),
            Error::NotFinite { column: 1, .. }
        ));
    }
}
