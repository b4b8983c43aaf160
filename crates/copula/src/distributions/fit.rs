//! Fits of the Gaussian copula to observations, whatever their marginals.

use crate::Error;
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::measures::correlation_of_kendall;
use crate::distributions::nearest::nearest_correlation;
use crate::distributions::ranks::{Ranked, Scratch};
use bochner_dense::symmetric_eigenvalues;
use bochner_numerics::{argument, normal, parallel};
use ndarray::{Array2, ArrayView2};

/// The smallest eigenvalue of a fitted correlation matrix.
pub(crate) const SMALLEST: f64 = 1e-6;

/// The number of pairs that share memory and a thread.
const PAIRS: usize = 4;

/// A copula fitted to observations, and whether the estimate had to be changed to become one.
///
/// # Numerics
/// An estimate with an eigenvalue below 1e-6 is no usable correlation matrix, and `copula` holds the
/// nearest matrix without one. That matrix is almost singular: along the raised eigenvectors the
/// density falls like a normal density with a standard deviation of 1/1000, so that observations to
/// which these directions were not fitted exactly have log densities of minus many thousands. Its
/// correlations and draws remain meaningful, its densities do not. For densities raise the
/// eigenvalues further by [`nearest_correlation`], leave out columns that others determine, or,
/// after [`fit_kendall`](GaussianCopula::fit_kendall), try
/// [`fit_normal_scores`](GaussianCopula::fit_normal_scores), whose estimates are never indefinite.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::{GaussianCopula, nearest_correlation};
///
/// // The third column is the sum of the others: there are three variables, but two directions.
/// let x = array![[1.0, 0.0, 1.0], [2.0, 5.0, 7.0], [3.0, 1.0, 4.0], [4.0, 2.5, 6.5]];
/// let fit = GaussianCopula::fit_kendall(x.view())?;
/// let mut copula = fit.copula;
/// if fit.smallest_eigenvalue < 1e-3 {
///     let raised = nearest_correlation(copula.correlation(), 0.05)?;
///     copula = GaussianCopula::from_correlation(raised.view())?;
/// }
/// # Ok::<(), bochner_copula::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CopulaFit {
    /// The copula.
    pub copula: GaussianCopula,
    /// The smallest eigenvalue of the estimate as the observations gave it. Below 1e-6, the copula is
    /// that of the nearest correlation matrix instead; below 0, the estimates of the pairs contradict
    /// one another.
    pub smallest_eigenvalue: f64,
}

impl GaussianCopula {
    /// Fits a copula by inversion of Kendall's tau.
    ///
    /// $$R_{jk} = \sin\big(\tfrac\pi2 \tau_{b,jk}\big)$$
    ///
    /// The pairs need not agree with one another, so that the result is the nearest correlation matrix
    /// with eigenvalues of at least 1e-6; [`CopulaFit`] tells whether it differs from the estimate, and what
    /// to do then. The fit is robust: a few outliers hardly matter.
    ///
    /// # Shapes
    /// `x: [n, M]`, one observation a row, with any marginals. Ties are corrected for as tau-b does, so that discrete
    /// columns are fitted too, with a correlation that is a little too small.
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
    /// let fitted = GaussianCopula::fit_kendall(x.view())?.copula;
    /// assert!((fitted.correlation()[[0, 1]] - 0.6).abs() < 0.05);
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn fit_kendall(x: ArrayView2<f64>) -> Result<CopulaFit, Error> {
        Self::of_kendall(&ranked(x)?)
    }

    /// The fit by Kendall's tau to columns that are sorted already.
    pub(crate) fn of_kendall(columns: &[Ranked]) -> Result<CopulaFit, Error> {
        let pairs: Vec<_> = (0..columns.len())
            .flat_map(|j| (0..j).map(move |k| (j, k)))
            .collect();
        let blocks = parallel::map(pairs.len().div_ceil(PAIRS), |block| {
            let mut scratch = Scratch::default();
            let pairs = &pairs[block * PAIRS..pairs.len().min((block + 1) * PAIRS)];
            let tau = |&(j, k): &(usize, usize)| columns[j].tau_b(&columns[k], &mut scratch);
            pairs.iter().map(tau).collect::<Vec<_>>()
        });
        let mut correlation = Array2::eye(columns.len());
        for (&(j, k), tau) in pairs.iter().zip(blocks.into_iter().flatten()) {
            let r = correlation_of_kendall(tau)?;
            correlation[[j, k]] = r;
            correlation[[k, j]] = r;
        }
        projected(correlation)
    }

