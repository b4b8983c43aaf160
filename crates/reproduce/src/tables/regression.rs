//! Table 4: regression on five data sets.

mod criteria;
mod plan;
pub(crate) mod projection;
pub mod report;
mod results;
mod trial;

pub use criteria::{Check, Claim, Mark, checks, claims};
pub use plan::{Arm, Cut, Model, Plan};
pub use results::{Number, Results};

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

/// A data set that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which one.
    pub set: RegressionSet,
    /// Where it was looked for.
    pub reason: String,
    /// What fetches it.
    pub command: String,
}

/// The data of the suite.
#[derive(Debug, Default)]
pub struct Regression {
    data: BTreeMap<(RegressionSet, Protocol, usize), RegressionData>,
}

impl Regression {
    /// Loads what the units of a plan need; sets that cannot be had come back beside it.
    ///
    /// # Errors
    /// [`Error::Data`] for a file that is there and wrong: it is never passed over.
    pub fn load(plan: &Plan, store: &DataStore) -> Result<(Self, Vec<Skipped>), Error> {
        let mut suite = Self::default();
        let mut skipped: Vec<Skipped> = Vec::new();
        for arm in plan.arms() {
            let key = (arm.set, arm.protocol, arm.every);
            if suite.data.contains_key(&key) || skipped.iter().any(|s| s.set == arm.set) {
                continue;
            }
            match load(arm.set, arm.protocol, rows(arm.every), store) {
                Ok(data) => {
                    suite.data.insert(key, data);
                }
                Err(error) => skipped.push(Skipped::new(arm.set, error)?),
            }
        }
        suite
            .data
            .retain(|(set, ..), _| !skipped.iter().any(|s| s.set == *set));
        Ok((suite, skipped))
    }

    /// The data of a unit.
    fn data(&self, unit: &Unit) -> Result<&RegressionData, Error> {
        self.data
            .iter()
            .find(|((set, protocol, every), _)| {
                title(*set) == unit.set
                    && *protocol == unit.protocol
                    && *every == unit.settings.every
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

impl Skipped {
    fn new(set: RegressionSet, error: bochner_datasets::Error) -> Result<Self, Error> {
        let bochner_datasets::Error::Unavailable {
            file,
            tried,
            command,
            ..
        } = error
        else {
            return Err(error.into());
        };
        let again = format!("cargo xtask reproduce {SUITE} --set {set}");
        Ok(Self {
            set,
            reason: format!("{file}: {}", tried.join("; ")),
            command: match command {
                Some(command) => format!("{command} && {again}"),
                None => format!("{again} --data DIR, with {file} in DIR"),
            },
        })
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
    use bochner_datasets::Policy;

    #[test]
    fn what_is_not_there_is_skipped_with_its_command() {
        let nowhere = tempfile::tempdir().unwrap();
        let store = DataStore::new(Policy::Offline).with_cache(nowhere.path());
        let plan = Plan::new(Scale::Smoke, &RegressionSet::ALL, Cut::None);
        let (suite, skipped) = Regression::load(&plan, &store).unwrap();
        assert_eq!(skipped.len(), 4);
        assert!(skipped.iter().all(|s| s.command.contains("curl")
            && s.command.contains("cargo xtask reproduce regression --set")));
        let plan = plan.without(&skipped);
        assert!(plan.units().iter().all(|unit| unit.set == "Passenger"));
        assert!(suite.data(&plan.units()[0]).is_ok());
    }

    #[test]
    fn a_wrong_file_is_an_error_and_not_skipped() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("housing")).unwrap();
        std::fs::write(directory.path().join("housing/housing.data"), "1 2\n").unwrap();
        let store = DataStore::new(Policy::Offline)
            .with_cache(directory.path().join("cache"))
            .with_directory(directory.path())
            .unwrap();
        let plan = Plan::new(Scale::Smoke, &[RegressionSet::Housing], Cut::None);
        let error = Regression::load(&plan, &store).unwrap_err();
        assert!(error.to_string().contains("housing.data"), "{error}");
    }
}
