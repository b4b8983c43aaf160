//! A run of a suite that is made of training runs: load, decide, train, judge, report.

use crate::runner::{self, Outcome};
use crate::store::Imports;
use crate::suite::{Source, Suite};
use crate::trial::AnyError;
use crate::versions::stamp;
use crate::{Config, Error, Store, Trial};
use bochner_datasets::DataStore;
use bochner_report::archive::Left;
use bochner_report::check::{self, Checked, Mark};
use bochner_report::claim::check_card;
use bochner_report::judge::{Judged, judge};
use bochner_report::plan::{Choices, Frame, OnRequest, Plan, Role};
use bochner_report::row::{Artefacts, Row};
use bochner_report::suite::Set;
use bochner_report::{Account, Results, Scale, Skipped, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// The outcome of a run of a suite.
#[derive(Debug)]
pub struct SuiteRun {
    /// The suite.
    pub suite: &'static str,
    /// The units that were run; none of a study.
    pub outcome: Outcome,
    /// The number of units, or of measures, there are to run or to show, in all parts of the list together.
    pub units: usize,
    /// Sets that were left out.
    pub skipped: Vec<Skipped>,
    /// Whether everything that was asked for ran and nothing that was checked failed. A set that cannot be had may be
    /// missing unless it was asked for by name; a wrong file never.
    pub passed: bool,
    /// Lines for the terminal.
    pub summary: Vec<String>,
}

/// Data and decisions that training starts from.
struct Loaded<'a> {
    suite: &'static Suite,
    config: &'a Config,
    store: &'a Store,
    sources: BTreeMap<&'static str, Box<dyn Source>>,
    skipped: Vec<Skipped>,
    sets: Vec<&'static Set>,
    /// The titles of those that were asked for; the others are there for a choice.
    asked: Vec<&'static str>,
    /// The models asked for by name that run only then.
    requested: Vec<&'static str>,
    frame: Frame,
}

impl Source for Loaded<'_> {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let source = self.sources.get(&*unit.set);
        source.ok_or("its data set is not loaded")?.start(unit)
    }
}

