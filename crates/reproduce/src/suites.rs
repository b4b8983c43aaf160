//! The suites, one file each.
//!
//! A suite that trains nothing, or only what takes seconds, is a [`Study`] in a file here, and a line in [`SUITES`]: a
//! function for each statement, which returns numbers and where they must lie.
//!
//! A new suite of training runs is a file here, and a line in [`SUITES`]:
//!
//! 1. A [`Card`](bochner_report::suite::Card): names of sets and models as the paper has them, the metric and its direction, the
//!    baseline, the published numbers, and the texts of the report.
//! 2. [`arms`](bochner_report::suite::Experiment::arms) of a set at a scale. An [`Arm`](bochner_report::plan::Arm) is a model with its splits or seeds and its
//!    settings, any serde struct with a field `epochs`: best the model's and the training's own types, whole. An arm that
//!    depends on a choice is left out until
//!    [`Choices::best`](bochner_report::plan::Choices::best) has made it from arms of [`Role::Choice`](bochner_report::plan::Role::Choice).
//! 3. [`load`](Suite::load) and [`Source::start`](crate::suite::Source::start): a data set in memory, and a
//!    [`Trial`](crate::Trial) for each unit. Trials of the models of this workspace are in [`trial`](crate::trial).
//! 4. [`claims`](bochner_report::suite::Experiment::claims) as data. The tests of this module refuse a claim about a model that no arm has.
//! 5. [`checks`](Suite::checks) of scale `smoke`, and [`report`](bochner_report::suite::Experiment::report), put together from
//!    [`sections`](bochner_report::sections).
//!
//! Whatever decides a result is in a unit, whose id is a fingerprint of it: once rows of a suite are published, its names
//! stay as they are, and so do the names and values of its settings, wherever they stand
//! ([`Settings::agree_with`](bochner_report::Settings::agree_with)).

mod bipolar;
mod cat;
mod causal;
mod classification;
mod datapoints;
mod depth;
mod edges;
mod explanations;
mod figure2;
mod figure4;
mod figure5;
mod flow;
mod nodes;
mod performer;
mod primal;
mod regression;
mod time;
mod traces;
mod translation;
mod translations;

pub use bipolar::BIPOLAR;
pub use cat::CAT;
pub use causal::CAUSAL;
pub use classification::CLASSIFICATION;
pub use datapoints::DATAPOINTS;
pub use depth::DEPTH;
pub use explanations::EXPLANATIONS;
pub use figure2::FIGURE_2;
pub use figure4::FIGURE_4;
pub use figure5::FIGURE_5;
pub use flow::FLOW;
pub use nodes::NODES;
pub use performer::PERFORMER;
pub use primal::PRIMAL;
pub use regression::REGRESSION;
pub use time::TIME;
pub use translation::TRANSLATION;

use crate::complexity::COMPLEXITY;
use crate::propositions::PROPOSITIONS;
use crate::study::Study;
use crate::suite::Suite;

/// A suite that can be asked for by name.
#[derive(Clone, Copy)]
pub enum Entry {
    /// It is made of training runs.
    Trained(&'static dyn Suite),
    /// Its statements are measured in one go.
    Study(&'static Study),
}

/// All suites, in the order in which they are run: the longest last.
pub const SUITES: [Entry; 19] = [
    Entry::Study(&PROPOSITIONS),
    Entry::Study(&CAUSAL),
    Entry::Study(&EXPLANATIONS),
    Entry::Study(&DEPTH),
    Entry::Study(&PERFORMER),
    Entry::Study(&BIPOLAR),
    Entry::Study(&FLOW),
    Entry::Study(&PRIMAL),
    Entry::Study(&CAT),
    Entry::Study(&COMPLEXITY),
    Entry::Trained(&DATAPOINTS),
    Entry::Trained(&TIME),
    Entry::Trained(&FIGURE_2),
    Entry::Trained(&FIGURE_4),
    Entry::Trained(&FIGURE_5),
    Entry::Trained(&NODES),
    Entry::Trained(&CLASSIFICATION),
    Entry::Trained(&REGRESSION),
    Entry::Trained(&TRANSLATION),
];

/// So many splits, each with its number as its seed.
fn folds(n: usize) -> impl Iterator<Item = (usize, u64)> {
    (0..n).map(|fold| (fold, fold as u64))
}

/// So many seeds on one split.
fn seeds(n: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..n).map(|seed| (0, seed))
}

impl Entry {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trained(suite) => suite.card().name,
            Self::Study(study) => study.name,
        }
    }

    /// The suite, if it is made of training runs.
    pub fn trained(self) -> Option<&'static dyn Suite> {
        match self {
            Self::Trained(suite) => Some(suite),
            Self::Study(_) => None,
        }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests;
