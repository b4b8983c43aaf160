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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::array;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn truth() -> Joint<Univariate> {
        let r = array![[1.0, 0.7, -0.3], [0.7, 1.0, 0.2], [-0.3, 0.2, 1.0]];
        let marginals = vec![
            Univariate::Gamma {
                shape: 2.0,
                rate: 0.5,
            },
            Univariate::Normal {
                mean: -3.0,
                std_dev: 0.5,
            },
            Univariate::Beta {
                shape_a: 2.0,
                shape_b: 3.0,
            },
        ];
        Joint::new(
            GaussianCopula::from_correlation(r.view()).unwrap(),
            marginals,
        )
        .unwrap()
    }

    fn table(n: usize) -> Array2<f64> {
        truth()
            .sample(n, &mut Seed::new(1).stream("table"))
            .unwrap()
    }

    fn refused(table: Array2<f64>, options: &JointOptions) -> String {
        let error = Joint::fit(table.view(), &NAMES, options).unwrap_err();
        error.to_string()
    }

    #[test]
    fn families_parameters_and_correlations_are_found() {
        let table = table(4000);
        for dependence in [
            Dependence::Kendall,
            Dependence::NormalScores,
            Dependence::MaximumLikelihood,
            Dependence::StudentsT,
        ] {
            let options = JointOptions {
                dependence,
                ..Default::default()
            };
            let joint = Joint::fit(table.view(), &NAMES, &options).unwrap().joint;
            for ((j, k), r) in truth().copula().correlation().indexed_iter() {
                let got = joint.copula().correlation()[[j, k]];
                assert!((got - r).abs() < 0.06, "{dependence:?}: {got} {r}");
            }
            for (got, want) in joint.marginals().iter().zip(truth().marginals()) {
                assert_eq!(std::mem::discriminant(got), std::mem::discriminant(want));
                for x in [-2.0, 0.0, 2.0] {
                    let (got, want) = (got.at_score(x), want.at_score(x));
                    assert!((got - want).abs() < 0.08 * want.abs(), "{got} {want}");
                }
            }
        }
    }

    #[test]
    fn what_is_saved_and_loaded_is_equal_and_checked() {
        for dependence in [Dependence::NormalScores, Dependence::StudentsT] {
            let options = JointOptions {
                columns: [("b", Family::KernelDensity), ("c", Family::Empirical)]
                    .map(|(name, family)| (name.to_owned(), family))
                    .into(),
                dependence,
                ..Default::default()
            };
            let joint = Joint::fit(table(200).view(), &NAMES, &options)
                .unwrap()
                .joint;
            let text = serde_json::to_string(&joint).unwrap();
            let loaded: Joint<Univariate> = serde_json::from_str(&text).unwrap();
            assert_eq!(loaded, joint);
            let broken = text.replacen(r#""shape":"#, r#""shape":-"#, 1);
            let error = serde_json::from_str::<Joint<Univariate>>(&broken).unwrap_err();
            assert!(error.to_string().starts_with("`shape` is -"), "{error}");
        }
    }

    #[test]
    fn bad_columns_are_refused_by_their_names() {
        let options = JointOptions::default();
        let with = |column: usize, f: fn(usize) -> f64| {
            let mut table = table(50);
            let mut column = table.column_mut(column);
            column.indexed_iter_mut().for_each(|(i, x)| *x = f(i));
            table
        };
        let missing = refused(
            with(1, |i| if i == 7 { f64::NAN } else { i as f64 }),
            &options,
        );
        assert!(missing.starts_with("`b` is NaN at [7]"), "{missing}");
        let constant = refused(with(2, |_| 1.0), &options);
        assert!(constant.starts_with("column `c`: column 2"), "{constant}");
        let discrete = refused(with(1, |i| (i % 4) as f64), &options);
        assert!(
            discrete.starts_with("column `b`: column 1 has 4 different"),
            "{discrete}"
        );
        let gamma = JointOptions {
            families: vec![Family::Gamma],
            ..Default::default()
        };
        let negative = refused(table(50), &gamma);
        assert!(
            negative.starts_with("column `b`: the family Gamma"),
            "{negative}"
        );
        let one = refused(table(1), &options);
        assert!(one.contains("the number given is 1"), "{one}");
        let unknown = JointOptions {
            columns: [("d".to_owned(), Family::Gamma)].into(),
            ..Default::default()
        };
        assert!(refused(table(50), &unknown).starts_with("there is no column `d`"));
        let twice = Joint::fit(table(50).view(), &["a", "b", "a"], &options).unwrap_err();
        assert!(matches!(twice, Error::RepeatedName { name } if name == "a"));
    }

    #[test]
    fn discrete_columns_are_fitted_by_tau() {
        let mut table = table(500);
        table.column_mut(1).mapv_inplace(|x| (4.0 * x).round());
        let options = JointOptions {
            dependence: Dependence::Kendall,
            ..Default::default()
        };
        let fit = Joint::fit(table.view(), &NAMES, &options).unwrap();
        assert!((fit.joint.copula().correlation()[[0, 1]] - 0.7).abs() < 0.1);
    }
}
