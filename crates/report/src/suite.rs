//! The declaration of a suite: everything about an experiment that is not shared with all others.

mod metric;
mod published;

pub use metric::{Direction, Metric, Shown};
pub use published::{Line, Published, about, line};

use crate::Scale;
use crate::claim::Claim;
use crate::plan::{Arm, Choices};
use crate::sections::{Columns, NAMES, Section};

/// The declaration of a table or a figure that is made of training runs: names, numbers, texts, arms and claims.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// The name on the command line and in file names, such as `regression`.
    pub name: &'static str,
    /// Its version: raised when what it does with the same settings changes. Units of another version are other units.
    pub version: u32,
    /// The table or figure of the paper, as rows name it.
    pub table: &'static str,
    /// The title of the report.
    pub title: &'static str,
    /// The data sets, in the paper's order.
    pub sets: &'static [Set],
    /// The models, in the paper's order.
    pub models: &'static [Model],
    /// The metric.
    pub metric: Metric,
    /// The model that others are compared with.
    pub baseline: &'static str,
    /// The baseline's name in a sentence.
    pub against: &'static str,
    /// The published values.
    pub published: &'static [Line],
    /// The text before the first table.
    pub opening: &'static str,
    /// The texts about the scales `smoke`, `desk` and `paper`.
    pub scopes: [&'static str; 3],
    /// The sizes of scale `smoke`, in words: a note of its page, below the text of its scope.
    pub smoke: &'static str,
    /// Decisions about what the paper leaves open.
    pub decided: &'static [&'static str],
    /// Returns the arms of a set, as far as they are known: an arm that depends on a choice is left out until
    /// [`At::choices`] has it.
    pub arms: fn(&At<'_>) -> Vec<Arm>,
    /// The titles of the sets on which settings of all others are chosen.
    pub chosen_on: &'static [&'static str],
    /// Returns the claims of the paper, written down before anything is run.
    pub claims: fn() -> Vec<Claim>,
    /// The columns that name an arm in tables.
    pub names: Columns<'static>,
    /// The pictures, which follow the verdicts.
    pub pictures: &'static [Section],
    /// The tables, which follow the pictures. Behind them stands what was run, and what was not.
    pub tables: &'static [Section],
}

/// A data set of a suite.
#[derive(Debug, PartialEq)]
pub struct Set {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in tables and rows.
    pub title: &'static str,
    /// Its number of rows: small sets run first.
    pub size: usize,
    /// The smallest scale at which the set is run without being asked for by name.
    pub from: Scale,
    /// The validation value, as it is shown, that the baseline must reach for the set to be judged.
    pub gate: Option<f64>,
    /// The validation value, as it is shown, below which the report calls the baseline badly trained.
    pub poor_below: Option<f64>,
    /// The test value, as it is shown, above which a leak is more likely than a good model.
    pub suspect_above: Option<f64>,
}

/// A model of a suite.
#[derive(Debug, PartialEq, Eq)]
pub struct Model {
    /// The name in tables, in rows and on the command line.
    pub name: &'static str,
    /// The models that it is compared with, split by split.
    pub against: &'static [&'static str],
    /// The model that lacks one thing that this one has, and this thing: their difference is what it brings.
    pub simpler: Option<(&'static str, &'static str)>,
    /// Whether a claim rests on it. All others are reported, not judged.
    pub judged: bool,
    /// Whether it runs only where it is asked for by name.
    pub on_request: bool,
}

impl Set {
    /// A set: its name on the command line, its title, its rows, the smallest scale that runs it unasked.
    pub const fn new(name: &'static str, title: &'static str, size: usize, from: Scale) -> Self {
        Self {
            name,
            title,
            size,
            from,
            gate: None,
            poor_below: None,
            suspect_above: None,
        }
    }

    /// The set, judged only if the baseline reaches this value in validation.
    pub const fn judged_from(self, gate: f64) -> Self {
        Self {
            gate: Some(gate),
            ..self
        }
    }

