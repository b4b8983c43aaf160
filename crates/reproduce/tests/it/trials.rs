//! The trials of each kind of model, by hand or by what must not change them.

mod datapoints;
mod events;
mod gaussian_process;
mod heads;
mod sentences;
mod translation;

use bochner_datasets::{DataStore, Policy};
use bochner_report::{Scale, Unit};
use bochner_reproduce::Suite;
use bochner_reproduce::suite::Source;

/// The data of a set that needs no file, and the first unit of a model on it at scale smoke.
fn of_smoke(suite: &'static Suite, set: &str, model: &str) -> (Box<dyn Source>, Unit) {
    let plan = crate::suites::plan(suite, Scale::Smoke);
    let unit = plan.claimed(set, model).unwrap().units[0].clone();
    let files = DataStore::new(Policy::Offline);
    let set = suite.card.set(set).unwrap();
    let source = (suite.load)(set, &plan.of_set(set.title), &files);
    (source.unwrap(), unit)
}
