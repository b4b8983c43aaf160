//! A run of a suite that is made of training runs: load, decide, train, judge, report.

mod summary;

pub use summary::SuiteRun;

use crate::assessment::keep;
use crate::runner::{self, Options, Outcome, Units};
use crate::store::Imports;
use crate::suite::{Source, Suite};
use crate::versions::stamp;
use crate::{Config, Error, Store, Trial, trial};
use bochner_datasets::DataStore;
use bochner_report::check;
use bochner_report::claim::check_names;
use bochner_report::judge::judge;
use bochner_report::plan::{Choices, Frame, OnRequest, Plan, Role};
use bochner_report::row::Artefacts;
use bochner_report::row::Row;
use bochner_report::skipped::Skipped;
use bochner_report::suite::{Card, Model, Set};
use bochner_report::{Account, Results, Scale, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// Data and decisions that training starts from.
struct Loaded {
    suite: &'static Suite,
    sources: BTreeMap<&'static str, Box<dyn Source>>,
    skipped: Vec<Skipped>,
    sets: Vec<&'static Set>,
    /// The titles of those that were asked for; the others are there for a choice.
    asked: Vec<&'static str>,
    frame: Frame,
}

impl Units for Loaded {
    fn card(&self) -> &'static Card {
        self.suite.card
    }

    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error> {
        let source = self.sources.get(&*unit.set);
        let source = source.ok_or_else(|| trial::failed(unit, &"its data set is not loaded"))?;
        source.start(unit)
    }
}

/// Runs what the configuration asks of a suite and is not finished yet, and reports on all of it.
pub(crate) fn run_suite(
    suite: &'static Suite,
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<SuiteRun, Error> {
    check_names(suite.card)?;
    refuse(suite, config)?;
    let files = DataStore::new(config.downloads);
    let files = match &config.data {
        Some(directory) => files.with_directory(directory)?,
        None => files,
    };
    let mut imports = Imports::read(&config.import, suite.card)?;
    let loaded = load(suite, config, &files)?;
    let (outcome, planned) = train(config, store, interrupt, &loaded, &mut imports)?;
    let run = conclude(config, store, &files, &loaded, outcome)?;
    Ok(SuiteRun {
        imported: imports.taken,
        left_out: match run.outcome.interrupted {
            // The plan is not known to its end.
            true => Vec::new(),
            false => imports.left_out(&planned),
        },
        ..run
    })
}

/// The models asked for by name that run only then.
fn requested<'a>(
    config: &'a Config,
    card: &'static Card,
) -> impl Iterator<Item = &'static Model> + 'a {
    let named = move |model: &&Model| !config.models.is_empty() && config.wants(model.name);
    let models = card.models.iter();
    models.filter(|model| model.on_request).filter(named)
}

/// Refuses what is asked for by name and cannot be run.
fn refuse(suite: &'static Suite, config: &Config) -> Result<(), Error> {
    if config.sets.is_empty() {
        return Ok(());
    }
    let card = suite.card;
    for set in card.asked(config.scale, &config.sets) {
        requested(config, card).try_for_each(|model| (suite.admits)(set, model.name))?;
    }
    Ok(())
}

