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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array3, Axis, array};

    fn three() -> GaussianCopula {
        let r = array![[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]];
        GaussianCopula::from_correlation(r.view()).unwrap()
    }

    #[test]
    fn what_is_written_and_read_again_is_equal() {
        let random =
            Array3::from_shape_fn((1, 9, 9), |(_, m, k)| (m * 7 + k * 3) as f64 % 5.0 - 1.5);
        let strict = crate::heads::free(random.view())
            .unwrap()
            .index_axis_move(Axis(0), 0);
        for copula in [three(), GaussianCopula::from_factor(strict.view()).unwrap()] {
            let text = serde_json::to_string(&copula).unwrap();
            assert_eq!(
                serde_json::from_str::<GaussianCopula>(&text).unwrap(),
                copula
            );
        }
    }

    #[test]
    fn what_is_read_is_checked() {
        let read = |text: &str| {
            serde_json::from_str::<GaussianCopula>(text)
                .unwrap_err()
                .to_string()
        };
        let ok = serde_json::from_str::<GaussianCopula>(r#"{"factor": [[1.0], [0.6, 0.8]]}"#);
        assert_eq!(ok.unwrap().correlation()[[0, 1]], 0.6);
        assert!(read(r#"{"factor": [[1.0], [0.6, -0.8]]}"#).contains("must be above 0"));
        assert!(read(r#"{"factor": [[1.0], [3.0]]}"#).contains("row 1 of factor"));
        for norm in [r#"[[1.0], [1e308, 1.0]]"#, r#"[[3.0], [0.5, 0.8]]"#] {
            let said = read(&format!(r#"{{"factor": {norm}}}"#));
            assert!(said.contains("the norm of row"), "{said}");
        }
        assert!(read(r#"{"factor": []}"#).contains("no elements"));
        assert!(read(r#"{"factor": [[1.0]], "extra": 1}"#).contains("extra"));
    }
}
