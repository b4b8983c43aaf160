//! Draws from the Gaussian copula, with and without some coordinates given.

use crate::dense::{multiply, reordered, solve};
use crate::error::Error;
use crate::gaussian::GaussianCopula;
use crate::normal::{inside, normal_cdf, normal_quantile};
use bochner_numerics::standard_normal;
use ndarray::{Array2, ArrayView2};
use rand::RngCore;

impl GaussianCopula {
    /// Independent draws of uniform scores.
    ///
    /// $$u_m = \Phi(x_m), \qquad x = \hat L \epsilon, \quad \epsilon \sim \mathcal N(0, I)$$
    ///
    /// # Shapes
    /// `[n, M]`, strictly between 0 and 1.
    pub fn sample(&self, n: usize, rng: &mut impl RngCore) -> Array2<f64> {
        self.sample_scores(n, rng).mapv_into(uniform)
    }

    /// Independent draws with some coordinates held at given uniform scores.
    ///
    /// With the coordinates given first, the factor's upper left block $L_{gg}$ gives their
    /// innovations, and the others follow from these and fresh ones:
    ///
    /// $$x_a = L_{ag} L_{gg}^{-1} x_g + L_{aa} \epsilon$$
    ///
    /// # Shapes
    /// `given`: pairs of a coordinate below `M` and its uniform score, in any order, to `[n, M]`;
    /// the coordinates given hold their scores.
    ///
    /// # Errors
    /// [`Error::Coordinate`], [`Error::Score`] (of row 0).
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::GaussianCopula;
    /// use bochner_numerics::Seed;
    /// use ndarray::array;
    ///
    /// let copula = GaussianCopula::from_correlation(array![[1.0, 0.9], [0.9, 1.0]].view())?;
    /// let mut rng = Seed::new(1).stream("scores");
    /// let u = copula.conditional_sample(&[(1, 0.99)], 500, &mut rng)?;
    /// assert!(u.column(1).iter().all(|&u| u == 0.99));
    /// assert!(u.column(0).mean().unwrap() > 0.9);
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn conditional_sample(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut impl RngCore,
    ) -> Result<Array2<f64>, Error> {
        let outside = given.iter().find(|(_, u)| !(*u > 0.0 && *u < 1.0));
        if let Some(&(coordinate, got)) = outside {
            let row = 0;
            return Err(Error::Score {
                row,
                coordinate,
                got,
            });
        }
        let scores: Vec<_> = given
            .iter()
            .map(|&(m, u)| (m, normal_quantile(u)))
            .collect();
        let mut u = self.conditional_scores(&scores, n, rng)?.mapv_into(uniform);
        for &(m, given) in given {
            u.column_mut(m).fill(given);
        }
        Ok(u)
    }

    /// Draws of normal scores.
    pub(crate) fn sample_scores(&self, n: usize, rng: &mut impl RngCore) -> Array2<f64> {
        let order: Vec<usize> = (0..self.dimension()).collect();
        draw(self.factor(), &order, &[], n, rng)
    }

    /// Draws of normal scores with some given.
    pub(crate) fn conditional_scores(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut impl RngCore,
    ) -> Result<Array2<f64>, Error> {
        let order = given_first(given, self.dimension())?;
        let factor = reordered(self.factor(), &order);
        let mut innovations: Vec<f64> = given.iter().map(|&(_, x)| x).collect();
        solve(factor.view(), &mut innovations);
        innovations.iter_mut().for_each(|e| *e = bounded(*e));
        let mut scores = draw(factor.view(), &order, &innovations, n, rng);
        for &(m, x) in given {
            scores.column_mut(m).fill(x);
        }
        Ok(scores)
    }
}

/// Rows of `L e`, back in the original order, whose first innovations `e` are known.
fn draw(
    factor: ArrayView2<f64>,
    order: &[usize],
    known: &[f64],
    n: usize,
    rng: &mut impl RngCore,
) -> Array2<f64> {
    let mut scores = Array2::zeros((n, order.len()));
    let mut x = vec![0.0; order.len()];
    for mut row in scores.rows_mut() {
        x[..known.len()].copy_from_slice(known);
        x[known.len()..].fill_with(|| standard_normal(rng));
        multiply(factor, &mut x);
        order.iter().zip(&x).for_each(|(&m, &x)| row[m] = x);
    }
    scores
}

/// The coordinates, those given first.
fn given_first(given: &[(usize, f64)], dimension: usize) -> Result<Vec<usize>, Error> {
    let mut order: Vec<usize> = Vec::with_capacity(dimension);
    for &(coordinate, _) in given {
        if coordinate >= dimension || order.contains(&coordinate) {
            return Err(Error::Coordinate {
                coordinate,
                dimension,
            });
        }
        order.push(coordinate);
    }
    let rest: Vec<_> = (0..dimension).filter(|m| !order.contains(m)).collect();
    order.extend(rest);
    Ok(order)
}

