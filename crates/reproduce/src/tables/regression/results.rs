//! The rows of a plan, by arm.

use super::{Arm, Model, Plan};
use crate::statistics::Paired;
use crate::store::Row;
use crate::{Error, Preset, Store, Unit};
use bochner_datasets::{Protocol, RegressionSet};
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

/// The rows of a plan that are finished.
#[derive(Debug, Default)]
pub struct Results {
    rows: BTreeMap<String, Row>,
}

impl Results {
    /// Reads the finished units of a plan.
    ///
    /// # Errors
    /// Those of [`Store::row`].
    pub fn collect(plan: &Plan, store: &Store) -> Result<Self, Error> {
        let mut rows = BTreeMap::new();
        for unit in plan.units() {
            if let Some(row) = store.row(&unit)? {
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

    /// The rows of an arm, in the order of its splits.
    pub fn of(&self, arm: &Arm) -> Vec<&Row> {
        arm.units.iter().filter_map(|unit| self.row(unit)).collect()
    }

    /// Whether all splits of an arm are finished.
    pub fn is_complete(&self, arm: &Arm) -> bool {
        arm.units.iter().all(|unit| self.row(unit).is_some())
    }

    /// One of the numbers on the finished splits of an arm; `None` if there are none.
    pub fn numbers(&self, arm: &Arm, number: Number) -> Option<Vec<f64>> {
        let rows = self.of(arm);
        let numbers: Option<Vec<f64>> = rows.iter().map(|row| number.of(row)).collect();
        numbers.filter(|numbers| !numbers.is_empty())
    }

    /// Compares two arms on the splits that both have finished.
    pub fn compare(&self, variant: &Arm, baseline: &Arm, number: Number) -> Option<Paired> {
        let pairs: Vec<(&Row, &Row)> = variant
            .units
            .iter()
            .zip(&baseline.units)
            .filter_map(|(v, b)| Some((self.row(v)?, self.row(b)?)))
            .collect();
        let (v, b): (Option<Vec<f64>>, Option<Vec<f64>>) = (
            pairs.iter().map(|(v, _)| number.of(v)).collect(),
            pairs.iter().map(|(_, b)| number.of(b)).collect(),
        );
        let share = |row: &Row| row.test_rows as f64 / row.train_rows as f64;
        let shares: f64 = pairs.iter().map(|(v, _)| share(v)).sum();
        Paired::new(&v?, &b?, shares / pairs.len() as f64).ok()
    }
}

impl Plan {
    /// The arm of a model with its released norm.
    pub fn arm(
        &self,
        set: RegressionSet,
        model: Model,
        preset: Preset,
        protocol: Protocol,
    ) -> Option<&Arm> {
        self.arms().iter().find(|arm| {
            (arm.set, arm.model, arm.preset, arm.protocol) == (set, model, preset, protocol)
                && arm.candidate.is_none()
        })
    }

    /// The Transformer that an arm is judged against: it has one reading, `paper`.
    pub fn baseline(&self, arm: &Arm) -> Option<&Arm> {
        self.arm(arm.set, Model::Transformer, Preset::Paper, arm.protocol)
    }

    /// The Transformers that an arm is compared with: that one, and the one with as many heads.
    /// Gaussian processes are not: they share neither architecture nor initial values with it.
    pub fn baselines(&self, arm: &Arm) -> Vec<&Arm> {
        let eight = Model::TransformerEightHeads;
        let eight = self.arm(arm.set, eight, Preset::Paper, arm.protocol);
        match arm.model {
            Model::Transformer => Vec::new(),
            model if model.is_process() => Vec::new(),
            Model::TransformerEightHeads => self.baseline(arm).into_iter().collect(),
            _ => self.baseline(arm).into_iter().chain(eight).collect(),
        }
    }

    /// The arm of the model that lacks one thing that this one has, in the paper's reading.
    pub fn simpler(&self, arm: &Arm) -> Option<&Arm> {
        let comparable = arm.preset == Preset::Paper && arm.candidate.is_none();
        let model = arm.model.simpler().filter(|_| comparable)?;
        self.arm(arm.set, model, Preset::Paper, arm.protocol)
    }

    /// The sets of the plan.
    pub fn sets(&self) -> Vec<RegressionSet> {
        let mut sets: Vec<_> = self.arms().iter().map(|arm| arm.set).collect();
        sets.dedup();
        sets
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Cut;
    use super::*;
    use crate::Scale;

    /// Results with the V-numbers that a function gives, R-numbers .01 below.
    pub(crate) fn results(plan: &Plan, value: impl Fn(&Arm, usize) -> Option<f64>) -> Results {
        let mut rows = BTreeMap::new();
        for arm in plan.arms() {
            for unit in &arm.units {
                let Some(v) = value(arm, unit.split) else {
                    continue;
                };
                let row = Row {
                    id: unit.id(),
                    table: super::super::TABLE.into(),
                    unit: unit.clone(),
                    parameters: 1,
                    train_rows: 80,
                    validation_rows: 10,
                    test_rows: 10,
                    r_number: v - 0.01,
                    r_epoch: 1,
                    v_number: (unit.protocol == Protocol::P10).then_some(v),
                    v_epoch: Some(1),
                    validation: Some(v),
                    validation_loss: None,
                    stopped_after: None,
                    last: v,
                    first_mse: 1.0,
                    last_mse: 0.1,
                    seconds: 1.0,
                    code_version: "test".into(),
                };
                rows.insert(row.id.clone(), row);
            }
        }
        Results { rows }
    }

    impl Results {
        /// The results with every row changed.
        pub(crate) fn mapped(self, change: impl Fn(Row) -> Row) -> Self {
            let rows = self.rows.into_iter().map(|(id, row)| (id, change(row)));
            Self {
                rows: rows.collect(),
            }
        }
    }

    #[test]
    fn comparisons_pair_the_splits_that_both_have() {
        let plan = Plan::new(Scale::Desk, &[RegressionSet::Passenger], Cut::None);
        let results = results(&plan, |arm, split| match arm.model {
            Model::Transformer => Some(0.2 + 0.01 * split as f64),
            Model::Mikan if split < 4 => Some(0.1 + 0.01 * split as f64),
            _ => None,
        });
        let arm = |model| {
            plan.arm(
                RegressionSet::Passenger,
                model,
                Preset::Paper,
                Protocol::P10,
            )
            .unwrap()
        };
        let baseline = plan.baseline(arm(Model::Mikan)).unwrap();
        let paired = results
            .compare(arm(Model::Mikan), baseline, Number::V)
            .unwrap();
        assert_eq!((paired.n, paired.wins), (4, 4));
        assert!((paired.mean + 0.1).abs() < 1e-12);
        assert!(!results.is_complete(arm(Model::Mikan)));
        let nothing = results.compare(arm(Model::IkanDirect), baseline, Number::R);
        assert!(nothing.is_none());
    }
}
