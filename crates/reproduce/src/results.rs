//! The rows of the units that are finished.

use crate::statistics::{Paired, mean, population_deviation};
use crate::store::Row;
use crate::suite::Direction;
use crate::{Error, Protocol, Store, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Which of the numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The test value in the epoch that validation chose: what claims may rest on.
    V,
    /// The best test value: what the paper publishes.
    R,
    /// The test value after the last epoch.
    Last,
    /// The validation value in the epoch that validation chose.
    Validation,
}

impl Number {
    /// The number in a row.
    pub fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::V => row.v_number,
            Self::R => Some(row.r_number),
            Self::Last => Some(row.last),
            Self::Validation => row.validation,
        }
    }
}

/// The rows of the units that are finished.
///
/// An arm is whatever holds units that belong together: one model on one set.
#[derive(Clone, Debug)]
pub struct Results {
    direction: Direction,
    rows: BTreeMap<String, Row>,
    /// The ids of the units that a run tried and could not finish.
    failed: BTreeSet<String>,
}

impl Results {
    /// No rows yet, of a metric of this direction.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            rows: BTreeMap::new(),
            failed: BTreeSet::new(),
        }
    }

    /// Adds the rows of those of the units that are finished.
    ///
    /// # Errors
    /// The errors of [`Store::row`].
    pub fn collect(&mut self, units: &[Unit], store: &Store) -> Result<(), Error> {
        for unit in units {
            self.extend(store.row(unit)?);
        }
        Ok(())
    }

    /// Adds rows.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        let rows = rows.into_iter().map(|row| (row.id.clone(), row));
        self.rows.extend(rows);
    }

    /// Notes units that a run tried and could not finish.
    pub fn note_failed<'a>(&mut self, units: impl IntoIterator<Item = &'a Unit>) {
        self.failed.extend(units.into_iter().map(Unit::id));
    }

    /// Whether a run tried a unit of an arm and could not finish it.
    pub fn has_failed(&self, arm: &impl AsRef<[Unit]>) -> bool {
        let mut units = arm.as_ref().iter();
        units.any(|unit| self.failed.contains(&unit.id()))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
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

    /// The mean and the population deviation of [`numbers`](Self::numbers).
    pub fn spread(&self, arm: &impl AsRef<[Unit]>, number: Number) -> Option<(f64, f64)> {
        let numbers = self.numbers(arm, number)?;
        Some((mean(&numbers).ok()?, population_deviation(&numbers).ok()?))
    }

    /// The mean of the numbers of an arm that is complete.
    pub fn mean(&self, arm: &impl AsRef<[Unit]>, number: Number) -> Option<f64> {
        let numbers = self.numbers(arm, number)?;
        self.is_complete(arm).then(|| mean(&numbers).ok())?
    }

    /// The mean of a measure over the finished units of an arm; `None` if a row lacks it.
    pub fn measure(&self, arm: &impl AsRef<[Unit]>, name: &str) -> Option<f64> {
        let rows = self.of(arm).into_iter();
        let values = rows.map(|row| row.measures.get(name).copied());
        mean(&values.collect::<Option<Vec<f64>>>()?).ok()
    }

    /// How a finished arm does in validation: the mean of its values, as a loss, and of their losses, infinite
    /// where none was recorded.
    pub(crate) fn validated(&self, arm: &impl AsRef<[Unit]>) -> Option<(f64, f64)> {
        let loss = |row: &&Row| row.validation_loss.unwrap_or(f64::INFINITY);
        let value = self.mean(arm, Number::Validation)?;
        let losses: Vec<f64> = self.of(arm).iter().map(loss).collect();
        Some((self.direction.loss(value), mean(&losses).ok()?))
    }

    /// Compares two arms, unit by unit, where both have finished. A difference is negative if the variant
    /// is better.
    pub fn compare(
        &self,
        variant: &impl AsRef<[Unit]>,
        baseline: &impl AsRef<[Unit]>,
        number: Number,
    ) -> Option<Paired> {
        let loss = |row: &Row| Some(self.direction.loss(number.of(row)?));
        self.paired([variant.as_ref(), baseline.as_ref()], loss)
    }

    /// Compares a measure of two arms, unit by unit, where both have finished; `None` if a row lacks it. A difference is
    /// negative if the first arm has less.
    pub fn compare_measure(&self, arms: [&impl AsRef<[Unit]>; 2], name: &str) -> Option<Paired> {
        let value = |row: &Row| row.measures.get(name).copied();
        self.paired(arms.map(|arm| arm.as_ref()), value)
    }

    fn paired(&self, arms: [&[Unit]; 2], value: impl Fn(&Row) -> Option<f64>) -> Option<Paired> {
        let units = arms[0].iter().zip(arms[1]);
        let pairs = units.filter_map(|(v, b)| Some((self.row(v)?, self.row(b)?)));
        let pairs: Vec<(&Row, &Row)> = pairs.collect();
        let values = pairs.iter().map(|(v, b)| Some((value(v)?, value(b)?)));
        let (v, b): (Vec<f64>, Vec<f64>) = values.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Paired::new(&v, &b, test_share(&pairs)).ok()
    }

    /// The comparison of two arms that are complete.
    pub fn compare_all(
        &self,
        variant: &impl AsRef<[Unit]>,
        baseline: &impl AsRef<[Unit]>,
        number: Number,
    ) -> Option<Paired> {
        let complete = self.is_complete(variant) && self.is_complete(baseline);
        complete.then(|| self.compare(variant, baseline, number))?
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
            measures: BTreeMap::new(),
            seconds: 1.0,
            code_version: "test".into(),
        }
    }
}
