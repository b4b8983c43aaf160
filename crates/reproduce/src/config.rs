//! The configuration of a reproduction.

use crate::suite::Suite;
use crate::suites::{self, Entry, SUITES};
use crate::{Error, Shard};
use bochner_datasets::Policy;
use bochner_models::RESULTS;
use bochner_report::Scale;
use bochner_report::plan::{Choices, Frame, OnRequest, Plan};
use bochner_report::suite::Card;
use std::path::PathBuf;
use std::time::Duration;

/// The configuration of a reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The suites by name; none means all.
    pub suites: Vec<String>,
    /// The size of the experiments.
    pub scale: Scale,
    /// Data sets by name; none means all. A table without any of them is left out.
    pub sets: Vec<String>,
    /// Models by name; none means all. A table without any of them is left out; reports show what is
    /// there of the others too.
    pub models: Vec<String>,
    /// The directory in which data files are looked for first.
    pub data: Option<PathBuf>,
    /// The permission to download missing files.
    pub downloads: Policy,
    /// The directory of the results.
    pub out: PathBuf,
    /// Other output directories, whose rows of equal descriptions are taken over.
    pub import: Vec<PathBuf>,
    /// Units that run at a time.
    pub jobs: usize,
    /// Threads of all units together.
    pub threads: usize,
    /// The part of the units that is run.
    pub shard: Shard,
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
            epochs: None,
            checkpoint_every: Duration::from_secs(10),
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Config {
    /// Whether a model is asked for.
    pub(crate) fn wants(&self, model: &str) -> bool {
        let mut named = self.models.iter();
        self.models.is_empty() || named.any(|name| name.eq_ignore_ascii_case(model))
    }

    /// The suites asked for, in the order in which they are run: those without any of the sets and models that are
    /// asked for are left out.
    pub(crate) fn selected(&self) -> Result<Vec<Entry>, Error> {
        let is_known = |name: &&String| SUITES.iter().any(|suite| suite.name() == **name);
        if let Some(name) = self.suites.iter().find(|name| !is_known(name)) {
            return Err(refused("SUITE", name, &suites::names().join(", ")));
        }
        let is_asked = |suite: &Entry| {
            let named =
                self.suites.is_empty() || self.suites.iter().any(|name| name == suite.name());
            let has = |card: &'static Card| {
                let any_model = card.models.iter().any(|model| self.wants(model.name));
                any_model && !card.asked(self.scale, &self.sets).is_empty()
            };
            named && suite.trained().is_none_or(|suite| has(suite.card))
        };
        Ok(SUITES.iter().copied().filter(is_asked).collect())
    }

    /// The options that shards of one run have in common, as one line.
    pub(crate) fn described(&self, suites: &[Entry]) -> String {
        let suites: Vec<&str> = suites.iter().map(|suite| suite.name()).collect();
        let mut text = format!("a run of {} at scale {}", suites.join(", "), self.scale);
        for (option, names) in [("sets", &self.sets), ("models", &self.models)] {
            if !names.is_empty() {
                text += &format!(", {option} {}", names.join(", "));
            }
        }
        if let Some(epochs) = self.epochs {
            text += &format!(", {epochs} epochs");
        }
        format!("{text}, arithmetic {RESULTS}")
    }

    /// An option that was given and means something to tables of trained models only.
    fn of_tables_alone(&self) -> Option<(&'static str, String)> {
        let sets = (!self.sets.is_empty()).then(|| ("--set", self.sets.join(", ")));
        let models = (!self.models.is_empty()).then(|| ("--model", self.models.join(", ")));
        let epochs = self.epochs.map(|epochs| ("--epochs", epochs.to_string()));
        let data = self.data.as_ref();
        let data = data.map(|data| ("--data", data.display().to_string()));
        let import = self.import.first();
        let import = import.map(|directory| ("--import", directory.display().to_string()));
        let whole = self.shard == Shard::WHOLE;
        let shard = (!whole).then(|| ("--shard", self.shard.to_string()));
        sets.or(models).or(epochs).or(data).or(import).or(shard)
    }

    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let anything = Self {
            sets: Vec::new(),
            models: Vec::new(),
            ..self.clone()
        };
        let suites = anything.selected()?.into_iter();
        let asked: Vec<&'static Suite> = suites.filter_map(Entry::trained).collect();
        let cards: Vec<&Card> = asked.iter().map(|suite| suite.card).collect();
        if cards.is_empty() {
            return match self.of_tables_alone() {
                Some((option, given)) => {
                    let has = suites::trained().map(|suite| suite.card.name);
                    let has = has.collect::<Vec<_>>().join(", ");
                    Err(refused(
                        option,
                        &given,
                        &format!("nothing: only {has} have it"),
                    ))
                }
                None => self.check_numbers(),
            };
        }
        let names = |of: &dyn Fn(&&'static Card) -> Vec<&'static str>| {
            cards.iter().flat_map(of).collect::<Vec<_>>()
        };
        let sets = names(&|card| card.sets.iter().map(|set| set.name).collect());
        let models = names(&|card| card.models.iter().map(|model| model.name).collect());
        check_names("--set", &self.sets, sets)?;
        self.check_scale(&asked)?;
        check_names("--model", &self.models, models)?;
        self.check_numbers()
    }

    /// Refuses a set that no suite runs at the scale, and names the scales that run it.
    fn check_scale(&self, suites: &[&'static Suite]) -> Result<(), Error> {
        for name in &self.sets {
            let scales = scales(suites, name);
            if !scales.contains(&self.scale) {
                let scales: Vec<&str> = scales.into_iter().map(Scale::name).collect();
                let expected = format!(
                    "a set that scale {} runs; {name} is run with --scale {}",
                    self.scale,
                    scales.join(" or --scale ")
                );
                return Err(refused("--set", name, &expected));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        for (option, number) in [
            ("--jobs", Some(self.jobs)),
            ("--threads", Some(self.threads)),
            ("--epochs", self.epochs),
        ] {
            if number == Some(0) {
                return Err(refused(option, "0", "at least 1"));
            }
        }
        Ok(())
    }
}

/// The scales at which some of the suites have arms on a set.
pub(crate) fn scales(suites: &[&'static Suite], set: &str) -> Vec<Scale> {
    let runs = |scale: &Scale| {
        suites.iter().any(|suite| {
            let sets = suite.card.asked(*scale, &[set.to_owned()]);
            let frame = Frame {
                scale: *scale,
                epochs: None,
                on_request: OnRequest::LeftOut,
            };
            let plan = Plan::new(suite.card, &sets, frame, Choices::None);
            !plan.arms.is_empty()
        })
    };
    let all = [Scale::Smoke, Scale::Desk, Scale::Paper];
    all.into_iter().filter(runs).collect()
}

/// Refuses a name that is not among those that the suites asked for know, in any case.
fn check_names(
    option: &'static str,
    names: &[String],
    mut known: Vec<&'static str>,
) -> Result<(), Error> {
    known.sort_unstable();
    known.dedup();
    let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    match names.iter().find(|name| !is_known(name)) {
        // Names of models hold commas.
        Some(name) => Err(refused(
            option,
            name,
            &format!("one of: {}", known.join("; ")),
        )),
        None => Ok(()),
    }
}

fn refused(option: &'static str, given: &str, expected: &str) -> Error {
    Error::InvalidOption {
        option,
        given: given.to_owned(),
        expected: expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;
    use crate::suites::{CLASSIFICATION, REGRESSION, TRANSLATION};

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
                jobs: 0,
                ..Config::default()
            },
            Config {
                epochs: Some(0),
                ..Config::default()
            },
        ];
        for (config, option) in bad.iter().zip([
            "SUITE", "--set", "--set", "--set", "--model", "--model", "--jobs", "--epochs",
        ]) {
            let error = config.check().unwrap_err();
            assert!(matches!(error, Error::InvalidOption { option: o, .. } if o == option));
        }
        assert!(Config::default().check().is_ok());
    }

    fn names(config: &Config) -> Vec<&'static str> {
        config
            .selected()
            .unwrap()
            .into_iter()
            .map(Entry::name)
            .collect()
    }

    #[test]
    fn suites_run_once_and_in_their_order() {
        let config = |names: &[&str]| Config {
            suites: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Config::default()
        };
        assert_eq!(names(&config(&[])), suites::names());
        let twice = config(&["regression", "propositions", "regression"]);
        assert_eq!(names(&twice), ["propositions", "regression"]);
    }

    #[test]
    fn sets_and_models_are_found_by_name_in_any_case_and_choose_the_suites() {
        let set = |name: &str| Config {
            sets: vec![name.into()],
            ..Config::default()
        };
        let model = |name: &str| Config {
            models: vec![name.into()],
            ..Config::default()
        };
        for (config, has, has_not) in [
            (set("CO2"), "regression", "nodes"),
            (set("Citeseer"), "nodes", "regression"),
            (model("gcn"), "nodes", "regression"),
            (model("gp (sm)"), "regression", "nodes"),
        ] {
            config.check().unwrap();
            let names = names(&config);
            assert!(
                names.contains(&has) && !names.contains(&has_not),
                "{names:?}"
            );
        }
        assert!(
            model("gcn").wants("GCN")
                && !model("gcn").wants("GAT")
                && Config::default().wants("IKAN")
        );
    }

    #[test]
    fn a_set_is_asked_for_by_its_name_in_any_case_and_not_by_its_title() {
        let config = |name: &str| Config {
            sets: vec![name.into()],
            scale: Scale::Paper,
            ..Config::default()
        };
        let suites: [(&'static Suite, &str, &str); 5] = [
            (&REGRESSION, "housing", "Housing"),
            (&REGRESSION, "Housing", "Housing"),
            (&CLASSIFICATION, "SST2", "SST"),
            // This is also the title of another set.
            (&TRANSLATION, "IWSLT14", "IWSLT14-28k"),
            (&TRANSLATION, "IWSLT14-full", "IWSLT14"),
        ];
        for (suite, name, title) in suites {
            let config = config(name);
            config.check().unwrap();
            let asked = suite.card.asked(Scale::Desk, &config.sets);
            let asked: Vec<&str> = asked.iter().map(|set| set.title).collect();
            assert_eq!(asked, [title], "{name}");
        }
        for (title, name) in [("SST", "sst2"), ("IWSLT14-28k", "iwslt14")] {
            let error = config(title).check().unwrap_err().to_string();
            let is_refused = error.starts_with("--set was given as");
            assert!(is_refused && error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_set_that_a_scale_does_not_run_is_refused_with_the_scales_that_do() {
        for (suite, set, scales) in [
            (
                "classification",
                "mr",
                "mr is run with --scale desk or --scale paper",
            ),
            ("translation", "iwslt14-full", "is run with --scale paper"),
            (
                "figure4",
                "housing",
                "is run with --scale desk or --scale paper",
            ),
        ] {
            let config = Config {
                suites: vec![suite.into()],
                sets: vec![set.into()],
                ..Config::default()
            };
            let error = config.check().unwrap_err().to_string();
            assert!(error.ends_with(scales), "{error}");
        }
    }
}