/// An innovation of values that contradict a factor next to degenerate, with room for sums.
fn bounded(e: f64) -> f64 {
    if e.is_nan() {
        0.0
    } else {
        e.clamp(-1e100, 1e100)
    }
}

fn uniform(x: f64) -> f64 {
    inside(normal_cdf(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::array;

    fn copula() -> GaussianCopula {
        let r = array![[1.0, 0.8, 0.3], [0.8, 1.0, -0.1], [0.3, -0.1, 1.0]];
        GaussianCopula::from_correlation(r.view()).unwrap()
    }

    /// `R_ag R_gg^-1 x_g` and `R_aa - R_ag R_gg^-1 R_ga` of one coordinate given two.
    #[test]
    fn conditional_moments_are_those_of_the_normal_distribution() {
        let given = [(2, 1.5), (0, -0.5)];
        let mut rng = Seed::new(5).stream("conditional");
        let n = 40_000;
        let x = copula().conditional_scores(&given, n, &mut rng).unwrap();
        assert!(x.column(2).iter().all(|&x| x == 1.5) && x.column(0).iter().all(|&x| x == -0.5));
        let inverse = 1.0 / (1.0 - 0.3 * 0.3);
        let weights = [(0.8 - 0.3 * -0.1) * inverse, (-0.1 - 0.3 * 0.8) * inverse];
        let mean = weights[0] * -0.5 + weights[1] * 1.5;
        let variance = 1.0 - weights[0] * 0.8 - weights[1] * -0.1;
        let x = x.column(1);
        let error = 5.0 * (variance / n as f64).sqrt();
        assert!((x.mean().unwrap() - mean).abs() < error);
        assert!((x.var(1.0) / variance - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt());
    }

    #[test]
    fn with_nothing_given_the_draws_are_those_of_sample() {
        let stream = || Seed::new(8).stream("draws");
        let free = copula().sample(50, &mut stream());
        let given = copula().conditional_sample(&[], 50, &mut stream()).unwrap();
        assert_eq!(free, given);
    }

    #[test]
    fn with_everything_given_nothing_is_left_to_draw() {
        let given = [(0, 0.2), (1, 0.3), (2, 0.4)];
        let mut rng = Seed::new(8).stream("draws");
        let u = copula().conditional_sample(&given, 2, &mut rng).unwrap();
        assert_eq!(u, array![[0.2, 0.3, 0.4], [0.2, 0.3, 0.4]]);
    }

    #[test]
    fn extreme_conditions_stay_inside_the_unit_interval() {
        let r = array![[1.0, 0.999_999], [0.999_999, 1.0]];
        let copula = GaussianCopula::from_correlation(r.view()).unwrap();
        let mut rng = Seed::new(2).stream("draws");
        for given in [f64::from_bits(1), 1.0 - f64::EPSILON / 2.0] {
            let u = copula
                .conditional_sample(&[(0, given)], 20, &mut rng)
                .unwrap();
            assert!(u.iter().all(|&u| u > 0.0 && u < 1.0));
        }
    }

    #[test]
    fn values_that_contradict_a_degenerate_factor_do_not_give_nan() {
        let factor = array![[1.0, 0.0, 0.0], [1.0, 1e-300, 0.0], [0.0, 1.0, 1e-300]];
        let copula = GaussianCopula::from_factor(factor.view()).unwrap();
        let mut rng = Seed::new(2).stream("draws");
        let given = [(0, 1e-300), (1, 0.9)];
        let u = copula.conditional_sample(&given, 5, &mut rng).unwrap();
        assert!(u.iter().all(|&u| u > 0.0 && u < 1.0));
    }

    #[test]
    fn coordinates_that_do_not_exist_or_repeat_are_refused() {
        let mut rng = Seed::new(2).stream("draws");
        let mut call = |given: &[(usize, f64)]| copula().conditional_sample(given, 1, &mut rng);
        let (coordinate, dimension) = (3, 3);
        assert_eq!(
            call(&[(3, 0.5)]).unwrap_err(),
            Error::Coordinate {
                coordinate,
                dimension
            }
        );
        assert!(matches!(
            call(&[(1, 0.5), (1, 0.6)]),
            Err(Error::Coordinate { .. })
        ));
        assert!(matches!(
            call(&[(1, 0.0)]),
            Err(Error::Score { coordinate: 1, .. })
        ));
    }
}