    /// The set, on which the report calls a baseline that reaches less than this in validation badly trained.
    pub const fn poor_below(self, limit: f64) -> Self {
        Self {
            poor_below: Some(limit),
            ..self
        }
    }

    /// The set, on which the report calls for a search for a leak if a model has more than this on the test part.
    pub const fn suspect_above(self, limit: f64) -> Self {
        Self {
            suspect_above: Some(limit),
            ..self
        }
    }
}

impl Model {
    /// A model that is reported, not judged, and what it is compared with.
    pub const fn new(name: &'static str, against: &'static [&'static str]) -> Self {
        Self {
            name,
            against,
            simpler: None,
            judged: false,
            on_request: false,
        }
    }

    /// The model, compared as well with one that lacks one thing.
    pub const fn after(self, simpler: &'static str, thing: &'static str) -> Self {
        Self {
            simpler: Some((simpler, thing)),
            ..self
        }
    }

    /// The model, run only where it is asked for by name.
    pub const fn on_request(self) -> Self {
        Self {
            on_request: true,
            ..self
        }
    }

    /// The model, on which a claim rests.
    pub const fn judged(self) -> Self {
        Self {
            judged: true,
            ..self
        }
    }
}

impl Card {
    /// A card without content, for what a suite does not name: version 1, with repetitions at scale `smoke`.
    pub const EMPTY: Self = Self {
        name: "",
        version: 1,
        table: "",
        title: "",
        sets: &[],
        models: &[],
        metric: Metric::RMSE,
        baseline: "",
        against: "",
        published: &[],
        opening: "",
        scopes: [""; 3],
        smoke: "",
        decided: &[],
        arms: |_| Vec::new(),
        chosen_on: &[],
        claims: Vec::new,
        names: NAMES,
        pictures: &[],
        tables: &[],
    };

    /// The set with this title.
    pub fn set(&self, title: &str) -> Option<&'static Set> {
        self.sets.iter().find(|set| set.title == title)
    }

    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&'static Model> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Whether the model of this name runs only where it is asked for.
    pub fn is_on_request(&self, name: &str) -> bool {
        self.model(name).is_some_and(|model| model.on_request)
    }

    /// The sets of a scale, or those asked for by name.
    pub fn asked(&'static self, scale: Scale, names: &[String]) -> Vec<&'static Set> {
        let is_named = |set: &Set| names.iter().any(|name| name.eq_ignore_ascii_case(set.name));
        let asked = |set: &&Set| match names {
            [] => set.from <= scale,
            _ => is_named(set),
        };
        self.sets.iter().filter(asked).collect()
    }

    /// The published value of a model on a set, by its title.
    pub fn published(&self, model: &str, set: &str) -> Option<Published> {
        let column = self.sets.iter().position(|other| other.title == set)?;
        let line = self.published.iter().find(|line| line.model == model)?;
        line.values.get(column).copied()
    }

    /// The published gain of a model over a share of the loss of another, in the mean over sets; `None` unless the paper
    /// prints both on all of them.
    pub fn published_gain(
        &self,
        [model, other]: [&str; 2],
        share: f64,
        sets: &[&str],
    ) -> Option<f64> {
        let on = |set: &&str| {
            let [own, other] = [model, other].map(|name| self.published(name, set));
            Some(self.metric.shown_gain(own?.mean, other?.mean, share))
        };
        let gains: Option<Vec<f64>> = sets.iter().map(on).collect();
        crate::statistics::mean(&gains?).ok()
    }
}

/// The circumstances under which the arms of a set are asked for.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The suite.
    pub card: &'static Card,
    /// The scale.
    pub scale: Scale,
    /// The set.
    pub set: &'static Set,
    /// Epochs other than the scale's.
    pub epochs: Option<usize>,
    /// The choices of earlier runs.
    pub choices: Choices<'a>,
}

impl At<'_> {
    /// The value of the scale, out of those of the scales `smoke`, `desk` and `paper`.
    pub fn of_scale<T: Copy>(&self, values: [T; 3]) -> T {
        values[self.scale as usize]
    }
}
