//! How long a plan will take, and what is cut if that is too long.

use super::Cut;
use crate::runner::pool;
use crate::{Config, Error, Scale, Store, Suite, Unit};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A table may take this long at scale `desk`.
const LIMIT_SECONDS: f64 = 3.0 * 3600.0;

/// Epochs that are timed, after one that is not.
const TIMED: u32 = 2;

/// What was measured and decided, kept so that a run that goes on is not cut differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision<C> {
    cut: C,
    projected_seconds: f64,
    sets: Vec<String>,
}

/// The first cut with which the arms that `load` gives fit into three hours, or the last. A run that
/// ends before its last epoch takes less than is projected.
///
/// Only scale `desk` is ever cut. A decision made for the same sets, or for more, is read from `file`
/// of the scale's directory and kept.
pub(crate) fn decide<C: Cut, A: AsRef<[Unit]>, S: Suite>(
    config: &Config,
    store: &Store,
    file: &str,
    load: impl Fn(C) -> Result<(Vec<A>, S), Error>,
) -> Result<C, Error> {
    if let Some(cut) = config.cut() {
        return Ok(cut);
    }
    if config.scale != Scale::Desk {
        return Ok(C::NONE);
    }
    let name = format!("{}/{file}", config.scale);
    let known: Option<Decision<C>> = store.read(&name)?;
    let sets = sets(&load(C::NONE)?.0);
    if let Some(known) = known.filter(|known| sets.iter().all(|set| known.sets.contains(set))) {
        return Ok(known.cut);
    }
    let mut decision = None;
    for &cut in C::ALL {
        let (arms, suite) = load(cut)?;
        let seconds = project(config, &arms, &suite)?;
        eprintln!(
            "projected time: {:.1} h ({})",
            seconds / 3600.0,
            cut.describe()
        );
        decision = Some(Decision {
            cut,
            projected_seconds: seconds,
            sets: sets.clone(),
        });
        if seconds <= LIMIT_SECONDS {
            break;
        }
    }
    let Some(decision) = decision else {
        return Ok(C::NONE);
    };
    let json = serde_json::to_vec(&decision).expect("a decision has plain fields");
    store.write(&name, &json)?;
    Ok(decision.cut)
}

fn sets<A: AsRef<[Unit]>>(arms: &[A]) -> Vec<String> {
    let units = arms.iter().filter_map(|arm| arm.as_ref().first());
    let mut sets: Vec<String> = units.map(|unit| unit.set.clone()).collect();
    sets.dedup();
    sets
}

/// The time that all units of the arms will take.
fn project<A: AsRef<[Unit]>>(
    config: &Config,
    arms: &[A],
    suite: &impl Suite,
) -> Result<f64, Error> {
    let jobs = config.jobs.max(1);
    let pool = pool(config.threads, jobs)?;
    let mut seconds = 0.0;
    for arm in arms {
        let units = arm.as_ref();
        seconds += pool.install(|| of_arm(suite, units))?;
    }
    Ok(seconds / jobs as f64)
}

fn of_arm(suite: &impl Suite, units: &[Unit]) -> Result<f64, Error> {
    let Some(unit) = units.first() else {
        return Ok(0.0);
    };
    let mut trial = suite.start(unit)?;
    trial.epoch()?;
    let clock = Instant::now();
    for _ in 0..TIMED {
        trial.epoch()?;
        trial.evaluate()?;
    }
    let epoch = clock.elapsed().as_secs_f64() / f64::from(TIMED);
    Ok(epoch * (unit.settings.epochs() * units.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::regression::{Cut as Given, Plan, Regression};
    use bochner_datasets::{DataStore, Policy, RegressionSet};

    #[test]
    fn a_decision_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let data = DataStore::new(Policy::Offline);
        let load = |cut| {
            let plan = Plan::new(Scale::Desk, &[RegressionSet::Passenger], cut);
            let (suite, _) = Regression::load(&plan, &data);
            Ok((plan.arms().to_vec(), suite))
        };
        let config = Config {
            scale: Scale::Desk,
            ..Config::default()
        };
        let kept = Decision {
            cut: Given::Epochs,
            projected_seconds: 1e6,
            sets: vec!["Passenger".into(), "CO2".into()],
        };
        let json = serde_json::to_vec(&kept).unwrap();
        store.write("desk/projection.json", &json).unwrap();
        let decided = |config: &Config| decide(config, &store, "projection.json", load).unwrap();
        assert_eq!(decided(&config), Given::Epochs);
        assert_eq!(decided(&Config::default()), Given::None);
        let asked = Config {
            cut: Some("rows".into()),
            ..config
        };
        assert_eq!(decided(&asked), Given::Rows);
    }
}
