//! A joint distribution: a Gaussian copula over any marginals.

use crate::Error;
use crate::density::log_density_at_scores;
use crate::distributions::cdf::{Lattice, Probability};
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::marginal::{Marginal, normal_score};
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rand::RngCore;

/// The joint distribution with the given marginals and the dependence of a Gaussian copula.
///
/// $$\log p(z) = \log c\big(F_1(z_1), \dots, F_M(z_M)\big) + \sum_m \log p_m(z_m)$$
///
/// *where* $F_m$ and $p_m$ are the distribution function and the density of marginal `m`; the
/// copula's density without those of the marginals is no density of *z*.
///
/// # Numerics
/// The scores $x_m = \Phi^{-1}(F_m(z_m))$ come from the smaller of the two tails, so that they
/// keep their digits as far out as the marginal's functions do; where those underflow, beyond
/// 38.5, the scores are clamped. A finite *z* never gives NaN. The precision is that of the
/// marginal's functions: for the normal distribution of statrs 0.18 a relative 1e-10.
/// [`normal_joint_log_density`](crate::heads::normal_joint_log_density) does not need them.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::statrs::distribution::{Gamma, Normal};
/// use bochner_copula::{GaussianCopula, Joint, Marginal};
/// use bochner_numerics::Seed;
///
/// let copula = GaussianCopula::from_correlation(array![[1.0, 0.7], [0.7, 1.0]].view())?;
/// let marginals: Vec<Box<dyn Marginal>> = vec![
///     Box::new(Normal::new(1.0, 2.0).unwrap()),
///     Box::new(Gamma::new(2.0, 0.5).unwrap()),
/// ];
/// let joint = Joint::new(copula, marginals)?;
///
/// let mut rng = Seed::new(1).stream("draws");
/// let z = joint.sample(1000, &mut rng)?;
/// assert!((z.column(1).mean().unwrap() - 4.0).abs() < 0.5);
/// assert!(joint.log_density(z.view())?.iter().all(|p| p.is_finite()));
///
/// // One coordinate known: a large first makes a large second likely.
/// let z = joint.conditional_sample(&[(0, 7.0)], 1000, &mut rng)?;
/// assert!(z.column(1).mean().unwrap() > 7.0);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Joint<D> {
    copula: GaussianCopula,
    marginals: Vec<D>,
}

impl<D: Marginal> Joint<D> {
    /// Puts a copula and one marginal for each of its coordinates together.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there are as many marginals as coordinates.
    pub fn new(copula: GaussianCopula, marginals: Vec<D>) -> Result<Self, Error> {
        argument::shape("marginals", &[copula.dimension()], &[marginals.len()])?;
        Ok(Self { copula, marginals })
    }

    /// The copula.
    pub fn copula(&self) -> &GaussianCopula {
        &self.copula
    }

    /// The marginals, one for each coordinate.
    pub fn marginals(&self) -> &[D] {
        &self.marginals
    }

    /// The logarithm of the density.
    ///
    /// # Shapes
    /// `z: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of coordinates or points that are not finite,
    /// [`Error::Marginal`] if a marginal's own function is NaN.
    ///
    /// # Numerics
    /// The value is minus infinity if any coordinate is outside its marginal's support, even if another
    /// is at a pole of its density.
    pub fn log_density(&self, z: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        let scores = self.scores(z)?;
        let mut value = log_density_at_scores(self.copula.factor(), scores.view());
        for (value, z) in value.iter_mut().zip(z.rows()) {
            let marginals = self.log_marginals(z)?;
            let impossible = value.min(marginals) == f64::NEG_INFINITY;
            *value = if impossible {
                f64::NEG_INFINITY
            } else {
                *value + marginals
            };
        }
        Ok(value)
    }

