//! From a configuration to reports, suite by suite.

use crate::run::{SuiteRun, run_suite};
use crate::store::atomic;
use crate::suites::{Entry, SUITES};
use crate::{Config, Error, Store};
use bochner_report::archive::Archive;
use bochner_report::page;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The outcome of a reproduction.
#[derive(Debug, Default)]
pub struct Reproduction {
    /// The suites asked for.
    pub suites: Vec<&'static str>,
    /// The suites that were run.
    pub runs: Vec<SuiteRun>,
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
    reproduce_suites(&config.named()?, config, interrupt)
}

/// Runs suites, which may be those of another crate, as [`reproduce`] runs those that the configuration names: its names of
/// suites are not looked at.
///
/// # Errors
/// The errors of [`reproduce`], and [`Error::Report`] for a card that contradicts itself or a claim about what no arm has.
pub fn reproduce_suites(
    suites: &[Entry],
    config: &Config,
    interrupt: &AtomicBool,
) -> Result<Reproduction, Error> {
    config.check(suites)?;
    let suites = &config.selected(suites)[..];
    let store = Store::share(&config.out, config.shard, &config.described(suites))?;
    let mut done = Reproduction {
        suites: suites.iter().map(|suite| suite.name()).collect(),
        ..Reproduction::default()
    };
    for &suite in suites {
        if done.is_interrupted() {
            break;
        }
        done.runs.push(match suite {
            Entry::Trained(suite) => run_suite(suite, config, &store, interrupt)?,
            Entry::Study(study) if config.shard.holds(0) => study.run(config, &store, interrupt)?,
            Entry::Study(_) => continue,
        });
    }
    Ok(done)
}

/// Judges the rows of an archive, and of others beside it, by the rules of today. Writes its page, `report.md`, with its
/// pictures into its directory. Returns the verdicts in words.
///
/// # Errors
/// [`Error::Report`] for a line that is no row. [`Error::NoSuite`] if the rows are of none of the suites of training runs.
/// [`Error::Io`].
pub fn report(directory: &Path, with: &[PathBuf], html: bool) -> Result<String, Error> {
    report_suites(SUITES, directory, with, html)
}

/// Writes the page of an archive of one of these suites, which may be those of another crate, as [`report`] does.
///
/// # Errors
/// The errors of [`report`].
pub fn report_suites(
    suites: &[Entry],
    directory: &Path,
    with: &[PathBuf],
    html: bool,
) -> Result<String, Error> {
    let mut archive = Archive::read(directory)?;
    for other in with {
        archive.extend(Archive::read(other)?);
    }
    let first = archive.rows.first().map(|row| &row.unit);
    let suite = first.and_then(|unit| {
        let trained = suites.iter().filter_map(|suite| suite.trained());
        let mut named = trained.filter(|suite| suite.card.name == unit.suite);
        Some((named.next()?, unit.scale))
    });
    let Some((suite, scale)) = suite else {
        return Err(Error::NoSuite {
            path: directory.to_owned(),
            suite: first.map(|unit| unit.suite.clone()),
        });
    };
    let page = page::of_archive(suite.card, scale, &archive);
    let markdown = ("report.md".to_owned(), page.to_markdown());
    let html = html.then(|| ("report.html".to_owned(), page.document.to_html()));
    let files = page.document.files().chain([markdown]).chain(html);
    for (name, text) in files {
        atomic::write(&directory.join(name), text.as_bytes())?;
    }
    let claims = page.claims.iter();
    let said = claims.map(|claim| format!("{}: {}: {}\n", claim.name, claim.text, claim.verdict));
    Ok(said.collect())
}

impl Reproduction {
    /// Whether everything that was asked for ran to its end and nothing that was checked failed.
    ///
    /// Sets that cannot be had may be missing ([`SuiteRun::passed`]), but not so many that there is
    /// nothing to run and nothing to show.
    pub fn is_good(&self) -> bool {
        let is_whole = !self.is_void() && !self.is_interrupted();
        is_whole && self.runs.iter().all(|run| run.passed)
    }

    /// Whether for want of data there is nothing to run and no result from before.
    fn is_void(&self) -> bool {
        self.runs.len() == self.suites.len()
            && self.runs.iter().any(|run| !run.skipped.is_empty())
            && self.runs.iter().all(|run| run.units == 0)
    }

    /// Whether the run was interrupted before its end.
    pub fn is_interrupted(&self) -> bool {
        self.runs.iter().any(|run| run.outcome.interrupted)
    }

    /// A few lines for the terminal.
    pub fn summary(&self) -> String {
        let runs = self.runs.iter();
        let runs = runs.map(|run| format!("{}\n{}\n", run.suite, run.summary.join("\n")));
        let nothing = "nothing was run: the data of every set are missing or wrong\n";
        let void = self.is_void().then(|| nothing.to_owned());
        runs.chain(void).collect::<Vec<_>>().join("\n")
    }
}
