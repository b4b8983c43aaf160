//! Fits of the Gaussian copula to observations, whatever their marginals.

use crate::Error;
use crate::gaussian::GaussianCopula;
use crate::measures::correlation_of_kendall;
use crate::nearest::nearest_correlation;
use crate::ranks::{kendall_tau_b, pseudo_observations};
use bochner_numerics::{argument, normal};
use ndarray::{Array2, ArrayView2, Axis};

/// The smallest eigenvalue of a fitted correlation matrix.
const SMALLEST: f64 = 1e-6;

impl GaussianCopula {
    /// Fits a copula by inversion of Kendall's tau.
    ///
    /// $$R_{jk} = \sin\big(\tfrac\pi2 \tau_{b,jk}\big)$$
    ///
    /// The pairs need not agree with one another, so that the result is the nearest correlation matrix
    /// with eigenvalues of at least 1e-6. The fit is robust: a few outliers hardly matter.
    ///
    /// # Shapes
    /// `x: [n, M]`, one observation a row, with any continuous marginals.
    ///
    /// # Errors
    /// [`Error::Argument`] for observations without coordinates or that are not finite,
    /// [`Error::TooFew`] below two observations, [`Error::Constant`], [`Error::NoConvergence`].
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::GaussianCopula;
    /// use bochner_copula::ndarray::array;
    /// use bochner_numerics::Seed;
    ///
    /// let copula = GaussianCopula::from_correlation(array![[1.0, 0.6], [0.6, 1.0]].view())?;
    /// let x = copula.sample(2000, &mut Seed::new(1).stream("scores")).mapv(|u| u.powi(7));
    /// let fitted = GaussianCopula::fit_kendall(x.view())?;
    /// assert!((fitted.correlation()[[0, 1]] - 0.6).abs() < 0.05);
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn fit_kendall(x: ArrayView2<f64>) -> Result<Self, Error> {
        check_observations(x)?;
        let mut correlation = Array2::eye(x.ncols());
        for j in 0..x.ncols() {
            for k in 0..j {
                let tau = kendall_tau_b(x.column(j), x.column(k))?;
                let r = correlation_of_kendall(tau)?;
                correlation[[j, k]] = r;
                correlation[[k, j]] = r;
            }
        }
        projected(correlation)
    }

    /// Fits a copula by normal scores: the correlations of the normal quantiles of the ranks.
    ///
    /// $$R = \mathrm{Corr}(x), \qquad x_{im} = \Phi^{-1}(u_{im})$$
    ///
    /// *where* `u` are the [`pseudo_observations`]. The fit is asymptotically as good as if the
    /// marginals were known. If the observations are so dependent, or so few, that an eigenvalue is
    /// below 1e-6, the result is the nearest correlation matrix without such an eigenvalue.
    ///
    /// # Shapes
    /// `x: [n, M]`, one observation a row.
    ///
    /// # Errors
    /// The errors of [`fit_kendall`](Self::fit_kendall).
    ///
    /// # Reference
    /// Klaassen and Wellner, *Efficient estimation in the bivariate normal copula model*,
    /// Bernoulli 1997.
    pub fn fit_normal_scores(x: ArrayView2<f64>) -> Result<Self, Error> {
        check_observations(x)?;
        let mut scores = pseudo_observations(x)?.mapv_into(normal::quantile);
        for mut column in scores.columns_mut() {
            let mean = column.mean().expect("at least two observations");
            column -= mean;
            let norm = column.dot(&column).sqrt();
            column /= norm;
        }
        let mut correlation = scores.t().dot(&scores);
        correlation.diag_mut().fill(1.0);
        projected(correlation)
    }
}

fn projected(correlation: Array2<f64>) -> Result<GaussianCopula, Error> {
    let nearest = nearest_correlation(correlation.view(), SMALLEST)?;
    GaussianCopula::from_correlation(nearest.view())
}

fn check_observations(x: ArrayView2<f64>) -> Result<(), Error> {
    argument::not_empty("x", x.shape())?;
    if x.nrows() < 2 {
        return Err(Error::TooFew { got: x.nrows() });
    }
    argument::finite("x", x.shape(), x)?;
    for (column, values) in x.axis_iter(Axis(1)).enumerate() {
        if values.iter().all(|v| *v == values[0]) {
            return Err(Error::Constant { column });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::array;

    type Fit = fn(ArrayView2<f64>) -> Result<GaussianCopula, Error>;

    const FITS: [Fit; 2] = [
        GaussianCopula::fit_kendall,
        GaussianCopula::fit_normal_scores,
    ];

    fn copula() -> GaussianCopula {
        let r = array![[1.0, 0.8, -0.4], [0.8, 1.0, 0.1], [-0.4, 0.1, 1.0]];
        GaussianCopula::from_correlation(r.view()).unwrap()
    }

    #[test]
    fn a_known_correlation_is_recovered() {
        let u = copula().sample(2000, &mut Seed::new(3).stream("scores"));
        for fit in FITS {
            let fitted = fit(u.view()).unwrap();
            for ((j, k), &r) in copula().correlation().indexed_iter() {
                // Five times the asymptotic standard error, (1 - r^2) / sqrt(n), and a margin
                // for Kendall's tau, which loses a little.
                let bound = 6.0 * (1.0 - r * r) / 2000_f64.sqrt();
                assert!((fitted.correlation()[[j, k]] - r).abs() <= bound + 1e-15);
            }
        }
    }

    #[test]
    fn monotone_transformations_change_nothing() {
        let u = copula().sample(200, &mut Seed::new(3).stream("scores"));
        let x = u.mapv(|u| (5.0 * u).exp());
        for fit in FITS {
            assert_eq!(fit(u.view()).unwrap(), fit(x.view()).unwrap());
        }
    }

    #[test]
    fn comonotone_and_few_observations_are_brought_inside() {
        let x = array![
            [1.0, 2.0, -3.0, 0.0],
            [2.0, 4.0, -9.0, 5.0],
            [3.0, 5.0, -10.0, 1.0]
        ];
        for fit in FITS {
            let r = fit(x.view()).unwrap();
            assert!(r.correlation()[[0, 1]] > 0.99 && r.correlation()[[0, 2]] < -0.99);
            let least = bochner_dense::symmetric_eigenvalues(r.correlation()).unwrap()[0];
            assert!((0.9e-6..1.1e-6).contains(&least), "{least:e}");
        }
    }

    #[test]
    fn ties_are_borne() {
        let u = copula().sample(2000, &mut Seed::new(3).stream("scores"));
        let x = u.mapv(|u| (20.0 * u).floor());
        for fit in FITS {
            assert!((fit(x.view()).unwrap().correlation()[[0, 1]] - 0.8).abs() < 0.06);
        }
    }

    #[test]
    fn what_shows_no_dependence_is_refused() {
        for fit in FITS {
            let got = |x: Array2<f64>| fit(x.view()).unwrap_err();
            assert_eq!(got(array![[1.0, 2.0]]), Error::TooFew { got: 1 });
            let constant = array![[1.0, 2.0], [0.0, 2.0]];
            assert_eq!(got(constant), Error::Constant { column: 1 });
            let infinite = array![[1.0, 2.0], [0.0, f64::INFINITY]];
            assert!(
                got(infinite)
                    .to_string()
                    .starts_with("`x` is inf at [1, 1]")
            );
            let none = got(Array2::zeros((3, 0))).to_string();
            assert!(none.starts_with("`x` has shape [3, 0] and so no elements"));
        }
    }
}
