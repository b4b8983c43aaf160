//! How long a plan will take, and what is cut if that is too long.

use super::{Arm, Cut, Plan, Regression, title};
use crate::runner::pool;
use crate::{Config, Error, Scale, Store, Suite};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A table may take this long at scale `desk`.
const LIMIT_SECONDS: f64 = 3.0 * 3600.0;

/// Epochs that are timed, after one that is not.
const TIMED: u32 = 2;

/// What was measured and decided, kept so that a run that goes on is not cut differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    cut: Cut,
    projected_seconds: f64,
    sets: Vec<String>,
}

/// The first cut with which the plan fits into three hours, or the last.
///
/// Only scale `desk` is ever cut. A decision made for the same sets, or for more, is kept.
pub(crate) fn decide(
    config: &Config,
    store: &Store,
    load: impl Fn(Cut) -> Result<(Plan, Regression), Error>,
) -> Result<Cut, Error> {
    if config.scale != Scale::Desk {
        return Ok(Cut::None);
    }
    let name = format!("{}/projection.json", config.scale);
    let known: Option<Decision> = store.read(&name)?;
    let (plan, _) = load(Cut::None)?;
    let sets: Vec<String> = plan.sets().iter().map(|s| title(*s).to_owned()).collect();
    if let Some(known) = known.filter(|known| sets.iter().all(|set| known.sets.contains(set))) {
        return Ok(known.cut);
    }
    let mut decision = None;
    for cut in Cut::ALL {
        let (plan, suite) = load(cut)?;
        let seconds = project(config, &plan, &suite)?;
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
        return Ok(Cut::None);
    };
    let json = serde_json::to_vec(&decision).expect("a decision has plain fields");
    store.write(&name, &json)?;
    Ok(decision.cut)
}

/// The time that all units of a plan will take.
fn project(config: &Config, plan: &Plan, suite: &Regression) -> Result<f64, Error> {
    let jobs = config.jobs.max(1);
    let pool = pool(config.threads, jobs)?;
    let arms = plan.arms().iter();
    let seconds = arms.map(|arm| pool.install(|| seconds(suite, arm)));
    Ok(seconds.sum::<Result<f64, Error>>()? / jobs as f64)
}

fn seconds(suite: &Regression, arm: &Arm) -> Result<f64, Error> {
    let Some(unit) = arm.units.first() else {
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
    Ok(epoch * (unit.settings.epochs() * arm.units.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_datasets::{DataStore, Policy, RegressionSet};

    #[test]
    fn a_decision_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let data = DataStore::new(Policy::Offline);
        let load = |cut| {
            let plan = Plan::new(Scale::Desk, &[RegressionSet::Passenger], cut);
            let (suite, _) = Regression::load(&plan, &data);
            Ok((plan, suite))
        };
        let config = Config {
            scale: Scale::Desk,
            ..Config::default()
        };
        let kept = Decision {
            cut: Cut::Epochs,
            projected_seconds: 1e6,
            sets: vec!["Passenger".into(), "CO2".into()],
        };
        let json = serde_json::to_vec(&kept).unwrap();
        store.write("desk/projection.json", &json).unwrap();
        assert_eq!(decide(&config, &store, load).unwrap(), Cut::Epochs);
        let smoke = Config::default();
        assert_eq!(decide(&smoke, &store, load).unwrap(), Cut::None);
    }
}
