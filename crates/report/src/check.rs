//! Properties that the machinery must have, and the checks that several suites make.

use crate::plan::{Arm, Plan};
use crate::row::{Curve, Row};
use crate::{Account, Preset, Results, Unit};

/// A property that the machinery must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The property.
    pub name: &'static str,
    /// The outcome.
    pub mark: Mark,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The property was seen.
    Passed(String),
    /// The property was not seen.
    Failed(String),
    /// No run is there in which the check could look.
    NotRun(String),
}

impl Mark {
    /// The mark for the defects found in so many things.
    pub fn of(defects: &[String], seen: usize, what: &str) -> Self {
        match (seen, defects.is_empty()) {
            (0, _) => Self::NotRun(format!("no {what}")),
            (_, true) => Self::Passed(format!("{seen} {what}")),
            (_, false) => Self::Failed(defects.join("; ")),
        }
    }
}

/// Every unit ends with finite losses: rows with a number that is not finite are never recorded.
pub fn all_finished(plan: &Plan, results: &Results) -> Check {
    let units = [plan.choosing(), plan.units()].concat();
    let finished = units.iter().filter(|u| results.row(u).is_some()).count();
    let seen = format!("{finished} of {} units", units.len());
    Check {
        name: "every unit ends with finite losses",
        mark: match finished {
            0 => Mark::NotRun("no unit has run".into()),
            n if n == units.len() => Mark::Passed(seen),
            _ => Mark::Failed(seen),
        },
    }
}

/// A check of each row of some arms; `defect` says what is wrong with a row.
pub fn each<'a>(
    name: &'static str,
    results: &Results,
    arms: impl IntoIterator<Item = &'a Arm>,
    defect: impl Fn(&Row) -> Option<String>,
) -> Check {
    let rows: Vec<&Row> = arms.into_iter().flat_map(|arm| results.of(arm)).collect();
    let defects = rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row.unit.label(), defect(row)?)));
    Check {
        name,
        mark: Mark::of(&defects.collect::<Vec<_>>(), rows.len(), "units"),
    }
}

/// The training error of each unit of some arms ends below a share of that of the first epoch.
pub fn training_error_falls<'a>(
    name: &'static str,
    results: &Results,
    arms: impl IntoIterator<Item = &'a Arm>,
    share: f64,
) -> Check {
    each(name, results, arms, |row| {
        let (first, last) = (row.first_mse, row.last_mse);
        (last >= share * first).then(|| format!("{first:.3} to {last:.3}"))
    })
}

/// The training losses of all units fall in every epoch, as far as the curves are kept. Where nearly nothing of a loss is
/// left, a last digit decides whether it rises once: from a twentieth of the first epoch's on it may.
pub fn losses_fall(account: &Account<'_>) -> Check {
    let units = account.plan.arms.iter().flat_map(|arm| &arm.units);
    let curves = units.filter_map(|unit| {
        let curve: Curve = (account.artefacts)(unit)?.get("loss")?;
        Some((unit, curve.values))
    });
    let curves: Vec<(&Unit, Vec<f64>)> = curves.collect();
    let defects = curves.iter().filter_map(|(unit, losses)| {
        let small = losses.first()? / 20.0;
        let risen = losses
            .windows(2)
            .find(|pair| pair[1] >= pair[0].max(small))?;
        Some(format!(
            "{}: {:.4} to {:.4}",
            unit.label(),
            risen[0],
            risen[1]
        ))
    });
    let defects: Vec<String> = defects.collect();
    Check {
        name: "the training loss falls in every epoch, down to a twentieth",
        mark: Mark::of(&defects, curves.len(), "units"),
    }
}

/// Units that are run twice give the same bits.
pub fn same_bits(plan: &Plan, results: &Results) -> Check {
    let pair = |unit: &Unit| {
        let mut first = unit.clone();
        first.repeat = 0;
        Some((results.row(unit)?, results.row(&first)?))
    };
    let pairs: Vec<(&Row, &Row)> = plan.repeats.iter().filter_map(pair).collect();
    let differ = pairs.iter().filter(|(a, b)| bits(a) != bits(b));
    let defects: Vec<String> = differ.map(|(a, _)| a.unit.label()).collect();
    Check {
        name: "the same seed gives the same bits",
        mark: Mark::of(&defects, pairs.len(), "repeated units"),
    }
}

/// The two readings of a method are not the same.
pub fn presets_differ(plan: &Plan, results: &Results) -> Check {
    let released = plan
        .arms
        .iter()
        .filter(|arm| arm.preset == Preset::Released);
    let pairs = released.flat_map(|arm| {
        let paper = plan.beside(arm, arm.model).map(|paper| results.of(paper));
        let rows = results.of(arm).into_iter();
        rows.zip(paper.unwrap_or_default()).collect::<Vec<_>>()
    });
    let pairs: Vec<(&Row, &Row)> = pairs.collect();
    let same = pairs.iter().filter(|(a, b)| bits(a) == bits(b));
    let defects: Vec<String> = same.map(|(a, _)| a.unit.label()).collect();
    Check {
        name: "the presets `paper` and `released` differ",
        mark: Mark::of(&defects, pairs.len(), "pairs of units"),
    }
}

fn bits(row: &Row) -> [u64; 6] {
    let numbers = [
        row.r_number,
        row.v_number.unwrap_or_default(),
        row.validation.unwrap_or_default(),
        row.last,
        row.first_mse,
        row.last_mse,
    ];
    numbers.map(f64::to_bits)
}