    /// Fits a copula by normal scores: the correlations of the normal quantiles of the ranks.
    ///
    /// $$R = \mathrm{Corr}(x), \qquad x_{im} = \Phi^{-1}(u_{im})$$
    ///
    /// *where* `u` are the [`pseudo_observations`](crate::pseudo_observations). The fit is asymptotically as good as if the
    /// marginals were known. If the observations are so dependent, or so few, that an eigenvalue is
    /// below 1e-6, the result is the nearest correlation matrix without such an eigenvalue
    /// ([`CopulaFit`]).
    ///
    /// # Shapes
    /// `x: [n, M]`, one observation a row.
    ///
    /// # Errors
    /// The errors of [`fit_kendall`](Self::fit_kendall), and [`Error::Discrete`] for a column with many ties.
    ///
    /// # Reference
    /// Klaassen and Wellner, *Efficient estimation in the bivariate normal copula model*,
    /// Bernoulli 1997.
    pub fn fit_normal_scores(x: ArrayView2<f64>) -> Result<CopulaFit, Error> {
        let columns = ranked(x)?;
        continuous(&columns)?;
        Self::of_scores(normal_scores(&columns))
    }

    /// The fit by the correlations of normal scores.
    pub(crate) fn of_scores(mut scores: Array2<f64>) -> Result<CopulaFit, Error> {
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

pub(crate) fn projected(correlation: Array2<f64>) -> Result<CopulaFit, Error> {
    let nearest = nearest_correlation(correlation.view(), SMALLEST)?;
    Ok(CopulaFit {
        copula: GaussianCopula::from_correlation(nearest.view())?,
        smallest_eigenvalue: symmetric_eigenvalues(correlation.view())?[0],
    })
}

/// The columns of observations, sorted; refuses those that show no dependence.
pub(crate) fn ranked(x: ArrayView2<f64>) -> Result<Vec<Ranked>, Error> {
    argument::not_empty("x", x.shape())?;
    if x.nrows() < 2 {
        return Err(Error::TooFew { got: x.nrows() });
    }
    argument::finite("x", x.shape(), x)?;
    let columns = parallel::map(x.ncols(), |column| Ranked::new(x.column(column)));
    match columns.iter().position(|ranked| ranked.distinct == 1) {
        Some(column) => Err(Error::Constant { column }),
        None => Ok(columns),
    }
}

/// Refuses discrete columns.
pub(crate) fn continuous(columns: &[Ranked]) -> Result<(), Error> {
    match columns.iter().position(Ranked::is_discrete) {
        Some(column) => Err(Error::Discrete {
            column,
            distinct: columns[column].distinct,
            rows: columns[column].len(),
        }),
        None => Ok(()),
    }
}

/// The normal quantiles of the ranks, `[n, M]`.
pub(crate) fn normal_scores(columns: &[Ranked]) -> Array2<f64> {
    let mut scores = Array2::zeros((columns[0].len(), columns.len()));
    for (column, mut scores) in columns.iter().zip(scores.columns_mut()) {
        column.uniform_scores(|i, u| scores[i] = normal::quantile(u));
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::array;

    type Fit = fn(ArrayView2<f64>) -> Result<CopulaFit, Error>;

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
            let fitted = fit(u.view()).unwrap().copula;
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
            let CopulaFit {
                copula: r,
                smallest_eigenvalue,
            } = fit(x.view()).unwrap();
            assert!(smallest_eigenvalue < 1e-6, "{smallest_eigenvalue:e}");
            assert!(r.correlation()[[0, 1]] > 0.99 && r.correlation()[[0, 2]] < -0.99);
            let least = bochner_dense::symmetric_eigenvalues(r.correlation()).unwrap()[0];
            assert!((0.9e-6..1.1e-6).contains(&least), "{least:e}");
        }
    }

    /// Three pairwise correlations of -0.6, which no joint distribution has.
    #[test]
    fn how_far_an_estimate_is_from_a_correlation_matrix_is_told() {
        let opposed = array![[1.0, -0.6, -0.6], [-0.6, 1.0, -0.6], [-0.6, -0.6, 1.0]];
        let fit = projected(opposed).unwrap();
        assert!((fit.smallest_eigenvalue + 0.2).abs() < 1e-14);
        assert!((fit.copula.correlation()[[0, 1]] + 0.5).abs() < 1e-5);
        let fine = copula().correlation().to_owned();
        let fit = projected(fine.clone()).unwrap();
        let as_it_is = GaussianCopula::from_correlation(fine.view()).unwrap();
        assert_eq!(fit.copula, as_it_is);
        let least = symmetric_eigenvalues(fine.view()).unwrap()[0];
        assert_eq!(fit.smallest_eigenvalue, least);
    }

    #[test]
    fn discrete_columns_are_fitted_by_tau_and_refused_otherwise() {
        let u = copula().sample(2000, &mut Seed::new(3).stream("scores"));
        let mut x = u.clone();
        x.column_mut(1).mapv_inplace(|u| (20.0 * u).floor());
        let fitted = GaussianCopula::fit_kendall(x.view()).unwrap().copula;
        assert!((fitted.correlation()[[0, 1]] - 0.8).abs() < 0.06);
        let (column, distinct, rows) = (1, 20, 2000);
        let refused = GaussianCopula::fit_normal_scores(x.view());
        let want = Error::Discrete {
            column,
            distinct,
            rows,
        };
        assert_eq!(refused, Err(want));
        // Rounding to three digits leaves a continuous column.
        let rounded = u.mapv(|u| (1e3 * u).round());
        assert!(GaussianCopula::fit_normal_scores(rounded.view()).is_ok());
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
