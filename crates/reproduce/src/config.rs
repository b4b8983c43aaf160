//! The configuration of a reproduction.

use crate::suite::Suite;
use crate::suites::{self, Entry, SUITES};
use crate::{Error, Shard};
use bochner_datasets::{DataStore, Policy};
use bochner_models::RESULTS;
use bochner_report::Scale;
use bochner_report::plan::{Choices, Frame, OnRequest, Plan};
use bochner_report::suite::Card;
use std::collections::BTreeSet;
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
    /// The data files.
    ///
    /// # Errors
    /// The directory of data files is not there.
    pub fn files(&self) -> Result<DataStore, Error> {
        let files = DataStore::new(self.downloads);
        Ok(match &self.data {
            Some(directory) => files.with_directory(directory)?,
            None => files,
        })
    }

    /// Whether a model is asked for.
    pub(crate) fn wants(&self, model: &str) -> bool {
        let mut named = self.models.iter();
        self.models.is_empty() || named.any(|name| name.eq_ignore_ascii_case(model))
    }

    /// The suites asked for by name, in the order in which they are run.
    pub(crate) fn named(&self) -> Result<Vec<Entry>, Error> {
        let is_known = |name: &&String| SUITES.iter().any(|suite| suite.name() == **name);
        if let Some(name) = self.suites.iter().find(|name| !is_known(name)) {
            return Err(refused("SUITE", name, &suites::names().join(", ")));
        }
        let is_named = |suite: &Entry| {
            self.suites.is_empty() || self.suites.iter().any(|name| name == suite.name())
        };
        Ok(SUITES.iter().copied().filter(is_named).collect())
    }

    /// The suites without those that have none of the sets and models asked for.
    pub(crate) fn selected(&self, suites: &[Entry]) -> Vec<Entry> {
        let has = |card: &'static Card| {
            let any_model = card.models.iter().any(|model| self.wants(model.name));
            any_model && !card.asked(self.scale, &self.sets).is_empty()
        };
        let is_asked = |suite: &Entry| suite.trained().is_none_or(|suite| has(suite.card));
        suites.iter().copied().filter(is_asked).collect()
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

    /// Refuses what cannot be run of these suites.
    pub(crate) fn check(&self, suites: &[Entry]) -> Result<(), Error> {
        let suites = suites.iter().copied();
        let asked: Vec<&'static Suite> = suites.filter_map(Entry::trained).collect();
        if asked.is_empty() {
            self.check_studies()?;
        }
        let known = |names: fn(&Card) -> Vec<&'static str>| {
            let names: BTreeSet<&str> = asked.iter().flat_map(|suite| names(suite.card)).collect();
            Vec::from_iter(names)
        };
        let sets = known(|card| card.sets.iter().map(|set| set.name).collect());
        let models = known(|card| card.models.iter().map(|model| model.name).collect());
        for (option, names, known) in [
            ("--set", &self.sets, sets),
            ("--model", &self.models, models),
        ] {
            let is_known =
                |name: &String| known.iter().any(|known| known.eq_ignore_ascii_case(name));
            if let Some(name) = names.iter().find(|name| !is_known(name)) {
                // Names of models hold commas.
                let expected = format!("one of: {}", known.join("; "));
                return Err(refused(option, name, &expected));
            }
        }
        for name in &self.sets {
            let scales = scales(&asked, name);
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

    /// Refuses an option that was given and means something to tables of trained models only.
    fn check_studies(&self) -> Result<(), Error> {
        let path = |path: &PathBuf| path.display().to_string();
        let whole = self.shard == Shard::WHOLE;
        let given = [
            ("--set", self.sets.first().cloned()),
            ("--model", self.models.first().cloned()),
            ("--epochs", self.epochs.map(|epochs| epochs.to_string())),
            ("--data", self.data.as_ref().map(path)),
            ("--import", self.import.first().map(path)),
            ("--shard", (!whole).then(|| self.shard.to_string())),
        ];
        let mut given = given.into_iter();
        let Some((option, given)) = given.find_map(|(option, given)| Some((option, given?))) else {
            return Ok(());
        };
        let have: Vec<&str> = suites::trained().map(|suite| suite.card.name).collect();
        let expected = format!("nothing: only {} have it", have.join(", "));
        Err(refused(option, &given, &expected))
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
    Scale::ALL.into_iter().filter(runs).collect()
}

fn refused(option: &'static str, given: &str, expected: &str) -> Error {
    Error::InvalidOption {
        option,
        given: given.to_owned(),
        expected: expected.to_owned(),
    }
}
