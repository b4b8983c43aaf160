//! What is to be reproduced, and how.

use crate::tables::{Cut, nodes, regression};
use crate::{Error, Scale, Shard, SuiteName};
use bochner_datasets::{PlanetoidSet, Policy, RegressionSet};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What is to be reproduced, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The suites by name; none means all.
    pub suites: Vec<String>,
    /// How large.
    pub scale: Scale,
    /// Data sets by name; none means all. A table without any of them is left out.
    pub sets: Vec<String>,
    /// Models by name; none means all. A table without any of them is left out; reports show what is
    /// there of the others too.
    pub models: Vec<String>,
    /// Where data files are looked for first.
    pub data: Option<PathBuf>,
    /// Whether missing files may be downloaded.
    pub downloads: Policy,
    /// Where results are kept.
    pub out: PathBuf,
    /// Directories of rows that are taken over before anything runs.
    pub import: Vec<PathBuf>,
    /// Units that run at a time.
    pub jobs: usize,
    /// Threads of all units together.
    pub threads: usize,
    /// The part of the units that is run.
    pub shard: Shard,
    /// What is cut, by the name that a table gives it; tables that have none of this name, and all if
    /// it is absent, decide by a measurement.
    pub cut: Option<String>,
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
            models: Vec::new(),
            data: None,
            downloads: Policy::Download,
            out: "results".into(),
            import: Vec::new(),
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
    /// The sets of Table 4 that are asked for.
    pub(crate) fn regression_sets(&self) -> Vec<RegressionSet> {
        match self.sets.is_empty() {
            true => RegressionSet::ALL.to_vec(),
            false => self.sets_named(),
        }
    }

    /// The graphs of Table 5 that are asked for.
    pub(crate) fn graphs(&self) -> Vec<PlanetoidSet> {
        match self.sets.is_empty() {
            true => nodes::Plan::sets(self.scale).to_vec(),
            false => self.sets_named(),
        }
    }

    /// Those of the names that are sets of one kind.
    fn sets_named<S: FromStr>(&self) -> Vec<S> {
        let sets = self.sets.iter();
        sets.filter_map(|name| name.to_lowercase().parse().ok())
            .collect()
    }

    /// Whether a model is asked for.
    pub(crate) fn wants(&self, model: &str) -> bool {
        let mut named = self.models.iter();
        self.models.is_empty() || named.any(|name| name.eq_ignore_ascii_case(model))
    }

    /// What a table is to cut, if it knows the name.
    pub(crate) fn cut<C: Cut>(&self) -> Option<C> {
        self.cut.as_deref().and_then(C::named)
    }

    /// The suites asked for, in the order in which they are run.
    pub(crate) fn selected(&self) -> Result<Vec<SuiteName>, Error> {
        let named = self.suites.iter().map(|name| name.parse());
        let mut suites = named.collect::<Result<Vec<SuiteName>, Error>>()?;
        if suites.is_empty() {
            suites = SuiteName::ALL.to_vec();
        }
        let any_model = |suite| models_of(suite).into_iter().any(|model| self.wants(model));
        suites.retain(|&suite| match suite {
            SuiteName::Regression => !self.regression_sets().is_empty() && any_model(suite),
            SuiteName::Nodes => !self.graphs().is_empty() && any_model(suite),
            SuiteName::Propositions | SuiteName::Complexity => true,
        });
        suites.sort();
        suites.dedup();
        Ok(suites)
    }

    /// Refuses a name that no table asked for knows as one of its sets.
    fn check_sets(&self, tables: &[SuiteName]) -> Result<(), Error> {
        let known: Vec<&str> = tables.iter().flat_map(|&table| sets_of(table)).collect();
        let unknown = |name: &&String| !known.contains(&name.to_lowercase().as_str());
        match self.sets.iter().find(unknown) {
            Some(name) => refuse("--set", name, &known.join(", ")),
            None => Ok(()),
        }
    }

    /// Refuses a name that no table asked for knows as one of its models.
    fn check_models(&self, tables: &[SuiteName]) -> Result<(), Error> {
        let mut known: Vec<&str> = tables.iter().flat_map(|&table| models_of(table)).collect();
        known.sort_unstable();
        known.dedup();
        let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        match self.models.iter().find(|name| !is_known(name)) {
            Some(name) => refuse("--model", name, &known.join(", ")),
            None => Ok(()),
        }
    }

    /// Refuses a cut that no table asked for knows.
    fn check_cut(&self, tables: &[SuiteName]) -> Result<(), Error> {
        let known: Vec<&str> = tables.iter().flat_map(|&table| cuts_of(table)).collect();
        match &self.cut {
            Some(name) if !known.contains(&name.as_str()) => {
                refuse("--cut", name, &known.join(", "))
            }
            _ => Ok(()),
        }
    }

    /// An option that was given and means something to tables of trained models only.
    fn of_tables_alone(&self) -> Option<(&'static str, String)> {
        let sets = (!self.sets.is_empty()).then(|| ("--set", self.sets.join(", ")));
        let models = (!self.models.is_empty()).then(|| ("--model", self.models.join(", ")));
        let cut = self.cut.clone().map(|cut| ("--cut", cut));
        let epochs = self.epochs.map(|epochs| ("--epochs", epochs.to_string()));
        let data = self.data.as_ref();
        let data = data.map(|data| ("--data", data.display().to_string()));
        let whole = self.shard == Shard::WHOLE;
        let shard = (!whole).then(|| ("--shard", self.shard.to_string()));
        sets.or(models).or(cut).or(epochs).or(data).or(shard)
    }

    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let anything = Self {
            sets: Vec::new(),
            models: Vec::new(),
            ..self.clone()
        };
        let mut tables = anything.selected()?;
        tables.retain(|suite| matches!(suite, SuiteName::Regression | SuiteName::Nodes));
        if tables.is_empty() {
            return match self.of_tables_alone() {
                Some((option, given)) => {
                    refuse(option, &given, "nothing: only regression and nodes have it")
                }
                None => self.check_numbers(),
            };
        }
        self.check_sets(&tables)?;
        self.check_models(&tables)?;
        self.check_cut(&tables)?;
        self.check_numbers()
    }

    fn check_numbers(&self) -> Result<(), Error> {
        for (option, number) in [
            ("--jobs", Some(self.jobs)),
            ("--threads", Some(self.threads)),
            ("--epochs", self.epochs),
        ] {
            if number == Some(0) {
                return refuse(option, "0", "at least 1");
            }
        }
        Ok(())
    }
}

