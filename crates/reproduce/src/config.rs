//! What is to be reproduced, and how.

use crate::tables::regression::Cut;
use crate::{Error, Scale, Shard, SuiteName};
use bochner_datasets::{Policy, RegressionSet};
use std::path::PathBuf;
use std::time::Duration;

/// What is to be reproduced, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The suites by name; none means all.
    pub suites: Vec<String>,
    /// How large.
    pub scale: Scale,
    /// Data sets by name; none means all.
    pub sets: Vec<String>,
    /// Where data files are looked for first.
    pub data: Option<PathBuf>,
    /// Whether missing files may be downloaded.
    pub downloads: Policy,
    /// Where results are kept.
    pub out: PathBuf,
    /// Units that run at a time.
    pub jobs: usize,
    /// Threads of all units together.
    pub threads: usize,
    /// The part of the units that is run.
    pub shard: Shard,
    /// What is cut; decided by a measurement where absent.
    pub cut: Option<Cut>,
    /// Epochs other than the scale's.
    pub epochs: Option<usize>,
    /// Time between two checkpoints of a unit.
    pub checkpoint_every: Duration,
    /// Recorded in every row.
    pub code_version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: Vec::new(),
            scale: Scale::Smoke,
            sets: Vec::new(),
            data: None,
            downloads: Policy::Download,
            out: "results".into(),
            jobs: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            shard: Shard::WHOLE,
            cut: None,
            epochs: None,
            checkpoint_every: Duration::from_secs(10),
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Config {
    /// The data sets asked for.
    pub(crate) fn regression_sets(&self) -> Result<Vec<RegressionSet>, Error> {
        if self.sets.is_empty() {
            return Ok(RegressionSet::ALL.to_vec());
        }
        let named = |name: &String| name.to_lowercase().parse().map_err(Error::from);
        self.sets.iter().map(named).collect()
    }

    /// The suites asked for, in the order in which they are run.
    pub(crate) fn selected(&self) -> Result<Vec<SuiteName>, Error> {
        if self.suites.is_empty() {
            return Ok(SuiteName::ALL.to_vec());
        }
        let named = self.suites.iter().map(|name| name.parse());
        let mut suites = named.collect::<Result<Vec<SuiteName>, Error>>()?;
        suites.sort();
        suites.dedup();
        Ok(suites)
    }

    /// An option that was given and means something to the suite regression only.
    fn of_regression_alone(&self) -> Option<(&'static str, String)> {
        let sets = (!self.sets.is_empty()).then(|| ("--set", self.sets.join(", ")));
        let cut = self
            .cut
            .map(|cut| ("--cut", format!("{cut:?}").to_lowercase()));
        let epochs = self.epochs.map(|epochs| ("--epochs", epochs.to_string()));
        let data = self.data.as_ref();
        let data = data.map(|data| ("--data", data.display().to_string()));
        let whole = self.shard == Shard::WHOLE;
        let shard = (!whole).then(|| ("--shard", self.shard.to_string()));
        sets.or(cut).or(epochs).or(data).or(shard)
    }

    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |option, given: String, expected: &str| {
            Err(Error::InvalidOption {
                option,
                given,
                expected: expected.to_owned(),
            })
        };
        if !self.selected()?.contains(&SuiteName::Regression)
            && let Some((option, given)) = self.of_regression_alone()
        {
            return refuse(option, given, "nothing: only the suite regression has it");
        }
        for (option, number) in [
            ("--jobs", Some(self.jobs)),
            ("--threads", Some(self.threads)),
            ("--epochs", self.epochs),
        ] {
            if number == Some(0) {
                return refuse(option, "0".into(), "at least 1");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused_with_the_option_named() {
        let bad = [
            Config {
                suites: vec!["poetry".into()],
                ..Config::default()
            },
            Config {
                suites: vec!["propositions".into()],
                sets: vec!["co2".into()],
                ..Config::default()
            },
            Config {
                jobs: 0,
                ..Config::default()
            },
            Config {
                epochs: Some(0),
                ..Config::default()
            },
        ];
        for (config, option) in bad.iter().zip(["SUITE", "--set", "--jobs", "--epochs"]) {
            let error = config.check().unwrap_err();
            assert!(matches!(error, Error::InvalidOption { option: o, .. } if o == option));
        }
        assert!(Config::default().check().is_ok());
    }

    #[test]
    fn suites_run_once_and_in_their_order() {
        let config = |names: &[&str]| Config {
            suites: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Config::default()
        };
        assert_eq!(config(&[]).selected().unwrap(), SuiteName::ALL);
        let twice = config(&["regression", "propositions", "regression"]);
        let order = [SuiteName::Propositions, SuiteName::Regression];
        assert_eq!(twice.selected().unwrap(), order);
    }

    #[test]
    fn sets_are_found_by_name_in_any_case() {
        let config = |name: &str| Config {
            sets: vec![name.into()],
            ..Config::default()
        };
        let sets = config("CO2").regression_sets().unwrap();
        assert_eq!(sets, [RegressionSet::Co2]);
        assert!(config("iris").regression_sets().is_err());
    }
}
