//! Likelihoods of samples, and the choice of a family by them.

use super::{Family, Univariate};
use crate::Error;
use crate::distributions::marginal::Marginal;
use bochner_numerics::argument;

impl Univariate {
    /// The logarithm of the likelihood of a sample.
    pub fn log_likelihood(&self, sample: &[f64]) -> f64 {
        sample.iter().map(|x| self.log_density(*x)).sum()
    }

    /// Fits each family to a sample and returns the one with the least information criterion of Akaike.
    ///
    /// $$\mathrm{AIC} = 2 k - 2 \ln p(x)$$
    ///
    /// *where* *k* is the number of parameters. Families that do not have all values of the sample are left out. A
    /// single family is fitted without a choice.
    ///
    /// # Errors
    /// The errors of [`fit`](Self::fit) if no family can be fitted; [`Error::Argument`] for no families, or for
    /// [`Family::Empirical`] and [`Family::KernelDensity`] among several, which have no fixed number of parameters.
    ///
    /// # Reference
    /// Akaike, *A new look at the statistical model identification*, IEEE Transactions on Automatic Control 1974.
    pub fn select(sample: &[f64], families: &[Family]) -> Result<Self, Error> {
        argument::not_empty("families", &[families.len()])?;
        if let [family] = families {
            return Self::fit(sample, *family);
        }
        let mut best: Option<(f64, Self)> = None;
        let mut refused = None;
        for &family in families {
            let Some(parameters) = family.parameters() else {
                let name = format!("the number of families with {family:?}");
                let count = families.len() as f64;
                let allowed = "1: a family without a fixed number of parameters has no AIC";
                return Err(argument::out_of_range(name, count, allowed).into());
            };
            match Self::fit(sample, family) {
                Ok(fitted) => {
                    let aic = 2.0 * parameters as f64 - 2.0 * fitted.log_likelihood(sample);
                    if best.as_ref().is_none_or(|(least, _)| aic < *least) {
                        best = Some((aic, fitted));
                    }
                }
                Err(error @ Error::Family { .. }) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match best {
            Some((_, fitted)) => Ok(fitted),
            None => Err(refused.expect("every family was refused")),
        }
    }
}
