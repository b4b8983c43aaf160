//! How long a plan will take, and what is cut if that is too long.

use crate::plan::Plan;
use crate::runner::{Units, pool};
use crate::suite::Card;
use crate::{Config, Error, Scale, Store, Unit};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A suite may take this long at scale `desk`.
const LIMIT_SECONDS: f64 = 3.0 * 3600.0;

/// Epochs that are timed, after one that is not.
const TIMED: u32 = 2;

/// What was measured and decided, kept so that a run that goes on is not cut differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    cut: String,
    projected_seconds: f64,
    sets: Vec<String>,
}

/// The first cut with which the arms that `load` gives fit into three hours, or the last. A run that
/// ends before its last epoch takes less than is projected.
///
/// Only scale `desk` is ever cut. A decision made for the same sets, or for more, is read from the suite's
/// part of the scale's directory and kept.
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
    for (place, cut) in card.cuts.iter().enumerate() {
        let (plan, units) = load(place)?;
        let seconds = project(config, &plan, &units)?;
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

/// The time that all units of the plan will take.
fn project(config: &Config, plan: &Plan, units: &impl Units) -> Result<f64, Error> {
    let jobs = config.jobs.max(1);
    let pool = pool(config.threads, jobs)?;
    let mut seconds = 0.0;
    for arm in &plan.arms {
        seconds += pool.install(|| of_arm(units, &arm.units))?;
    }
    Ok(seconds / jobs as f64)
}

fn of_arm(units: &impl Units, arm: &[Unit]) -> Result<f64, Error> {
    let Some(unit) = arm.first() else {
        return Ok(0.0);
    };
    let mut trial = units.start(unit)?;
    trial.epoch()?;
    let clock = Instant::now();
    for _ in 0..TIMED {
        trial.epoch()?;
        trial.evaluate()?;
    }
    let epoch = clock.elapsed().as_secs_f64() / f64::from(TIMED);
    Ok(epoch * (unit.settings.epochs() * arm.len()) as f64)
}
