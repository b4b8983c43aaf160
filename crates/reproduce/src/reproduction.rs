//! From a configuration to reports, suite by suite.

use crate::assessment::Assessment;
use crate::run::{SuiteRun, run_suite};
use crate::suites::{Entry, trained};
use crate::{Config, Error, Store, store};
use bochner_report::archive::Archive;
use bochner_report::page;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The outcome of a reproduction.
#[derive(Debug, Default)]
pub struct Reproduction {
    /// The suites asked for.
    pub suites: Vec<&'static str>,
    /// The suites that are measured in one go.
    pub assessments: Vec<Assessment>,
    /// The tables of trained models.
    pub tables: Vec<SuiteRun>,
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
    reproduce_suites(&config.selected()?, config, interrupt)
}

/// Runs suites, which may be those of another crate, as [`reproduce`] runs those that the configuration names: its names of
/// suites are not looked at.
///
/// # Errors
/// An output directory that cannot be written, a damaged result.
pub fn reproduce_suites(
    suites: &[Entry],
    config: &Config,
    interrupt: &AtomicBool,
) -> Result<Reproduction, Error> {
    let store = Store::share(&config.out, config.shard, &config.described(suites))?;
    let mut done = Reproduction {
        suites: suites.iter().map(|suite| suite.name()).collect(),
        ..Reproduction::default()
    };
    for &suite in suites {
        if done.is_interrupted() {
            break;
        }
        match suite {
            Entry::Trained(suite) => done
                .tables
                .push(run_suite(suite, config, &store, interrupt)?),
            Entry::Study(study) if config.shard.holds(0) => {
                done.assessments.push(study.run(config, &store, interrupt)?);
            }
            Entry::Study(_) => {}
        }
    }
    Ok(done)
}

/// Judges the rows of an archive, and of others beside it, by the rules of today. Writes its page, `report.md`, with its
/// pictures into its directory. Returns the verdicts in words.
///
/// # Errors
/// [`Error::Report`] for a line that is no row. [`Error::NoSuite`] if the rows are of no suite of training runs. [`Error::Io`].
pub fn report(directory: &Path, with: &[PathBuf], html: bool) -> Result<String, Error> {
    let mut archive = Archive::read(directory)?;
    for other in with {
        archive.extend(Archive::read(other)?);
    }
    let first = archive.rows.first().map(|row| &row.unit);
    let suite = first.and_then(|unit| {
        let mut named = trained().filter(|suite| suite.card.name == unit.suite);
        Some((named.next()?, unit.scale))
    });
    let Some((suite, scale)) = suite else {
        return Err(Error::NoSuite {
            path: directory.to_owned(),
        });
    };
    let page = page::of_archive(suite.card, scale, &archive);
    let markdown = ("report.md".to_owned(), page.to_markdown());
    let html = html.then(|| ("report.html".to_owned(), page.document.to_html()));
    let files = page.document.files().chain([markdown]).chain(html);
    for (name, text) in files {
        store::write_file(&directory.join(name), text.as_bytes())?;
    }
    let claims = page.claims.iter();
    let said = claims.map(|claim| format!("{}: {}: {}\n", claim.name, claim.text, claim.verdict));
    Ok(said.collect())
}

impl Reproduction {
    /// Whether everything that was asked for ran and nothing that was checked failed.
    ///
    /// Sets that cannot be had may be missing ([`SuiteRun::is_good`]), but not so many that there is
    /// nothing to run and nothing to show.
    pub fn is_good(&self) -> bool {
        !self.is_void()
            && self.assessments.iter().all(|suite| suite.passed)
            && self.tables.iter().all(SuiteRun::is_good)
    }

    /// Whether for want of data there is nothing to run and no result from before.
    fn is_void(&self) -> bool {
        let skips = |run: &SuiteRun| !run.skipped.is_empty();
        self.tables.len() == self.suites.len()
            && self.tables.iter().any(skips)
            && self.tables.iter().all(|run| run.units == 0)
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
        let nothing = "nothing was run: the data of every set are missing or wrong\n";
        let void = self.is_void().then(|| nothing.to_owned());
        suites
            .chain(tables)
            .chain(void)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Outcome;
    use bochner_report::skipped::{Remedy, Skipped};

    fn table(suite: &'static str, units: usize) -> SuiteRun {
        let skipped = Skipped {
            set: "Cora".into(),
            reason: "nowhere".into(),
            remedy: Remedy::Fetch("curl x".into()),
        };
        SuiteRun {
            suite,
            outcome: Outcome::default(),
            units,
            imported: 0,
            left_out: vec![],
            skipped: vec![skipped],
            by_name: false,
            checks: vec![],
            claims: vec![],
            files: vec![],
        }
    }

    #[test]
    fn skipping_is_no_failure_unless_nothing_is_left() {
        let of = |tables: Vec<SuiteRun>| Reproduction {
            suites: tables.iter().map(|run| run.suite).collect(),
            tables,
            ..Reproduction::default()
        };
        let mut nothing = of(vec![table("nodes", 0)]);
        assert!(!nothing.is_good());
        let summary = nothing.summary();
        let last = summary.lines().last().unwrap();
        assert!(last.starts_with("nothing was run"), "{summary}");

        let rest = of(vec![table("nodes", 0), table("regression", 3)]);
        assert!(rest.is_good() && !rest.summary().contains("nothing was run"));

        // Other parts of the list have units, or this one belongs to another part.
        assert!(of(vec![table("regression", 39)]).is_good());
        nothing.suites.push("propositions");
        assert!(nothing.is_good());
    }

    #[test]
    fn a_wrong_file_is_named_with_what_to_do_and_the_other_sets_run() {
        for (suite, file, sets) in [
            (
                "regression",
                "housing/housing.data",
                ["housing", "passenger"],
            ),
            ("classification", "cr/custrev.all", ["cr", "generated"]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let data = directory.path().join("data");
            std::fs::create_dir_all(data.join(file).parent().unwrap()).unwrap();
            std::fs::write(data.join(file), b"9 caf\xe9\n").unwrap();
            let config = Config {
                suites: vec![suite.into()],
                sets: sets.map(str::to_owned).to_vec(),
                models: vec!["Transformer".into()],
                data: Some(data),
                downloads: bochner_datasets::Policy::Offline,
                out: directory.path().join("out"),
                epochs: Some(1),
                ..Config::default()
            };
            let done = reproduce(&config, &AtomicBool::new(false)).unwrap();
            let run = &done.tables[0];
            assert!(run.outcome.computed > 0 && !run.is_good());
            let [skipped] = &run.skipped[..] else {
                panic!("{:?}", run.skipped)
            };
            assert_eq!(skipped.remedy, Remedy::Repair);
            let name = file.split('/').next_back().unwrap();
            assert!(skipped.reason.contains(name), "{}", skipped.reason);
        }
    }
}