/// Runs what the configuration asks of a suite and is not finished yet, and reports on all of it.
pub(crate) fn run_suite(
    suite: &'static Suite,
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<SuiteRun, Error> {
    check_card(suite.card)?;
    let files = config.files()?;
    let mut imports = Imports::read(&config.import, suite.card)?;
    let loaded = Loaded::new(suite, config, store, &files)?;
    let (outcome, planned) = loaded.train(interrupt, &mut imports)?;
    let mut said = vec![outcome.to_string()];
    said.extend((imports.taken > 0).then(|| format!("imported  {} rows", imports.taken)));
    // An interrupted run does not know its plan to the end.
    if !outcome.interrupted {
        let left_out = imports.left_out(&planned).into_iter();
        said.extend(left_out.map(|(id, reason)| format!("left out  {id}: {reason}")));
    }
    loaded.conclude(outcome, said)
}

impl<'a> Loaded<'a> {
    /// Loads the sets that are asked for. Those that cannot be had, or whose files are wrong, are left out, so that one
    /// bad file does not keep the others from running. What is asked for by name and cannot be run is refused.
    fn new(
        suite: &'static Suite,
        config: &'a Config,
        store: &'a Store,
        files: &DataStore,
    ) -> Result<Self, Error> {
        let card = suite.card;
        let named = |name: &str| !config.models.is_empty() && config.wants(name);
        let models = card.models.iter().filter(|model| model.on_request);
        let models = models.map(|model| model.name).filter(|name| named(name));
        let mut loaded = Self {
            suite,
            config,
            store,
            sources: BTreeMap::new(),
            skipped: Vec::new(),
            sets: card.asked(config.scale, &config.sets),
            asked: Vec::new(),
            requested: models.collect(),
            frame: Frame {
                scale: config.scale,
                epochs: config.epochs,
                on_request: OnRequest::LeftOut,
            },
        };
        if !loaded.requested.is_empty() {
            loaded.frame.on_request = OnRequest::Included;
        }
        loaded.asked = loaded.sets.iter().map(|set| set.title).collect();
        if !config.sets.is_empty() {
            for set in &loaded.sets {
                let mut models = loaded.requested.iter();
                models.try_for_each(|model| (suite.admits)(set, model))?;
            }
        }
        if config.scale != Scale::Smoke {
            let resting = card.chosen_on.iter();
            let resting = resting.filter_map(|title| card.set(title));
            let missing: Vec<_> = resting.filter(|set| !loaded.sets.contains(set)).collect();
            loaded.sets.extend(missing);
        }
        let plan = loaded.plan(Choices::Dearest);
        for set in std::mem::take(&mut loaded.sets) {
            let arms = plan.of_set(set.title);
            if arms.is_empty() {
                // The scale has no arms on the set.
                continue;
            }
            match (suite.load)(set, &arms, files) {
                Ok(source) => {
                    loaded.sources.insert(set.title, source);
                    loaded.sets.push(set);
                }
                Err(Error::Data(error)) => loaded.skipped.push(Skipped {
                    set: set.title,
                    reason: error.to_string(),
                    is_missing: matches!(error, bochner_datasets::Error::Unavailable { .. }),
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(loaded)
    }

    /// The arms under these choices. A set that was not asked for keeps only the arms that choose shared settings.
    fn plan(&self, choices: Choices<'_>) -> Plan {
        let mut plan = self.plan_of(&self.sets, self.frame, choices);
        plan.arms
            .retain(|arm| arm.role == Role::Common || self.asked.contains(&arm.set));
        plan
    }

    fn plan_of(&self, sets: &[&'static Set], frame: Frame, choices: Choices<'_>) -> Plan {
        let mut plan = Plan::new(self.suite.card, sets, frame, choices);
        stamp(self.suite.card, &mut plan);
        plan
    }

    fn results(&self) -> Results {
        Results::new(self.suite.card.metric.direction)
    }

    /// Trains in rounds: what is known, then what choices rest on, then what is known with them, until nothing is new.
    /// Returns the outcome and the units of all rounds and shards.
    ///
    /// Every round is one of the list of units as a run from scratch sees it, so that shards agree on their parts.
    fn train(
        &self,
        interrupt: &AtomicBool,
        imports: &mut Imports,
    ) -> Result<(Outcome, Vec<Unit>), Error> {
        let (config, card) = (self.config, self.suite.card);
        let (mut outcome, mut results) = (Outcome::default(), self.results());
        let (mut seen, mut planned) = (BTreeSet::new(), Vec::new());
        loop {
            let plan = self.plan(Choices::Of(&results));
            let [choosing, units] = [plan.choosing(), plan.units()].map(|units| {
                let new = units.into_iter().filter(|unit| seen.insert(unit.id()));
                new.collect::<Vec<Unit>>()
            });
            for unit in choosing.iter().chain(&units) {
                imports.take(unit, self.store)?;
                planned.push(unit.clone());
            }
            let places = units.into_iter().enumerate();
            let mine = places
                .filter(|(place, unit)| config.shard.holds(*place) && config.wants(&unit.variant));
            let mine: Vec<Unit> = mine.map(|(_, unit)| unit).collect();
            let is_shared = |unit: &Unit| {
                let mut arms = plan.arms.iter();
                arms.any(|arm| {
                    matches!(arm.role, Role::Common | Role::Choice) && arm.units.contains(unit)
                })
            };
            let first = choosing
                .iter()
                .filter(|unit| config.wants(&unit.variant) || is_shared(unit));
            let mut first: Vec<Unit> = first.cloned().collect();
            // Shards in one directory find what others have run, and so begin at different places.
            let start = config.shard.start(first.len());
            first.rotate_left(start);
            for units in [&mine, &first] {
                outcome.add(runner::run(
                    units, card, self, self.store, config, interrupt,
                )?);
                if outcome.interrupted {
                    return Ok((outcome, planned));
                }
            }
            if choosing.is_empty() {
                return Ok((outcome, planned));
            }
            self.collect(&mut results, &choosing)?;
        }
    }

    /// Adds the rows of those of the units that are finished.
    fn collect(&self, results: &mut Results, units: &[Unit]) -> Result<(), Error> {
        for unit in units {
            results.extend(self.store.row(unit)?);
        }
        Ok(())
    }

    /// Judges what is finished and writes the reports.
    fn conclude(self, outcome: Outcome, mut said: Vec<String>) -> Result<SuiteRun, Error> {
        let _turn = self.store.reporting()?;
        let (suite, config, card) = (self.suite, self.config, self.suite.card);
        let (mut shown, mut results) = self.what_is_there()?;
        shown.arms.retain(|arm| {
            let is_shown = !results.of(arm).is_empty() || self.requested.contains(&arm.model);
            is_shown || !card.is_on_request(arm.model)
        });
        results.note_failed(outcome.failed.iter().map(|(unit, _)| unit));
        let claims = judge(card, &(card.claims)(), &shown, &results);
        let units = shown.all();
        let rows: Vec<&Row> = units.iter().filter_map(|unit| results.row(unit)).collect();
        let kept = self.artefacts(&rows)?;
        let mut notes = self.notes(&outcome);
        let others = self.of_other_descriptions(&shown)?;
        said.extend(others.iter().map(|note| note.replace("**", "")));
        notes.extend(others);
        let (finished, lacking) = (rows.len(), rows.len() - kept.len());
        notes.extend((lacking > 0).then(|| {
            format!(
                "**{lacking} of {finished} finished units have no artefacts**: pictures, and tables of what heads have \
                 learnt, are without them."
            )
        }));
        let mut account = Account {
            card,
            plan: &shown,
            results: &results,
            claims: &claims,
            checks: &[],
            skipped: &self.skipped,
            preface: None,
            epochs: config.epochs,
            notes: &notes,
            artefacts: &|unit| kept.get(&unit.id()).cloned(),
        };
        let mut checks = Vec::new();
        // The checks are made for the scale as it is.
        if (config.scale, config.epochs, &config.models[..]) == (Scale::Smoke, None, &[]) {
            let asked = self.plan(Choices::Of(&results));
            let account = Account {
                plan: &asked,
                ..account
            };
            checks.push(check::all_finished(&asked, &results));
            checks.extend(suite.checks.iter().map(|check| check.run(&account)));
        }
        account.checks = &checks;
        let document = account.document();
        let mut written = (self.store).publish(config.scale, card.name, &document, &rows)?;
        let name = format!("{}/{}/artefacts.jsonl", config.scale, card.name);
        let lines = rows.iter().filter_map(|row| {
            let (id, artefacts) = (row.id.clone(), kept.get(&row.id)?.clone());
            Some(Left { id, artefacts })
        });
        written.push(self.store.write_lines(&name, lines)?);

        said.extend(checks.iter().map(check_line));
        said.extend(claims.iter().flat_map(claim_lines));
        said.extend(
            self.skipped
                .iter()
                .map(|skipped| format!(" skipped  {}: {}", skipped.set, skipped.reason)),
        );
        let written = written.iter().map(|file| file.display());
        said.extend(written.map(|file| format!(" written  {file}")));
        let is_fault = |skipped: &Skipped| !config.sets.is_empty() || !skipped.is_missing;
        let has_failed = |check: &Checked| matches!(check.mark, Mark::Failed(_));
        let is_wrong = !outcome.interrupted && checks.iter().any(has_failed);
        Ok(SuiteRun {
            suite: card.name,
            units: shown.units().len(),
            passed: outcome.failed.is_empty() && !is_wrong && !self.skipped.iter().any(is_fault),
            outcome,
            skipped: self.skipped,
            summary: said,
        })
    }

    /// The plan for the sets that are asked for or that earlier runs have left results of, and these results; models that
    /// run on request are in it.
    fn what_is_there(&self) -> Result<(Plan, Results), Error> {
        let frame = Frame {
            on_request: OnRequest::Included,
            ..self.frame
        };
        let all: Vec<&Set> = self.suite.card.sets.iter().collect();
        let mut results = self.results();
        loop {
            let plan = self.plan_of(&all, frame, Choices::Of(&results));
            let before = results.len();
            self.collect(&mut results, &plan.all())?;
            if results.len() > before {
                continue;
            }
            let there = plan.compared().filter(|arm| !results.of(*arm).is_empty());
            let there: Vec<&str> = there.map(|arm| arm.set).collect();
            let is_asked = |set: &Set| self.sets.contains(&set) && self.asked.contains(&set.title);
            let sets = all.into_iter();
            let sets = sets.filter(|set| is_asked(set) || there.contains(&set.title));
            let shown = self.plan_of(&sets.collect::<Vec<_>>(), frame, Choices::Of(&results));
            return Ok((shown, results));
        }
    }

    /// Notes for the reader besides the numbers.
    fn notes(&self, outcome: &Outcome) -> Vec<String> {
        let mut notes = Vec::new();
        match (self.config.epochs, self.config.scale) {
            (Some(epochs), _) => notes.push(format!(
                "**Training was set to {epochs} epochs**, which is not the protocol of this scale."
            )),
            (None, Scale::Smoke) => notes.push(self.suite.card.smoke.to_owned()),
            _ => {}
        }
        if outcome.interrupted {
            notes.push("The run was interrupted; run it again and it goes on.".to_owned());
        }
        let failed = outcome.failed.iter();
        notes.extend(failed.map(|(_, error)| format!("**Failed**: {error}.")));
        notes
    }

    /// Says how many kept results have the names of planned units and another description: settings, versions or data.
    fn of_other_descriptions(&self, shown: &Plan) -> Result<Option<String>, Error> {
        let plans = [shown, &self.plan(Choices::Dearest)];
        let units = plans.map(Plan::all);
        let units = units.concat();
        let names: BTreeSet<String> = units.iter().map(Unit::name).collect();
        let ids: BTreeSet<String> = units.iter().map(Unit::id).collect();
        let is_other = |id: &String| {
            let name = id.rsplit_once('.').map_or("", |(name, _)| name);
            names.contains(name) && !ids.contains(id)
        };
        let kept = self.store.ids(self.suite.card.name)?;
        let others = kept.into_iter().filter(is_other).count();
        Ok((others > 0).then(|| {
            format!(
                "**{others} kept results are described otherwise** than the units of the same names are today, by their \
                 settings, versions or data: they are left out, and these units are new."
            )
        }))
    }

    /// The artefacts of finished units, by their ids.
    fn artefacts(&self, rows: &[&Row]) -> Result<BTreeMap<String, Artefacts>, Error> {
        let mut kept = BTreeMap::new();
        for row in rows {
            let found = self.store.artefacts(&row.unit)?;
            kept.extend(found.map(|found| (row.id.clone(), found)));
        }
        Ok(kept)
    }
}

fn check_line(check: &Checked) -> String {
    let (mark, seen) = match &check.mark {
        Mark::Passed(seen) => ("passed", seen),
        Mark::Failed(seen) => ("FAILED", seen),
        Mark::NotRun(seen) => ("not run", seen),
    };
    format!("{mark:>8}  {} ({seen})", check.name)
}

fn claim_lines(claim: &Judged) -> impl Iterator<Item = String> {
    let verdict = format!("{:>8}  {}: {}", claim.name, claim.text, claim.verdict);
    let evidence = claim.evidence.iter();
    std::iter::once(verdict).chain(evidence.map(|found| format!("          {found}")))
}
