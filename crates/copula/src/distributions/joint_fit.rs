//! Joint distributions fitted to tables.

use crate::Error;
use crate::distributions::copula::Copula;
use crate::distributions::fit::{CopulaFit, continuous, normal_scores, ranked};
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::joint::{Joint, check_names};
use crate::distributions::marginal::Marginal;
use crate::distributions::students_t::StudentsTCopula;
use crate::distributions::univariate::{Family, Univariate};
use bochner_numerics::{argument, parallel};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The estimator of a copula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dependence {
    /// A Gaussian copula by Kendall's tau, robust and for discrete columns too: [`GaussianCopula::fit_kendall`].
    Kendall,
    /// A Gaussian copula by the ranks' normal scores, whatever the marginals: [`GaussianCopula::fit_normal_scores`].
    #[default]
    NormalScores,
    /// A Gaussian copula by maximum likelihood at the fitted marginals (*inference functions for margins*):
    /// [`GaussianCopula::fit_maximum_likelihood`].
    MaximumLikelihood,
    /// Student's t copula by Kendall's tau and the likelihood of the ranks: [`StudentsTCopula::fit`].
    StudentsT,
}

/// The options of [`Joint::fit`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JointOptions {
    /// The families among which each marginal is chosen by Akaike's criterion; a single one is fitted without a
    /// choice. Defaults to [`Family::PARAMETRIC`].
    pub families: Vec<Family>,
    /// The families of some columns by their names.
    pub columns: BTreeMap<String, Family>,
    /// The estimator of the copula. Defaults to normal scores.
    pub dependence: Dependence,
}

impl Default for JointOptions {
    fn default() -> Self {
        Self {
            families: Family::PARAMETRIC.to_vec(),
            columns: BTreeMap::new(),
            dependence: Dependence::default(),
        }
    }
}

/// A joint distribution fitted to a table.
#[derive(Clone, Debug, PartialEq)]
pub struct JointFit {
    /// The distribution.
    pub joint: Joint<Univariate>,
    /// The smallest eigenvalue of the estimated correlation matrix; below 1e-6 the copula is that of the nearest
    /// correlation matrix instead ([`CopulaFit`]).
    pub smallest_eigenvalue: f64,
}

impl Joint<Univariate> {
    /// Fits marginals and a copula to the columns of a table.
    ///
    /// Each marginal is fitted by maximum likelihood ([`Univariate::select`]), then the copula as
    /// [`JointOptions::dependence`] says.
    ///
    /// # Shapes
    /// `table: [n, M]`, one observation a row; `names`: one for each column.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of names, and for a value that is missing (NaN) or infinite, with its
    /// column's name and its row; [`Error::RepeatedName`]; [`Error::NoColumn`] for an option of a column that does not
    /// exist; [`Error::TooFew`] below two rows. [`Error::Column`] names the column of [`Error::Constant`], of
    /// [`Error::Family`] and, except with [`Dependence::Kendall`], of [`Error::Discrete`].
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::ndarray::Array2;
    /// use bochner_copula::{Family, GaussianCopula, Joint, JointOptions, Univariate};
    /// use bochner_numerics::Seed;
    ///
    /// // A table: two positive columns that belong together.
    /// let r = bochner_copula::ndarray::array![[1.0, 0.8], [0.8, 1.0]];
    /// let gamma = |shape| Univariate::Gamma { shape, rate: 1.0 };
    /// let truth = Joint::new(GaussianCopula::from_correlation(r.view())?, vec![gamma(2.0), gamma(5.0)])?;
    /// let mut rng = Seed::new(1).stream("table");
    /// let table: Array2<f64> = truth.sample(1000, &mut rng)?;
    ///
    /// let options = JointOptions { families: vec![Family::Gamma], ..Default::default() };
    /// let joint = Joint::fit(table.view(), &["rain", "flow"], &options)?.joint;
    /// let flow = joint.coordinate("flow")?;
    /// assert!((joint.marginals()[flow].at_score(0.0) - 4.67).abs() < 0.2);
    /// let draws = joint.conditional_sample(&[(joint.coordinate("rain")?, 6.0)], 100, &mut rng)?;
    /// assert!(draws.column(flow).mean().unwrap() > 6.0);
    /// # use bochner_copula::Marginal;
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn fit(
        table: ArrayView2<f64>,
        names: &[impl ToString],
        options: &JointOptions,
    ) -> Result<JointFit, Error> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        check_table(table, &names, options)?;
        let named = |error: Error| in_column(error, &names);
        let columns = ranked(table).map_err(named)?;
        if options.dependence != Dependence::Kendall {
            continuous(&columns).map_err(named)?;
        }
        let marginals = marginals(table, &names, options)?;
        let (copula, smallest_eigenvalue) = match options.dependence {
            Dependence::Kendall => parts(GaussianCopula::of_kendall(&columns)?),
            Dependence::NormalScores => parts(GaussianCopula::of_scores(normal_scores(&columns))?),
            Dependence::MaximumLikelihood => parts(GaussianCopula::most_likely(inner_scores(
                table, &marginals,
            ))?),
            Dependence::StudentsT => {
                let CopulaFit {
                    copula,
                    smallest_eigenvalue,
                } = GaussianCopula::of_kendall(&columns)?;
                let copula = StudentsTCopula::with_freedom_of(copula, &columns);
                (copula.into(), smallest_eigenvalue)
            }
        };
        Ok(JointFit {
            joint: Self::new(copula, marginals)?.with_names(names)?,
            smallest_eigenvalue,
        })
    }
}

