//! The serialised form of a copula.

use crate::Error;
use crate::distributions::gaussian::{GaussianCopula, ROUNDING};
use bochner_numerics::argument;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The serialised form of a [`GaussianCopula`].
///
/// A copula is read from it only if every row of the factor has norm 1 within 1e-6, as it was written:
/// anything else was not written by this crate. [`GaussianCopula::from_factor`] normalises other
/// factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopulaConfig {
    /// The rows of the lower-triangular factor, row `m` with its `m + 1` entries.
    pub factor: Vec<Vec<f64>>,
}

impl TryFrom<CopulaConfig> for GaussianCopula {
    type Error = Error;

    fn try_from(config: CopulaConfig) -> Result<Self, Error> {
        let rows = config.factor;
        let mut factor = Array2::zeros((rows.len(), rows.len()));
        for (m, row) in rows.iter().enumerate() {
            argument::shape(format!("row {m} of factor"), &[m + 1], &[row.len()])?;
            let norm = row.iter().fold(0.0, |r: f64, x| r.hypot(*x));
            let holds = (norm - 1.0).abs() <= ROUNDING;
            let name = format!("the norm of row {m} of factor");
            argument::in_range(holds, name, norm, "1: divide the row by its norm")?;
            row.iter()
                .enumerate()
                .for_each(|(k, &x)| factor[[m, k]] = x);
        }
        Self::from_factor(factor.view())
    }
}

impl From<GaussianCopula> for CopulaConfig {
    fn from(copula: GaussianCopula) -> Self {
        let factor = copula.factor();
        let rows = factor.rows().into_iter().enumerate();
        Self {
            factor: rows
                .map(|(m, row)| row.iter().take(m + 1).copied().collect())
                .collect(),
        }
    }
}
