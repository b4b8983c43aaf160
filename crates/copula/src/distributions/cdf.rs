//! The distribution function of the Gaussian copula, by quasi Monte Carlo.

use crate::Error;
use crate::distributions::bivariate::bivariate_cdf;
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::marginal::Marginal;
use crate::distributions::normal::clamped_quantile;
use crate::distributions::reordered::reordered;
use crate::distributions::students_t::mixing;
use crate::distributions::univariate::Univariate;
use bochner_numerics::{ArgumentError, argument, normal};
use ndarray::{Array2, ArrayView1};
use rand::{Rng, RngCore};
use serde::{Deserialize, Serialize};

/// The lattice by which a distribution function is integrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Lattice {
    /// The number of points. The error falls faster than its inverse.
    pub points: usize,
    /// The number of random shifts of the lattice, at least 2; their spread gives the error estimate.
    pub shifts: usize,
}

impl Default for Lattice {
    /// 2000 points, 12 shifts: an error of about 1e-5 in three to ten dimensions.
    fn default() -> Self {
        Self {
            points: 2000,
            shifts: 12,
        }
    }
}

bochner_numerics::checked_when_read!(Lattice, check);

impl Lattice {
    fn check(self) -> Result<(), ArgumentError> {
        argument::at_least_one("points", self.points)?;
        argument::in_range(self.shifts > 1, "shifts", self.shifts as f64, "at least 2")
    }
}

/// An estimated probability and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability {
    /// The estimate, without bias.
    pub value: f64,
    /// Three standard errors of the mean over the shifts.
    pub error: f64,
}

impl GaussianCopula {
    /// The distribution function, $C(u) = P(U_1 \le u_1, \dots, U_M \le u_M)$.
    ///
    /// $$C(u) = \int_{[0, 1]^{M-1}} \prod_m e_m(w) \\, dw, \qquad
    ///   e_m = \Phi\Big(\big(b_m - \textstyle\sum_{k<m} \hat L_{mk} y_k\big) / \hat L_{mm}\Big),
    ///   \quad y_k = \Phi^{-1}(w_k e_k)$$
    ///
    /// *where* $b = \Phi^{-1}(u)$ with the coordinates in ascending order of *u*, so that the
    /// factors that vary most come last. The points *w* are a Richtmyer lattice, multiples of the
    /// square roots of primes, folded by the tent map and shifted at random. The mean over the
    /// points is weighted with a parabola, `k (n + 1 - k)`, which removes the error of cutting an
    /// almost periodic sequence off.
    ///
    /// # Shapes
    /// `u: [M]`, from 0 to 1 inclusive.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of coordinates, one outside 0 to 1, no points or fewer than
    /// two shifts.
    ///
    /// # Numerics
    /// `points * shifts` products of `M` factors. In one and two dimensions and at independence the probability is
    /// exact within rounding, for small probabilities too; in two it is the integral of Drezner and Wesolowsky.
    ///
    /// # Reference
    /// Genz, *Numerical computation of multivariate normal probabilities*, Journal of
    /// Computational and Graphical Statistics 1992; Genz and Bretz, *Computation of Multivariate
    /// Normal and t Probabilities*, 2009, section 4; for two dimensions Genz, *Numerical computation of rectangular
    /// bivariate and trivariate normal and t probabilities*, Statistics and Computing 2004.
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::ndarray::{array, aview1};
    /// use bochner_copula::{GaussianCopula, Lattice};
    /// use bochner_numerics::Seed;
    ///
    /// let r = array![[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]];
    /// let copula = GaussianCopula::from_correlation(r.view())?;
    /// let mut rng = Seed::new(1).stream("shifts");
    /// let c = copula.cdf(aview1(&[0.5, 0.5, 0.5]), Lattice::default(), &mut rng)?;
    /// assert!((c.value - 0.25).abs() <= c.error && c.error < 1e-4);
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
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
        lattice.check()?;
        if let [h, k] = *bounds {
            let value = bivariate_cdf(h, k, self.correlation()[[0, 1]]);
            return Ok(Probability {
                value,
                error: 1e-13 * value,
            });
        }
        Ok(Integrand::new(self, bounds, None).mean(lattice, rng))
    }

    /// The probability that every coordinate of a t distribution of these correlations is below its bound.
    pub(crate) fn students_t_cdf(
        &self,
        bounds: &[f64],
        freedom: f64,
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        lattice.check()?;
        Ok(Integrand::new(self, bounds, Some(freedom)).mean(lattice, rng))
    }
}

