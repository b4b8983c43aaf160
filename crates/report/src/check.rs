//! Properties that the machinery must have, which scale `smoke` checks.

use crate::plan::{Arm, Plan};
use crate::row::Row;
use crate::{Account, Results};

/// A property that the machinery must have.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Every row of the arms that the first function admits has the property; the second returns the defect of a row.
    Rows(&'static str, fn(&Arm) -> bool, fn(&Row) -> Option<String>),
    /// The run as a whole has the property.
    Run(&'static str, fn(&Account<'_>) -> Mark),
}

/// A property with what became of its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The property.
    pub name: &'static str,
    /// The outcome.
    pub mark: Mark,
}

impl Check {
    /// Makes the check.
    pub fn run(&self, account: &Account<'_>) -> Checked {
        let (name, mark) = match self {
            Self::Run(name, mark) => (name, mark(account)),
            Self::Rows(name, admits, defect) => {
                let arms = account.plan.arms.iter().filter(|arm| admits(arm));
                let rows: Vec<&Row> = arms.flat_map(|arm| account.results.of(arm)).collect();
                let defects = rows
                    .iter()
                    .filter_map(|row| Some(format!("{}: {}", row.unit.label(), defect(row)?)));
                (
                    name,
                    Mark::new(&defects.collect::<Vec<_>>(), rows.len(), "units"),
                )
            }
        };
        Checked { name, mark }
    }
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
    pub fn new(defects: &[String], seen: usize, what: &str) -> Self {
        match (seen, defects.is_empty()) {
            (0, _) => Self::NotRun(format!("no {what}")),
            (_, true) => Self::Passed(format!("{seen} {what}")),
            (_, false) => Self::Failed(defects.join("; ")),
        }
    }
}

/// Every unit ends with finite losses: rows with a number that is not finite are never recorded.
pub fn all_finished(plan: &Plan, results: &Results) -> Checked {
    let units = plan.all();
    let finished = units.iter().filter(|u| results.row(u).is_some()).count();
    let seen = format!("{finished} of {} units", units.len());
    Checked {
        name: "every unit ends with finite losses",
        mark: match finished {
            0 => Mark::NotRun("no unit has run".into()),
            n if n == units.len() => Mark::Passed(seen),
            _ => Mark::Failed(seen),
        },
    }
}

/// The defect of a row whose training error does not end below a share of that of the first epoch.
pub fn falls_below(row: &Row, share: f64) -> Option<String> {
    let (first, last) = (row.first_mse, row.last_mse);
    (last >= share * first).then(|| format!("{first:.3} to {last:.3}"))
}

/// The numbers of a row, to the bit.
pub fn bits(row: &Row) -> [u64; 6] {
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