fn refuse(option: &'static str, given: &str, expected: &str) -> Result<(), Error> {
    Err(Error::InvalidOption {
        option,
        given: given.to_owned(),
        expected: expected.to_owned(),
    })
}

/// The names of a table's sets.
fn sets_of(table: SuiteName) -> Vec<&'static str> {
    match table {
        SuiteName::Regression => RegressionSet::ALL.map(RegressionSet::name).to_vec(),
        SuiteName::Nodes => PlanetoidSet::ALL.map(PlanetoidSet::name).to_vec(),
        SuiteName::Propositions | SuiteName::Complexity => Vec::new(),
    }
}

/// The names of a table's models.
fn models_of(table: SuiteName) -> Vec<&'static str> {
    match table {
        SuiteName::Regression => regression::Model::ALL.map(regression::Model::name).to_vec(),
        SuiteName::Nodes => nodes::Model::ALL.map(nodes::Model::name).to_vec(),
        SuiteName::Propositions | SuiteName::Complexity => Vec::new(),
    }
}

/// The names of a table's cuts.
fn cuts_of(table: SuiteName) -> Vec<&'static str> {
    fn names<C: Cut>() -> Vec<&'static str> {
        C::ALL.iter().map(|cut| cut.name()).collect()
    }
    match table {
        SuiteName::Regression => names::<regression::Cut>(),
        SuiteName::Nodes => names::<nodes::Cut>(),
        SuiteName::Propositions | SuiteName::Complexity => Vec::new(),
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
                suites: vec!["nodes".into()],
                sets: vec!["cora".into(), "co2".into()],
                ..Config::default()
            },
            Config {
                sets: vec!["iris".into()],
                ..Config::default()
            },
            Config {
                suites: vec!["regression".into()],
                models: vec!["mikan".into(), "gat".into()],
                ..Config::default()
            },
            Config {
                suites: vec!["complexity".into()],
                models: vec!["MIKAN".into()],
                ..Config::default()
            },
            Config {
                suites: vec!["regression".into()],
                cut: Some("seeds".into()),
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
        for (config, option) in bad.iter().zip([
            "SUITE", "--set", "--set", "--set", "--model", "--model", "--cut", "--jobs", "--epochs",
        ]) {
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
    fn sets_are_found_by_name_in_any_case_and_choose_the_tables() {
        let config = |name: &str| Config {
            sets: vec![name.into()],
            ..Config::default()
        };
        let co2 = config("CO2");
        assert_eq!(co2.regression_sets(), [RegressionSet::Co2]);
        assert!(co2.check().is_ok() && co2.graphs().is_empty());
        assert!(!co2.selected().unwrap().contains(&SuiteName::Nodes));
        let citeseer = config("Citeseer");
        assert_eq!(citeseer.graphs(), [PlanetoidSet::Citeseer]);
        assert!(citeseer.check().is_ok());
        assert!(
            !citeseer
                .selected()
                .unwrap()
                .contains(&SuiteName::Regression)
        );
    }

    #[test]
    fn models_are_found_by_name_in_any_case_and_choose_the_tables() {
        let config = |name: &str| Config {
            models: vec![name.into()],
            ..Config::default()
        };
        let gcn = config("gcn");
        assert!(gcn.check().is_ok() && gcn.wants("GCN") && !gcn.wants("GAT"));
        assert!(!gcn.selected().unwrap().contains(&SuiteName::Regression));
        let mikan = config("MIKAN").selected().unwrap();
        assert!(mikan.contains(&SuiteName::Regression) && mikan.contains(&SuiteName::Nodes));
        assert!(Config::default().wants("IKAN"));
    }

    #[test]
    fn a_cut_is_one_of_a_table() {
        let config = Config {
            cut: Some("points".into()),
            ..Config::default()
        };
        assert!(config.check().is_ok());
        assert_eq!(config.cut(), Some(nodes::Cut::Points));
        assert_eq!(config.cut::<regression::Cut>(), None);
    }
}