fn parts(fit: CopulaFit) -> (Copula, f64) {
    (fit.copula.into(), fit.smallest_eigenvalue)
}

fn check_table(
    table: ArrayView2<f64>,
    names: &[String],
    options: &JointOptions,
) -> Result<(), Error> {
    argument::not_empty("table", table.shape())?;
    argument::shape("names", &[table.ncols()], &[names.len()])?;
    check_names(names)?;
    if let Some(name) = options.columns.keys().find(|name| !names.contains(name)) {
        return Err(Error::NoColumn {
            name: name.clone(),
            names: names.to_vec(),
        });
    }
    for (name, column) in names.iter().zip(table.columns()) {
        argument::finite(name.clone(), column.shape(), column)?;
    }
    Ok(())
}

/// The error with the name of its column.
fn in_column(error: Error, names: &[String]) -> Error {
    match error {
        Error::Constant { column } | Error::Discrete { column, .. } => Error::Column {
            name: names[column].clone(),
            source: Box::new(error),
        },
        error => error,
    }
}

fn marginals(
    table: ArrayView2<f64>,
    names: &[String],
    options: &JointOptions,
) -> Result<Vec<Univariate>, Error> {
    let fitted = parallel::map(table.ncols(), |column| {
        let name = &names[column];
        let sample = table.column(column).to_vec();
        let fitted = match options.columns.get(name) {
            Some(family) => Univariate::fit(&sample, *family),
            None => Univariate::select(&sample, &options.families),
        };
        fitted.map_err(|error| match error {
            Error::Argument(error) => error.into(),
            error => Error::Column {
                name: name.clone(),
                source: Box::new(error),
            },
        })
    });
    fitted.into_iter().collect()
}

/// The normal scores of a table at marginals fitted to it, bounded where a value is the end of a support.
fn inner_scores(table: ArrayView2<f64>, marginals: &[Univariate]) -> Array2<f64> {
    // The score of a probability of half an observation.
    let bound = -bochner_numerics::normal::quantile(0.5 / table.nrows() as f64);
    let mut scores = table.to_owned();
    for (mut column, marginal) in scores.columns_mut().into_iter().zip(marginals) {
        column.mapv_inplace(|z| match marginal.log_tails(z).score() {
            x if x.is_infinite() => bound.copysign(x),
            x => x,
        });
    }
    scores
}
