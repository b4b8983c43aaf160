//! The rows of the units that are finished.

use crate::Unit;
use crate::row::Row;
use crate::statistics::{Difference, Paired, mean, population_deviation};
use crate::suite::Direction;
use bochner_datasets::Protocol;
use std::collections::{BTreeMap, BTreeSet};

/// A number of a row.
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
    pub fn in_row(self, row: &Row) -> Option<f64> {
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
/// An arm is whatever holds units that belong together: one model on one set. A row answers a unit if all of its
/// settings are settings of the unit; rows of an archive may have fewer settings than units have today.
#[derive(Clone, Debug)]
pub struct Results {
    direction: Direction,
    /// The rows by the names of their units without the settings.
    rows: BTreeMap<String, Vec<Row>>,
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

    /// The better direction of the metric.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Adds rows; one of a unit that has a row replaces it.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            let known = self.rows.entry(row.unit.name()).or_default();
            match known.iter_mut().find(|known| known.unit == row.unit) {
                Some(known) => *known = row,
                None => known.push(row),
            }
        }
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

    /// All rows.
    pub fn all(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().flatten()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of a unit.
    pub fn row(&self, unit: &Unit) -> Option<&Row> {
        let mut rows = self.rows.get(&unit.name())?.iter();
        rows.find(|row| unit.settings.agree_with(&row.unit.settings))
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
        let numbers: Option<Vec<f64>> = rows.iter().map(|row| number.in_row(row)).collect();
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

    /// The rows of two arms, paired by split and seed, where both have finished.
    ///
    /// # Errors
    /// The reason, if a unit of the first arm has no partner in the second.
    pub fn pairs(
        &self,
        variant: &impl AsRef<[Unit]>,
        baseline: &impl AsRef<[Unit]>,
    ) -> Result<Vec<(&Row, &Row)>, String> {
        let mut pairs = Vec::new();
        for unit in variant.as_ref() {
            let run = (unit.split, unit.seed);
            let mut others = baseline.as_ref().iter();
            let Some(partner) = others.find(|other| (other.split, other.seed) == run) else {
                return Err(format!(
                    "{} has no partner to be compared with",
                    unit.label()
                ));
            };
            pairs.extend(self.row(unit).zip(self.row(partner)));
        }
        Ok(pairs)
    }

    /// Compares two arms, where both have finished. A difference is negative if the variant is better. `None` if there is
    /// nothing to compare, or a unit has no partner.
    pub fn compare(
        &self,
        variant: &impl AsRef<[Unit]>,
        baseline: &impl AsRef<[Unit]>,
        number: Number,
    ) -> Option<Paired> {
        let pairs = self.pairs(variant, baseline).ok()?;
        let loss = |row: &Row| Some(self.direction.loss(number.in_row(row)?));
        let difference = |(variant, baseline): &(&Row, &Row)| {
            Some(Difference {
                split: variant.unit.split,
                value: loss(variant)? - loss(baseline)?,
            })
        };
        let differences: Option<Vec<Difference>> = pairs.iter().map(difference).collect();
        let rows: Vec<&Row> = pairs.iter().map(|pair| pair.0).collect();
        Paired::new(&differences?, test_share(&rows)).ok()
    }
}

/// Test rows for each training row, where these rows change from split to split.
pub(crate) fn test_share(rows: &[&Row]) -> Option<f64> {
    let fixed = rows.iter().any(|row| row.unit.protocol == Protocol::Fixed);
    let shares = rows
        .iter()
        .map(|row| row.test_rows as f64 / row.train_rows as f64);
    (!fixed).then(|| shares.sum::<f64>() / rows.len() as f64)
}