/// Loads the sets that are asked for. Those that cannot be had, or whose files are wrong, are left out, so that one
/// bad file does not keep the others from running.
fn load(suite: &'static Suite, config: &Config, files: &DataStore) -> Result<Loaded, Error> {
    let mut loaded = Loaded {
        suite,
        sources: BTreeMap::new(),
        skipped: Vec::new(),
        sets: suite.card.asked(config.scale, &config.sets),
        asked: Vec::new(),
        frame: Frame {
            scale: config.scale,
            epochs: config.epochs,
            on_request: match requested(config, suite.card).next() {
                Some(_) => OnRequest::Included,
                None => OnRequest::LeftOut,
            },
        },
    };
    loaded.asked = loaded.sets.iter().map(|set| set.title).collect();
    let resting = suite.card.chosen_on.iter();
    let resting = resting.filter_map(|title| suite.card.set(title));
    let missing: Vec<_> = resting.filter(|set| !loaded.sets.contains(set)).collect();
    if config.scale != Scale::Smoke {
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
            Err(Error::Data(error)) => loaded.skipped.push(Skipped::new(set.title, &error)),
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}

impl Loaded {
    /// The arms under these choices. A set that was not asked for keeps only the arms that choose shared settings.
    fn plan(&self, choices: Choices<'_>) -> Plan {
        let mut plan = Plan::new(self.suite.card, &self.sets, self.frame, choices);
        stamp(self.suite.card, &mut plan);
        plan.arms
            .retain(|arm| arm.role == Role::Common || self.is_asked(arm.set));
        plan
    }

    fn is_asked(&self, set: &str) -> bool {
        self.asked.contains(&set)
    }

    fn results(&self) -> Results {
        Results::new(self.suite.card.metric.direction)
    }
}

/// Trains in rounds: what is known, then what choices rest on, then what is known with them, until nothing is new. Returns
/// the outcome and the units of all rounds and shards.
///
/// Every round is one of the list of units as a run from scratch sees it, so that shards agree on their parts.
fn train(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
    loaded: &Loaded,
    imports: &mut Imports,
) -> Result<(Outcome, Vec<Unit>), Error> {
    let options = Options {
        jobs: config.jobs,
        threads: config.threads,
        checkpoint_every: config.checkpoint_every,
        code_version: &config.code_version,
        interrupt,
    };
    let (mut outcome, mut results) = (Outcome::default(), loaded.results());
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut planned = Vec::new();
    loop {
        let plan = loaded.plan(Choices::Of(&results));
        let mut new = |units: Vec<Unit>| {
            let new = units.into_iter().filter(|unit| seen.insert(unit.id()));
            new.collect::<Vec<Unit>>()
        };
        let (choosing, units) = (new(plan.choosing()), new(plan.units()));
        for unit in choosing.iter().chain(&units) {
            imports.take(unit, store)?;
            planned.push(unit.clone());
        }
        let places = units.into_iter().enumerate();
        let mine = places
            .filter(|(place, unit)| config.shard.holds(*place) && config.wants(&unit.variant));
        let mine: Vec<Unit> = mine.map(|(_, unit)| unit).collect();
        let shared = plan
            .arms
            .iter()
            .filter(|arm| matches!(arm.role, Role::Common | Role::Choice));
        let shared: Vec<&Unit> = shared.flat_map(|arm| &arm.units).collect();
        let first = choosing
            .iter()
            .filter(|unit| config.wants(&unit.variant) || shared.contains(unit));
        let mut first: Vec<Unit> = first.cloned().collect();
        // Shards in one directory find what others have run, and so begin at different places.
        let start = config.shard.start(first.len());
        first.rotate_left(start);
        for units in [&mine, &first] {
            outcome.add(runner::run(units, loaded, store, &options)?);
            if outcome.interrupted {
                return Ok((outcome, planned));
            }
        }
        if choosing.is_empty() {
            return Ok((outcome, planned));
        }
        collect(&mut results, &choosing, store)?;
    }
}

/// Adds the rows of those of the units that are finished.
fn collect(results: &mut Results, units: &[Unit], store: &Store) -> Result<(), Error> {
    for unit in units {
        results.extend(store.row(unit)?);
    }
    Ok(())
}

fn conclude(
    config: &Config,
    store: &Store,
    files: &DataStore,
    loaded: &Loaded,
    outcome: Outcome,
) -> Result<SuiteRun, Error> {
    let _turn = store.reporting()?;
    let (suite, card) = (loaded.suite, loaded.suite.card);
    let (mut shown, mut results) = what_is_there(store, loaded)?;
    let requested: Vec<&str> = requested(config, card).map(|model| model.name).collect();
    shown.arms.retain(|arm| {
        let is_shown = !results.of(arm).is_empty() || requested.contains(&arm.model);
        is_shown || !card.is_on_request(arm.model)
    });
    results.note_failed(outcome.failed.iter().map(|(unit, _)| unit));
    let claims = judge(card, &(card.claims)(), &shown, &results);
    let mut notes = notes(config, card, &outcome);
    notes.extend(of_other_descriptions(
        store,
        card,
        &[&shown, &loaded.plan(Choices::Dearest)],
    )?);
    let kept = artefacts(store, &shown, &results)?;
    notes.extend(without_artefacts(&shown, &results, &kept));
    let artefacts = |unit: &Unit| kept.get(&unit.id()).cloned();
    let mut account = Account {
        card,
        plan: &shown,
        results: &results,
        claims: &claims,
        checks: &[],
        skipped: &loaded.skipped,
        earlier: None,
        notes: &notes,
        artefacts: &artefacts,
    };
    let asked = loaded.plan(Choices::Of(&results));
    let checks = match (config.scale, config.epochs, &config.models[..]) {
        // The checks are made for the scale as it is.
        (Scale::Smoke, None, []) => {
            let account = Account {
                plan: &asked,
                ..account
            };
            let mut checks = vec![check::all_finished(&asked, &results)];
            checks.extend(suite.checks.iter().map(|check| check.run(&account, files)));
            checks.extend(card.repeats.then(|| check::same_bits(&asked, &results)));
            checks
        }
        _ => Vec::new(),
    };
    account.checks = &checks;
    let document = account.document();
    let units = [shown.choosing(), shown.units()].concat();
    let rows: Vec<&Row> = units.iter().filter_map(|unit| results.row(unit)).collect();
    let mut written = keep(config, store, card.name, &document, &rows)?;
    let name = format!("{}/{}/artefacts.jsonl", config.scale, card.name);
    // A repetition is there for its row.
    let pictured = rows.into_iter().filter(|row| row.unit.repeat == 0);
    written.push(store.export_artefacts(&name, pictured)?);
    Ok(SuiteRun {
        suite: card.name,
        outcome,
        units: shown.units().len(),
        imported: 0,
        left_out: Vec::new(),
        skipped: loaded.skipped.clone(),
        by_name: !config.sets.is_empty(),
        files: written,
        checks,
        claims,
    })
}

/// The artefacts of the finished units, by their ids.
fn artefacts(
    store: &Store,
    plan: &Plan,
    results: &Results,
) -> Result<BTreeMap<String, Artefacts>, Error> {
    let units = plan.reported().into_iter().chain(plan.repeats.clone());
    let mut kept = BTreeMap::new();
    for unit in units.filter(|unit| results.row(unit).is_some()) {
        let found = store.artefacts(&unit)?;
        kept.extend(found.map(|found| (unit.id(), found)));
    }
    Ok(kept)
}

/// A note on the finished units without artefacts, which pictures lack.
fn without_artefacts(
    plan: &Plan,
    results: &Results,
    kept: &BTreeMap<String, Artefacts>,
) -> Option<String> {
    let units = plan.reported();
    let finished = units.iter().filter(|unit| results.row(unit).is_some());
    let lacking = finished
        .clone()
        .filter(|unit| !kept.contains_key(&unit.id()));
    let (lacking, finished) = (lacking.count(), finished.count());
    (lacking > 0).then(|| {
        format!(
            "**{lacking} of {finished} finished units have no artefacts**: pictures, and tables of what heads have learnt, are without them."
        )
    })
}

/// Says how many kept results have the names of planned units and another description: settings, versions or data.
fn of_other_descriptions(
    store: &Store,
    card: &Card,
    plans: &[&Plan],
) -> Result<Option<String>, Error> {
    let units = plans
        .iter()
        .flat_map(|plan| [plan.choosing(), plan.units()].concat());
    let units: Vec<Unit> = units.collect();
    let names: BTreeSet<String> = units.iter().map(Unit::name).collect();
    let ids: BTreeSet<String> = units.iter().map(Unit::id).collect();
    let kept = store.ids(card.name)?.into_iter();
    let others = kept.filter(|id| {
        let name = id.rsplit_once('.').map_or("", |(name, _)| name);
        names.contains(name) && !ids.contains(id)
    });
    Ok(match others.count() {
        0 => None,
        n => Some(format!(
            "**{n} kept results are described otherwise** than the units of the same names are today, by their settings, \
             versions or data: they are left out, and these units are new."
        )),
    })
}

/// The plan for the sets that are asked for or that earlier runs have left results of, and these results; models that run on
/// request are in it.
fn what_is_there(store: &Store, loaded: &Loaded) -> Result<(Plan, Results), Error> {
    let suite = loaded.suite;
    let frame = Frame {
        on_request: OnRequest::Included,
        ..loaded.frame
    };
    let all: Vec<&Set> = suite.card.sets.iter().collect();
    let mut results = loaded.results();
    loop {
        let mut plan = Plan::new(suite.card, &all, frame, Choices::Of(&results));
        stamp(suite.card, &mut plan);
        let before = results.len();
        collect(
            &mut results,
            &[plan.choosing(), plan.units()].concat(),
            store,
        )?;
        if results.len() == before {
            let there = plan.compared().filter(|arm| !results.of(*arm).is_empty());
            let there: Vec<&str> = there.map(|arm| arm.set).collect();
            let mut sets = loaded.sets.clone();
            sets.retain(|set| loaded.is_asked(set.title));
            sets.extend(all.iter().filter(|set| there.contains(&set.title)));
            let mut shown = Plan::new(suite.card, &sets, frame, Choices::Of(&results));
            stamp(suite.card, &mut shown);
            // Units are run again of the first of the sets that are asked for, which need not be the first that are shown.
            let asked = loaded.plan(Choices::Of(&results));
            collect(&mut results, &asked.repeats, store)?;
            return Ok((shown, results));
        }
    }
}

/// Notes for the reader besides the numbers.
fn notes(config: &Config, card: &Card, outcome: &Outcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(epochs) = config.epochs {
        notes.push(format!(
            "**Training was set to {epochs} epochs**, which is not the protocol of this scale."
        ));
    } else if config.scale == Scale::Smoke {
        notes.push(card.smoke.to_owned());
    }
    if outcome.interrupted {
        notes.push("The run was interrupted; run it again and it goes on.".to_owned());
    }
    let failed = outcome.failed.iter();
    notes.extend(failed.map(|(_, error)| format!("**Failed**: {error}.")));
    notes
}
