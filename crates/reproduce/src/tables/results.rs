//! The rows of a plan, by arm.

use crate::statistics::Paired;
use crate::store::Row;
use crate::{Error, Protocol, Store, Unit};
use std::collections::BTreeMap;

/// Which of the numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The test error in the epoch that validation chose: what claims may rest on.
    V,
    /// The best test error: what the paper publishes.
    R,
    /// The test error after the last epoch.
    Last,
}

impl Number {
    /// The number in a row.
    pub fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::V => row.v_number,
            Self::R => Some(row.r_number),
            Self::Last => Some(row.last),
        }
    }
}

/// The rows of the units that are finished.
///
/// An arm is whatever holds units that belong together: one model on one set.
#[derive(Debug, Default)]
pub struct Results {
    rows: BTreeMap<String, Row>,
}

impl Results {
    /// Reads those of the units that are finished.
    ///
    /// # Errors
    /// The errors of [`Store::row`].
    pub fn collect(units: &[Unit], store: &Store) -> Result<Self, Error> {
        let mut rows = BTreeMap::new();
        for unit in units {
            if let Some(row) = store.row(unit)? {
                rows.insert(row.id.clone(), row);
            }
        }
        Ok(Self { rows })
    }

    /// Adds other results.
    pub fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// The row of a unit.
    pub fn row(&self, unit: &Unit) -> Option<&Row> {
        self.rows.get(&unit.id())
    }

    /// The rows of an arm, in the order of its units.
    pub fn of(&self, arm: &impl AsRef<[Unit]>) -> Vec<&Row> {
        let units = arm.as_ref().iter();
        units.filter_map(|unit| self.row(unit)).collect()
    }

    /// Whether all units of an arm are finished.
    pub fn is_complete(&self, arm: &impl AsRef<[Unit]>) -> bool {
        arm.as_ref().iter().all(|unit| self.row(unit).is_some())
    }

    /// One of the numbers of the finished units of an arm; `None` if there are none.
    pub fn numbers(&self, arm: &impl AsRef<[Unit]>, number: Number) -> Option<Vec<f64>> {
        let rows = self.of(arm);
        let numbers: Option<Vec<f64>> = rows.iter().map(|row| number.of(row)).collect();
        numbers.filter(|numbers| !numbers.is_empty())
    }

    /// Compares two arms, unit by unit, where both have finished.
    pub fn compare<A: AsRef<[Unit]>>(
        &self,
        variant: &A,
        baseline: &A,
        number: Number,
    ) -> Option<Paired> {
        let pairs: Vec<(&Row, &Row)> = variant
            .as_ref()
            .iter()
            .zip(baseline.as_ref())
            .filter_map(|(v, b)| Some((self.row(v)?, self.row(b)?)))
            .collect();
        let (v, b): (Option<Vec<f64>>, Option<Vec<f64>>) = (
            pairs.iter().map(|(v, _)| number.of(v)).collect(),
            pairs.iter().map(|(_, b)| number.of(b)).collect(),
        );
        Paired::new(&v?, &b?, test_share(&pairs)).ok()
    }
}

/// Test rows for each training row, where these rows change from split to split.
fn test_share(pairs: &[(&Row, &Row)]) -> Option<f64> {
    let share = |row: &Row| row.test_rows as f64 / row.train_rows as f64;
    let fixed = pairs
        .iter()
        .any(|(row, _)| row.unit.protocol == Protocol::Fixed);
    let shares: f64 = pairs.iter().map(|(row, _)| share(row)).sum();
    (!fixed).then(|| shares / pairs.len() as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row with this V-number, and an R-number .01 below.
    pub(crate) fn row(unit: &Unit, v: f64) -> Row {
        Row {
            id: unit.id(),
            table: "Table 0".into(),
            unit: unit.clone(),
            parameters: 1,
            train_rows: 80,
            validation_rows: 10,
            test_rows: 10,
            r_number: v - 0.01,
            r_epoch: 1,
            v_number: Some(v),
            v_epoch: Some(1),
            validation: Some(v),
            validation_loss: None,
            stopped_after: None,
            last: v,
            first_mse: 1.0,
            last_mse: 0.1,
            seconds: 1.0,
            code_version: "test".into(),
        }
    }

    impl Results {
        /// The results that consist of these rows.
        pub(crate) fn of_rows(rows: impl IntoIterator<Item = Row>) -> Self {
            let rows = rows.into_iter().map(|row| (row.id.clone(), row));
            Self {
                rows: rows.collect(),
            }
        }

        /// The results with every row changed.
        pub(crate) fn mapped(self, change: impl Fn(Row) -> Row) -> Self {
            Self::of_rows(self.rows.into_values().map(change))
        }
    }
}
