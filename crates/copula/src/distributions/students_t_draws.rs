//! Draws from Student's t copula, its distribution function and its fit.

use crate::Error;
use crate::distributions::cdf::{Lattice, Probability, bounds};
use crate::distributions::fit::{continuous, ranked};
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::marginal::{LogTails, Marginal};
use crate::distributions::normal::inside;
use crate::distributions::ranks::Ranked;
use crate::distributions::students_t::{
    StudentsTCopula, by_columns, mixing, standard_t, to_normal_scores,
};
use crate::distributions::univariate::maximum;
use bochner_numerics::{argument, fill_standard_normal, normal};
use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::RngCore;

impl StudentsTCopula {
    /// Independent draws of uniform scores.
    ///
    /// $$u_m = T_\nu(x_m / \sqrt v), \qquad x = \hat L \epsilon, \quad v \sim \mathrm{Gamma}(\nu/2, \nu/2)$$
    ///
    /// # Shapes
    /// `[n, M]`, strictly between 0 and 1.
    pub fn sample(&self, n: usize, rng: &mut (impl RngCore + ?Sized)) -> Array2<f64> {
        let y = self.draws(&[], n, rng).expect("nothing is given");
        self.to_uniform(y)
    }

    /// Independent draws with some coordinates held at given uniform scores.
    ///
    /// Given `g` coordinates, the others have a t distribution with `nu + g` degrees of freedom, whose scale grows with
    /// the distance of what is given.
    ///
    /// # Shapes
    /// `given`: pairs of a coordinate below `M` and its uniform score, in any order, to `[n, M]`;
    /// the coordinates given hold their scores.
    ///
    /// # Errors
    /// The errors of [`GaussianCopula::conditional_sample`].
    pub fn conditional_sample(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        let score = |&(coordinate, u): &(usize, f64)| {
            let name = format!("coordinate {coordinate} of given");
            argument::in_range(u > 0.0 && u < 1.0, name, u, "strictly between 0 and 1")?;
            Ok((coordinate, normal::quantile(u)))
        };
        let scores: Vec<_> = given.iter().map(score).collect::<Result<_, Error>>()?;
        let mut u = self.to_uniform(self.draws(&scores, n, rng)?);
        for &(coordinate, given) in given {
            u.column_mut(coordinate).fill(given);
        }
        Ok(u)
    }

    /// The distribution function, $C(u) = P(U_1 \le u_1, \dots, U_M \le u_M)$.
    ///
    /// # Shapes
    /// `u: [M]`, from 0 to 1 inclusive.
    ///
    /// # Errors
    /// The errors of [`GaussianCopula::cdf`].
    ///
    /// # Numerics
    /// The integral of [`GaussianCopula::cdf`] with one more dimension, that of *v*; in two dimensions too.
    ///
    /// # Reference
    /// Genz and Bretz, *Computation of Multivariate Normal and t Probabilities*, 2009, section 4.3.
    pub fn cdf(
        &self,
        u: ArrayView1<f64>,
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        let bounds = bounds(u, self.dimension())?;
        self.cdf_at_scores(&bounds, lattice, rng)
    }

    /// The probability that every normal score is below its bound.
    pub(crate) fn cdf_at_scores(
        &self,
        bounds: &[f64],
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        let t = standard_t(self.freedom());
        let of = |x: &f64| if x.is_finite() { t.at_score(*x) } else { *x };
        let bounds: Vec<f64> = bounds.iter().map(of).collect();
        self.normal()
            .students_t_cdf(&bounds, self.freedom(), lattice, rng)
    }

    /// Draws of normal scores.
    pub(crate) fn sample_scores(&self, n: usize, rng: &mut (impl RngCore + ?Sized)) -> Array2<f64> {
        self.conditional_scores(&[], n, rng)
            .expect("nothing is given that could be refused")
    }

    /// Draws of normal scores with some given.
    pub(crate) fn conditional_scores(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        let mut scores = to_normal_scores(self.draws(given, n, rng)?, self.freedom());
        for &(coordinate, x) in given {
            scores.column_mut(coordinate).fill(x);
        }
        Ok(scores)
    }

    /// Draws of scores of the t distribution, with some normal scores given.
    fn draws(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        let t = standard_t(self.freedom());
        let known: Vec<_> = given.iter().map(|&(m, x)| (m, t.at_score(x))).collect();
        let (draws, innovations) = self.normal().conditional_draws(&known, n, rng)?;
        let distance: f64 = innovations.iter().map(|e| e * e).sum();
        let freedom = self.freedom() + given.len() as f64;
        let spread = ((self.freedom() + distance) / freedom).sqrt();
        let mut squares = vec![0.0; n];
        fill_standard_normal(rng, &mut squares);
        mixing(freedom).at_scores(&mut squares);
        let scales = squares.iter().map(|v| spread / v.sqrt()).collect();
        Ok(draws.scaled(scales).rows(|_| ()))
    }

    /// The uniform scores of scores of the t distribution.
    fn to_uniform(&self, y: Array2<f64>) -> Array2<f64> {
        let t = standard_t(self.freedom());
        by_columns(y, |y| {
            for y in y {
                let LogTails { lower, upper } = t.log_tails(*y);
                *y = inside(if lower <= upper {
                    lower.exp()
                } else {
                    -upper.exp_m1()
                });
            }
        })
    }

    /// Fits a copula to observations: the correlations by Kendall's tau, the degrees of freedom by maximum likelihood.
    ///
    /// The likelihood is that of the [`pseudo_observations`](crate::pseudo_observations), and the degrees of freedom
    /// are searched for from 0.5 to 1000; at the upper end the copula is all but Gaussian.
    ///
    /// # Shapes
    /// `x: [n, M]`, one observation a row.
    ///
    /// # Errors
    /// The errors of [`GaussianCopula::fit_normal_scores`].
    ///
    /// # Reference
    /// Demarta and McNeil, *The t copula and related copulas*, International Statistical Review 2005, section 4.2.
    pub fn fit(x: ArrayView2<f64>) -> Result<Self, Error> {
        let columns = ranked(x)?;
        continuous(&columns)?;
        let normal = GaussianCopula::of_kendall(&columns)?.copula;
        Ok(Self::with_freedom_of(normal, &columns))
    }

    /// The copula with these correlations whose degrees of freedom are the most likely.
    pub(crate) fn with_freedom_of(normal: GaussianCopula, columns: &[Ranked]) -> Self {
        let (n, dimension) = (columns[0].len(), columns.len());
        // Mean ranks are multiples of one half, so that all columns share their scores.
        let half_ranks = (2..=2 * n).map(|k| normal::quantile(0.5 * k as f64 / (n + 1) as f64));
        let scores: Vec<f64> = half_ranks.collect();
        let mut places = Array2::zeros((n, dimension));
        for (m, column) in columns.iter().enumerate() {
            let place = |u: f64| (2.0 * u * (n + 1) as f64).round() as usize - 2;
            column.uniform_scores(|i, u| places[[i, m]] = place(u));
        }
        let at = |ln_freedom: f64| Self::of_parts(normal.clone(), ln_freedom.exp());
        let likelihood = |ln_freedom: f64| {
            let copula = at(ln_freedom);
            let mut y = scores.clone();
            standard_t(copula.freedom()).at_scores(&mut y);
            copula
                .log_density_at(places.mapv(|place: usize| y[place]))
                .sum()
        };
        at(maximum((0.5_f64.ln(), 1e3_f64.ln()), likelihood))
    }
}
