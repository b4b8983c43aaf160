//! Draws from a joint distribution, with and without some coordinates given.

use crate::Error;
use crate::distributions::joint::Joint;
use crate::distributions::marginal::{Marginal, normal_score, number};
use bochner_numerics::{argument, parallel};
use ndarray::Array2;
use rand::RngCore;

impl<D: Marginal> Joint<D> {
    /// Independent draws, through the quantile functions of the marginals.
    ///
    /// # Shapes
    /// `[n, M]`.
    ///
    /// # Errors
    /// [`Error::Marginal`] if a marginal's own function is NaN.
    ///
    /// # Numerics
    /// The quantiles of [`Univariate`](crate::Univariate), and so those of statrs' distributions, are accurate to 1e-11
    /// of a normal score. Those of other marginals solve for their distribution function, and where that jumps, every
    /// probability inside the jump is drawn as the same number.
    pub fn sample(
        &self,
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        self.at_scores(self.copula().sample_scores(n, rng))
    }

    /// Independent draws with some coordinates held at given values.
    ///
    /// # Shapes
    /// `given`: pairs of a coordinate below `M` and its value, in any order, to `[n, M]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a coordinate that does not exist or a value that is not finite,
    /// [`Error::Repeated`] for a coordinate that is given twice, [`Error::Support`] for a value outside
    /// its marginal's support, [`Error::Marginal`] if a marginal's own function is NaN.
    pub fn conditional_sample(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        let score = |&(coordinate, z)| Ok((coordinate, self.given_score(coordinate, z)?));
        let scores: Vec<_> = given.iter().map(score).collect::<Result<_, Error>>()?;
        let mut z = self.at_scores(self.copula().conditional_scores(&scores, n, rng)?)?;
        for &(coordinate, given) in given {
            z.column_mut(coordinate).fill(given);
        }
        Ok(z)
    }

    fn given_score(&self, coordinate: usize, z: f64) -> Result<f64, Error> {
        argument::index("given", coordinate, self.marginals().len())?;
        let marginal = &self.marginals()[coordinate];
        let name = format!("coordinate {coordinate} of given");
        argument::in_range(z.is_finite(), name, z, "finite")?;
        let (low, high) = marginal.support();
        if !(low <= z && z <= high) {
            return Err(Error::Support {
                coordinate,
                got: z,
                low,
                high,
            });
        }
        normal_score(marginal, coordinate, z)
    }

    fn at_scores(&self, scores: Array2<f64>) -> Result<Array2<f64>, Error> {
        let columns = parallel::map(scores.ncols(), |coordinate| {
            let mut z = scores.column(coordinate).to_vec();
            self.marginals()[coordinate].at_scores(&mut z);
            let function = "quantile function";
            let mut pairs = z.iter().zip(scores.column(coordinate));
            pairs.try_for_each(|(z, x)| number(coordinate, function, *x, *z).map(|_| ()))?;
            Ok::<_, Error>(z)
        });
        let mut z = scores;
        for (mut column, drawn) in z.columns_mut().into_iter().zip(columns) {
            column
                .iter_mut()
                .zip(drawn?)
                .for_each(|(z, drawn)| *z = drawn);
        }
        Ok(z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaussianCopula;
    use crate::distributions::marginal::Broken;
    use bochner_numerics::Seed;
    use statrs::distribution::{Gamma, Normal, Uniform};

    /// Means 1 and -3, standard deviations 2 and 1/2, correlation -0.6.
    fn normals() -> Joint<Normal> {
        let marginals = [(1.0, 2.0), (-3.0, 0.5)].map(|(m, s)| Normal::new(m, s).unwrap());
        Joint::new(GaussianCopula::of_pair(-0.6), marginals.into()).unwrap()
    }

    #[test]
    fn draws_have_the_moments_of_the_normal_distribution() {
        let mut rng = Seed::new(1).stream("draws");
        let n = 20_000;
        let z = normals().sample(n, &mut rng).unwrap();
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
        let missing = given((2, 0.0)).to_string();
        assert!(missing.starts_with("`given` holds the index 2, but must stay below 2"));
        let infinite = given((1, f64::INFINITY)).to_string();
        assert!(
            infinite.starts_with("`coordinate 1 of given` is inf"),
            "{infinite}"
        );
    }

    #[test]
    fn values_outside_a_support_cannot_be_given() {
        let marginals: Vec<Box<dyn Marginal>> = vec![
            Box::new(Gamma::new(2.0, 1.0).unwrap()),
            Box::new(Uniform::new(0.0, 1.0).unwrap()),
        ];
        let joint = Joint::new(GaussianCopula::of_pair(0.5), marginals).unwrap();
        let mut rng = Seed::new(1).stream("draws");
        let mut given = |at| joint.conditional_sample(&[at], 1, &mut rng);
        let (coordinate, got, low, high) = (0, -5.0, 0.0, f64::INFINITY);
        let outside = Error::Support {
            coordinate,
            got,
            low,
            high,
        };
        assert_eq!(given((0, -5.0)), Err(outside));
        for wrong in [(1, 7.0), (1, -1e-300), (1, 1.0_f64.next_up())] {
            assert!(matches!(
                given(wrong),
                Err(Error::Support { coordinate: 1, .. })
            ));
        }
        assert!(given((0, 5.0)).is_ok() && given((1, 0.0)).is_ok() && given((1, 1.0)).is_ok());
    }

    #[test]
    fn a_marginal_without_probabilities_has_no_draws() {
        let marginals: Vec<Box<dyn Marginal>> =
            vec![Box::new(Normal::new(0.0, 1.0).unwrap()), Box::new(Broken)];
        let joint = Joint::new(GaussianCopula::of_pair(0.5), marginals).unwrap();
        let mut rng = Seed::new(1).stream("draws");
        let drawn = joint.sample(3, &mut rng);
        assert!(matches!(drawn, Err(Error::Marginal { coordinate: 1, got, .. }) if got.is_nan()));
        let drawn = joint.conditional_sample(&[(0, 0.3)], 3, &mut rng);
        assert!(matches!(drawn, Err(Error::Marginal { coordinate: 1, .. })));
    }
}
