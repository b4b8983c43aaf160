//! Table 4: regression on five data sets.

mod criteria;
mod model;
mod plan;
pub mod report;
mod results;
mod trial;

pub use criteria::{checks, claims};
pub use model::Model;
pub use plan::{Arm, Cut, Plan};

use super::Skipped;
use crate::{Error, Suite, Trial, Unit, published};
use bochner_datasets::{DataStore, Protocol, RegressionData, RegressionSet, Rows, load};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The table's name in rows and reports.
pub const TABLE: &str = "Table 4";

/// The suite's name on the command line.
pub const SUITE: &str = "regression";

/// The name that the paper's table gives a set.
pub fn title(set: RegressionSet) -> &'static str {
    let column = RegressionSet::ALL.iter().position(|other| *other == set);
    published::REGRESSION_SETS[column.unwrap_or_default()]
}

/// The data of the suite.
#[derive(Debug, Default)]
pub struct Regression {
    data: BTreeMap<(RegressionSet, Protocol, usize), RegressionData>,
}

impl Regression {
    /// Loads what the units of a plan need; sets that cannot be had, or whose files are wrong, come
    /// back beside it, so that one bad file does not keep the others from running.
    pub fn load(plan: &Plan, store: &DataStore) -> (Self, Vec<Skipped>) {
        let mut suite = Self::default();
        let mut skipped: Vec<Skipped> = Vec::new();
        for arm in plan.arms() {
            let key = (arm.set, arm.protocol, arm.every);
            if suite.data.contains_key(&key) || skipped.iter().any(|s| s.set == title(arm.set)) {
                continue;
            }
            match load(arm.set, arm.protocol, rows(arm.every), store) {
                Ok(data) => {
                    suite.data.insert(key, data);
                }
                Err(error) => skipped.push(Skipped::new(title(arm.set), &error)),
            }
        }
        suite
            .data
            .retain(|(set, ..), _| !skipped.iter().any(|s| s.set == title(*set)));
        (suite, skipped)
    }

    /// The data of a unit.
    fn data(&self, unit: &Unit) -> Result<&RegressionData, Error> {
        self.data
            .iter()
            .find(|((set, protocol, every), _)| {
                title(*set) == unit.set
                    && *protocol == unit.protocol
                    && *every == unit.settings.every()
            })
            .map(|(_, data)| data)
            .ok_or_else(|| Error::Trial {
                unit: unit.id(),
                message: "its data set is not loaded".to_owned(),
            })
    }
}

impl Suite for Regression {
    fn table(&self) -> &str {
        TABLE
    }

    fn start(&self, unit: &Unit) -> Result<Box<dyn Trial + '_>, Error> {
        trial::start(unit, self.data(unit)?)
    }
}

fn rows(every: usize) -> Rows {
    match NonZeroUsize::new(every) {
        Some(every) if every.get() > 1 => Rows::Every(every),
        _ => Rows::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::tables::Remedy;
    use bochner_datasets::Policy;

    #[test]
    fn what_is_not_there_is_skipped_with_its_command() {
        let nowhere = tempfile::tempdir().unwrap();
        let store = DataStore::new(Policy::Offline).with_cache(nowhere.path());
        let plan = Plan::new(Scale::Smoke, &RegressionSet::ALL, Cut::None);
        let (suite, skipped) = Regression::load(&plan, &store);
        assert_eq!(skipped.len(), 4);
        let fetch = |s: &Skipped| matches!(&s.remedy, Remedy::Fetch(with) if with.contains("curl"));
        assert!(skipped.iter().all(fetch));
        let plan = plan.without(&skipped);
        assert!(plan.units().iter().all(|unit| unit.set == "Passenger"));
        assert!(suite.data(&plan.units()[0]).is_ok());
    }

    #[test]
    fn a_wrong_file_is_named_and_the_other_sets_run() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("housing")).unwrap();
        std::fs::write(directory.path().join("housing/housing.data"), "1 2\n").unwrap();
        let store = DataStore::new(Policy::Offline)
            .with_cache(directory.path().join("cache"))
            .with_directory(directory.path())
            .unwrap();
        let sets = [RegressionSet::Housing, RegressionSet::Passenger];
        let plan = Plan::new(Scale::Smoke, &sets, Cut::None);
        let (suite, skipped) = Regression::load(&plan, &store);
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0].remedy, Remedy::Repair);
        assert!(
            skipped[0].reason.contains("housing.data"),
            "{}",
            skipped[0].reason
        );
        assert!(suite.data(&plan.without(&skipped).units()[0]).is_ok());
    }
}