    /// The density, `exp` of [`log_density`](Self::log_density).
    ///
    /// # Shapes
    /// `z: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density).
    pub fn density(&self, z: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.log_density(z)?.mapv_into(f64::exp))
    }

    /// The distribution function, $P(Z_1 \le z_1, \dots, Z_M \le z_M)$.
    ///
    /// # Shapes
    /// `z: [M]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density), and [`Error::Argument`] for a lattice of no points
    /// or fewer than two shifts.
    ///
    /// # Numerics
    /// The accuracy of [`GaussianCopula::cdf`].
    pub fn cdf(
        &self,
        z: ArrayView1<f64>,
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        let scores = self.scores(z.insert_axis(Axis(0)))?;
        let bounds = scores.as_slice().expect("made in standard layout");
        self.copula.cdf_at_scores(bounds, lattice, rng)
    }

    /// The normal scores of points `[n, M]`.
    fn scores(&self, z: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
        argument::shape("z", &[z.nrows(), self.marginals.len()], z.shape())?;
        argument::finite("z", z.shape(), z)?;
        let mut scores = z.to_owned();
        for mut row in scores.rows_mut() {
            for (m, (x, marginal)) in row.iter_mut().zip(&self.marginals).enumerate() {
                *x = normal_score(marginal, m, *x)?;
            }
        }
        Ok(scores.as_standard_layout().into_owned())
    }

    /// `sum_m log p_m(z_m)`, minus infinity as soon as one term is.
    fn log_marginals(&self, z: ArrayView1<f64>) -> Result<f64, Error> {
        let mut sum = 0.0;
        let mut supported = true;
        for (coordinate, (&z, marginal)) in z.iter().zip(&self.marginals).enumerate() {
            let value = marginal.log_density(z);
            if value.is_nan() {
                return Err(Error::Marginal {
                    coordinate,
                    function: "logarithm of the density",
                    at: z,
                    got: value,
                });
            }
            supported &= value != f64::NEG_INFINITY;
            sum += value;
        }
        Ok(if supported { sum } else { f64::NEG_INFINITY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::{array, aview1};
    use statrs::distribution::{Continuous, Exp, Gamma, Normal};
    use std::f64::consts::TAU;

    fn normals(r: f64) -> Joint<Normal> {
        let marginals = [(1.0, 2.0), (-3.0, 0.5)].map(|(m, s)| Normal::new(m, s).unwrap());
        Joint::new(GaussianCopula::of_pair(r), marginals.into()).unwrap()
    }

    /// The test fails if the densities of the marginals or the copula's are left out.
    #[test]
    fn normal_marginals_give_the_multivariate_normal_distribution() {
        let r = -0.6_f64;
        for z in [[0.3, -2.7], [9.0, -6.0], [-30.0, 1.0], [25.0, 3.0]] {
            let (x, y) = ((z[0] - 1.0) / 2.0, (z[1] + 3.0) / 0.5);
            let rest = 1.0 - r * r;
            let square = (x * x - 2.0 * r * x * y + y * y) / rest;
            // Standard deviations 2 and 1/2: their product is one.
            let want = -0.5 * square - TAU.ln() - 0.5 * rest.ln();
            let got = normals(r).log_density(array![z].view()).unwrap()[0];
            assert!((got / want - 1.0).abs() < 1e-11, "{z:?}: {got} {want}");
        }
    }

    #[test]
    fn independence_leaves_the_product_of_the_marginals() {
        let marginals = vec![Gamma::new(2.0, 1.0).unwrap(), Gamma::new(0.5, 3.0).unwrap()];
        let joint = Joint::new(GaussianCopula::of_pair(0.0), marginals.clone()).unwrap();
        let got = joint.density(array![[1.5, 0.2]].view()).unwrap()[0];
        let want = marginals[0].pdf(1.5) * marginals[1].pdf(0.2);
        assert!((got / want - 1.0).abs() < 1e-13);
    }

    #[test]
    fn no_finite_point_gives_nan() {
        let marginals: Vec<Box<dyn Marginal>> = vec![
            Box::new(Exp::new(1.0).unwrap()),
            Box::new(Gamma::new(0.5, 1.0).unwrap()),
        ];
        let joint = Joint::new(GaussianCopula::of_pair(0.999), marginals).unwrap();
        let values = [-1e300, -1.0, 0.0, 1e-300, 1.0, 50.0, 800.0, 1e300];
        for a in values {
            for b in values {
                let got = joint.log_density(array![[a, b]].view()).unwrap()[0];
                assert!(!got.is_nan(), "{a} {b}");
                if a < 0.0 || b < 0.0 {
                    assert_eq!(got, f64::NEG_INFINITY);
                }
            }
        }
        for z in [-1e308, -40.0, 40.0, 1e308] {
            let got = normals(0.9).log_density(array![[z, -z]].view()).unwrap()[0];
            assert!(!got.is_nan() && got < 0.0);
        }
    }

    #[test]
    fn the_distribution_function_is_the_copulas_at_the_marginals() {
        let mut rng = Seed::new(1).stream("shifts");
        let z = aview1(&[1.0, -3.0]);
        let got = normals(0.5).cdf(z, Lattice::default(), &mut rng).unwrap();
        assert!((got.value - 1.0 / 3.0).abs() <= got.error && got.error < 1e-5);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let few = Joint::new(
            GaussianCopula::of_pair(0.1),
            vec![Normal::new(0.0, 1.0).unwrap()],
        );
        let said = few.unwrap_err().to_string();
        assert!(
            said.starts_with("`marginals` has length 1, but must have length 2"),
            "{said}"
        );
        let call = |z: Array2<f64>| normals(0.1).log_density(z.view()).unwrap_err().to_string();
        assert!(call(array![[1.0]]).starts_with("`z` has shape [1, 1], but must have [1, 2]"));
        assert!(call(array![[1.0, f64::NAN]]).starts_with("`z` is NaN at [0, 1]"));
    }
}