/// The normal scores of uniform scores from 0 to 1 inclusive.
pub(crate) fn bounds(u: ArrayView1<f64>, dimension: usize) -> Result<Vec<f64>, Error> {
    argument::shape("u", &[dimension], u.shape())?;
    let outside = u.indexed_iter().find(|&(_, u)| !(0.0..=1.0).contains(u));
    if let Some((coordinate, &got)) = outside {
        let name = format!("coordinate {coordinate} of u");
        return Err(argument::out_of_range(name, got, "from 0 to 1").into());
    }
    Ok(u.iter().map(|&u| normal::quantile(u)).collect())
}

/// Genz's product of one-dimensional probabilities.
struct Integrand {
    factor: Array2<f64>,
    bounds: Vec<f64>,
    /// The distribution of the square by whose root the bounds are multiplied, for Student's t.
    mixing: Option<Univariate>,
}

impl Integrand {
    fn new(copula: &GaussianCopula, bounds: &[f64], freedom: Option<f64>) -> Self {
        let mut order: Vec<usize> = (0..bounds.len()).collect();
        order.sort_by(|&i, &j| bounds[i].total_cmp(&bounds[j]));
        Self {
            factor: reordered(copula.factor(), &order),
            bounds: order.iter().map(|&m| bounds[m]).collect(),
            mixing: freedom.map(mixing),
        }
    }

    fn mean(&self, lattice: Lattice, rng: &mut (impl RngCore + ?Sized)) -> Probability {
        let dimensions = self.bounds.len() - 1 + usize::from(self.mixing.is_some());
        let generator = richtmyer(dimensions);
        let mut mean = || self.shifted_mean(&generator, lattice.points, rng);
        let means: Vec<f64> = (0..lattice.shifts).map(|_| mean()).collect();
        summary(&means)
    }

    fn shifted_mean(
        &self,
        generator: &[f64],
        points: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> f64 {
        let shift: Vec<f64> = generator.iter().map(|_| rng.r#gen()).collect();
        let mut w = vec![0.0; generator.len()];
        let mut y = vec![0.0; generator.len()];
        let (mut sum, mut total) = (0.0, 0.0);
        for k in 1..=points {
            for ((w, z), s) in w.iter_mut().zip(generator).zip(&shift) {
                *w = tent((k as f64 * z + s).fract());
            }
            let weight = (k * (points + 1 - k)) as f64;
            sum += weight * self.at(&w, &mut y);
            total += weight;
        }
        sum / total
    }

    /// The integrand at a point of the unit cube; `y` is working space.
    fn at(&self, w: &[f64], y: &mut [f64]) -> f64 {
        let (scale, w) = match &self.mixing {
            Some(mixing) => (mixing.at_score(clamped_quantile(w[0])).sqrt(), &w[1..]),
            None => (1.0, w),
        };
        let mut product = 1.0;
        for (m, (row, bound)) in self.factor.rows().into_iter().zip(&self.bounds).enumerate() {
            let known: f64 = row.iter().zip(&y[..m]).map(|(l, y)| l * y).sum();
            let e = normal::cdf((bound * scale - known) / row[m]);
            product *= e;
            if product == 0.0 || m == w.len() {
                break;
            }
            y[m] = clamped_quantile(w[m] * e);
        }
        product
    }
}

/// Fractional parts of the square roots of the first primes.
fn richtmyer(dimensions: usize) -> Vec<f64> {
    let prime = |n: &u32| {
        (2..)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let primes = (2u32..).filter(prime).take(dimensions);
    primes.map(|p| f64::from(p).sqrt().fract()).collect()
}

/// Makes the integrand periodic, which is what a lattice integrates well.
fn tent(x: f64) -> f64 {
    (2.0 * x - 1.0).abs()
}

fn summary(means: &[f64]) -> Probability {
    let n = means.len() as f64;
    let value = means.iter().sum::<f64>() / n;
    let squares: f64 = means.iter().map(|x| (x - value).powi(2)).sum();
    Probability {
        value,
        error: 3.0 * (squares / (n * (n - 1.0))).sqrt(),
    }
}
