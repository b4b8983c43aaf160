//! How long a plan will take, and what is cut if that is too long.

use crate::plan::Plan;
use crate::runner::{Units, pool};
use crate::suite::Card;
use crate::{Config, Error, Scale, Store, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// A suite may take this long at scale `desk`.
const LIMIT_SECONDS: f64 = 3.0 * 3600.0;

/// An epoch that takes so long is timed alone; shorter ones are timed twice more, after this one.
const LONG_SECONDS: f64 = 1.0;

/// Epochs that are timed after a short one.
const TIMED: u32 = 2;

/// What was measured and decided, kept so that a run that goes on is not cut differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    cut: String,
    projected_seconds: f64,
    sets: Vec<String>,
}

/// The first cut with which the arms that `load` gives fit into three hours, or the last cut. A run that ends before its
/// last epoch takes less than is projected. What was timed for one cut is not timed again for the next.
///
/// Only scale `desk` is ever cut. A decision made for the same sets, or for more, is read from the suite's
/// part of the scale's directory and kept, so that a run that goes on is cut as it was in its beginning, however much of it
/// is finished.
pub(crate) fn decide<U: Units>(
    config: &Config,
    store: &Store,
    card: &'static Card,
    load: impl Fn(usize) -> Result<(Plan, U), Error>,
) -> Result<usize, Error> {
    if let Some(cut) = config.cut.as_deref().and_then(|name| card.cut(name)) {
        return Ok(cut);
    }
    if config.scale != Scale::Desk {
        return Ok(0);
    }
    let name = format!("{}/{}/projection.json", config.scale, card.name);
    let known: Option<Decision> = store.read(&name)?;
    let mut sets: Vec<String> = load(0)?
        .0
        .arms
        .iter()
        .map(|arm| arm.set.to_owned())
        .collect();
    sets.dedup();
    let known = known.filter(|known| sets.iter().all(|set| known.sets.contains(set)));
    if let Some(cut) = known.and_then(|known| card.cut(&known.cut)) {
        return Ok(cut);
    }
    let mut timed = Timed::new();
    for (place, cut) in card.cuts.iter().enumerate() {
        let (plan, units) = load(place)?;
        let seconds = project(config, store, &plan, &units, &mut timed)?;
        eprintln!("projected time: {:.1} h ({})", seconds / 3600.0, cut.what);
        if seconds <= LIMIT_SECONDS || place + 1 == card.cuts.len() {
            let decision = Decision {
                cut: cut.name.to_owned(),
                projected_seconds: seconds,
                sets,
            };
            let json = serde_json::to_vec(&decision).expect("a decision has plain fields");
            store.write(&name, &json)?;
            return Ok(place);
        }
    }
    Ok(0)
}

/// Seconds of an epoch, by what they depend on.
type Timed = BTreeMap<String, f64>;

/// The time that the units of the plan will take that are not finished.
///
/// Units can be finished before anything was decided: they were imported, or an earlier run was given its cut or had fewer
/// sets. The cut is then decided by what remains, since the limit is one on the time that the user waits, and to give up
/// finished units would save none of it and hide their results.
fn project(
    config: &Config,
    store: &Store,
    plan: &Plan,
    units: &impl Units,
    timed: &mut Timed,
) -> Result<f64, Error> {
    let jobs = config.jobs.max(1);
    let pool = pool(config.threads, jobs)?;
    let mut seconds = 0.0;
    for unit in plan.reported() {
        if store.row(&unit)?.is_some() {
            continue;
        }
        let kind = kind(&unit);
        if !timed.contains_key(&kind) {
            timed.insert(
                kind.clone(),
                pool.install(|| seconds_of_an_epoch(units, &unit))?,
            );
        }
        seconds += timed[&kind] * unit.settings.epochs() as f64;
    }
    Ok(seconds / jobs as f64)
}

/// What the time of an epoch depends on: everything but the split, the seed, and settings that are mere factors.
fn kind(unit: &Unit) -> String {
    let settings = unit.settings.without(&FACTORS);
    let (set, variant, preset) = (&unit.set, &unit.variant, unit.preset.name());
    format!(
        "{set} {variant} {preset} {} {settings}",
        unit.protocol.name()
    )
}

/// Settings that change what a step computes with, and not how long it takes; `attention` says once more what the model
/// and the settings beside it do.
const FACTORS: [&str; 7] = [
    "epochs",
    "attention",
    "dropout",
    "word_dropout",
    "learning_rate",
    "l2",
    "clip_norm",
];

fn seconds_of_an_epoch(units: &impl Units, unit: &Unit) -> Result<f64, Error> {
    let mut trial = units.start(unit)?;
    let mut epochs = |n: u32| {
        let clock = Instant::now();
        for _ in 0..n {
            trial.epoch()?;
            trial.evaluate()?;
        }
        Ok::<f64, Error>(clock.elapsed().as_secs_f64() / f64::from(n))
    };
    match epochs(1)? {
        long if long >= LONG_SECONDS => Ok(long),
        _ => epochs(TIMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trial;
    use crate::plan::{Choices, Frame, OnRequest};
    use crate::results::tests::row;
    use crate::store::Artefacts;
    use crate::suite::Suite;
    use crate::suites::FIGURE_2;

    /// Units that must not be started: their times are known, or they are finished.
    struct NotToStart;

    impl Units for NotToStart {
        fn card(&self) -> &'static Card {
            FIGURE_2.card()
        }

        fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error> {
            panic!("{} is started", unit.id())
        }
    }

    fn plan(cut: usize) -> Plan {
        let frame = Frame {
            scale: Scale::Desk,
            cut,
            epochs: None,
            on_request: OnRequest::LeftOut,
        };
        let sets = FIGURE_2.card().asked(Scale::Desk, &[]);
        Plan::new(&FIGURE_2, &sets, frame, Choices::Dearest)
    }

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        (directory, store)
    }

    fn finish(units: &[Unit], store: &Store) {
        for unit in units {
            let row = row(unit, 0.5);
            store.record(&row, &Artefacts::default()).unwrap();
        }
    }

    #[test]
    fn only_units_that_are_not_finished_take_time() {
        let (_directory, store) = store();
        let plan = plan(0);
        let units = plan.reported();
        let mut timed: Timed = units.iter().map(|unit| (kind(unit), 2.0)).collect();
        let mut projected = |store: &Store| {
            let config = Config::default();
            project(&config, store, &plan, &NotToStart, &mut timed).unwrap()
        };
        // 54 units of 6 epochs.
        assert_eq!(projected(&store), 54.0 * 6.0 * 2.0);
        finish(&units[..10], &store);
        assert_eq!(projected(&store), 44.0 * 6.0 * 2.0);
    }

    #[test]
    fn a_cut_is_kept_however_much_is_finished_and_decided_by_what_remains_where_there_is_none() {
        let config = Config {
            scale: Scale::Desk,
            ..Config::default()
        };
        let decided = |store: &Store| {
            let load = |cut| Ok((plan(cut), NotToStart));
            decide(&config, store, FIGURE_2.card(), load).unwrap()
        };
        let (_kept, kept) = store();
        let decision = Decision {
            cut: "folds".into(),
            projected_seconds: 1e5,
            sets: vec!["MR".into()],
        };
        let json = serde_json::to_vec(&decision).unwrap();
        kept.write("desk/figure2/projection.json", &json).unwrap();
        let (_imported, imported) = store();
        for store in [&kept, &imported] {
            finish(&plan(0).reported(), store);
        }
        assert_eq!((decided(&kept), decided(&imported)), (1, 0));
    }
}
