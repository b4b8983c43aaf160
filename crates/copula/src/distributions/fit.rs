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
