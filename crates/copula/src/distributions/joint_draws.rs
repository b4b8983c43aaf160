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
