//! From a configuration to reports, suite by suite.

mod nodes;
mod regression;
mod table;

pub use table::TableRun;

use crate::assessment::Assessment;
use crate::{Config, Error, Store, SuiteName, complexity, propositions};
use std::sync::atomic::AtomicBool;

/// What a reproduction has done.
#[derive(Debug, Default)]
pub struct Reproduction {
    /// The suites that are measured in one go.
    pub assessments: Vec<Assessment>,
    /// The tables of trained models.
    pub tables: Vec<TableRun>,
}

/// Runs the suites that the configuration asks for and reports on each.
///
/// Units of training that are finished are not run again. When `interrupt` is set, running units
/// save how far they are and the reports cover what is finished; the next call goes on from there.
/// Suites without units belong to the first shard.
///
/// # Errors
/// An option that cannot be used, an output directory that cannot be written, a damaged result.
pub fn reproduce(config: &Config, interrupt: &AtomicBool) -> Result<Reproduction, Error> {
    config.check()?;
    let store = Store::open(&config.out)?;
    let mut done = Reproduction::default();
    for suite in config.selected()? {
        if done.is_interrupted() {
            break;
        }
        match suite {
            SuiteName::Regression => {
                done.tables
                    .push(regression::run_all(config, &store, interrupt)?);
            }
            SuiteName::Nodes => {
                done.tables.push(nodes::run_all(config, &store, interrupt)?);
            }
            _ if !config.shard.holds(0) => {}
            SuiteName::Propositions => {
                done.assessments
                    .push(propositions::run(config, &store, interrupt)?);
            }
            SuiteName::Complexity => {
                done.assessments
                    .push(complexity::run(config, &store, interrupt)?);
            }
        }
    }
    Ok(done)
}

impl Reproduction {
    /// Whether everything that was asked for ran and nothing that was checked failed.
    pub fn is_good(&self) -> bool {
        self.assessments.iter().all(|suite| suite.passed)
            && self.tables.iter().all(TableRun::is_good)
    }

    /// Whether the run was interrupted before its end.
    pub fn is_interrupted(&self) -> bool {
        self.assessments.iter().any(|suite| suite.interrupted)
            || self.tables.iter().any(|run| run.outcome.interrupted)
    }

    /// A few lines for the terminal.
    pub fn summary(&self) -> String {
        let suites = self.assessments.iter();
        let suites = suites.map(|suite| format!("{}\n{}", suite.suite, suite.summary()));
        let tables = self.tables.iter();
        let tables = tables.map(|run| format!("{}\n{}", run.suite, run.summary()));
        suites.chain(tables).collect::<Vec<_>>().join("\n")
    }
}
