//! The numbers, arm by arm.

use super::{NOT_ADEQUATE, NOTHING};
use crate::document::{Document, significant};
use crate::plan::Arm;
use crate::row;
use crate::row::Row;
use crate::suite::{Line, Published};
use crate::{Account, Number, Scale};

/// The content of a column in a table of arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The set.
    Set,
    /// The model.
    Model,
    /// The division of the rows.
    Splits,
    /// The published values.
    Paper,
    /// A mean ± its population deviation.
    Ours(Number),
    /// The mean less the paper's.
    Difference(Number),
    /// The mean difference from the baseline, split by split, with its errors and wins.
    Gain(Number),
    /// The finding of the comparison with the baseline.
    Verdict,
    /// The norm p.
    P,
    /// The spectral points R.
    Points,
    /// The number of trained parameters.
    Parameters,
    /// The mean R-number less the mean V-number.
    Optimism,
    /// Epochs that were trained, on average.
    Epochs,
    /// The number of finished units.
    N,
    /// Seconds a unit, on average.
    Seconds,
    /// The mean of a measure.
    Measure(&'static str),
    /// The mean of a measure after the last epoch, where another epoch is judged.
    AtLast(&'static str),
}

/// The columns of a table, each with its name.
pub type Columns<'a> = &'a [(&'static str, Column)];

/// The columns that name an arm.
pub const NAMES: Columns<'static> = &[("set", Column::Set), ("model", Column::Model)];

/// The columns of the paper's R-numbers beside ours.
pub const BESIDE_R: Columns<'static> = &[
    ("paper (R)", Column::Paper),
    ("ours (R)", Column::Ours(Number::R)),
    ("difference", Column::Difference(Number::R)),
    ("verdict", Column::Verdict),
];

/// The columns of the paper's R-numbers beside both of ours and the difference from the baseline.
pub const BESIDE_BOTH: Columns<'static> = &[
    ("paper (R)", Column::Paper),
    ("ours (V)", Column::Ours(Number::V)),
    ("ours (R)", Column::Ours(Number::R)),
    ("d of V", Column::Gain(Number::V)),
    ("verdict", Column::Verdict),
];

/// The columns of all our numbers.
pub const OWN: Columns<'static> = &[
    ("p", Column::P),
    ("R", Column::Points),
    ("parameters", Column::Parameters),
    ("V", Column::Ours(Number::V)),
    ("R-number", Column::Ours(Number::R)),
    ("R - V", Column::Optimism),
    ("last", Column::Ours(Number::Last)),
];

/// The paper's numbers beside ours, set by set, with a line for each published model that was not run.
pub(super) fn against_paper(account: &Account<'_>, document: &mut Document, columns: Columns<'_>) {
    let plan = account.plan;
    let rows = plan.sets().into_iter().flat_map(|set| {
        let arms = || plan.compared().filter(move |arm| arm.set == set);
        let has = |model: &str| {
            plan.arms
                .iter()
                .any(|arm| (arm.set, arm.model) == (set, model))
        };
        let ours = arms().filter_map(|arm| row_of(account, arm, columns));
        let published = account
            .card
            .published
            .iter()
            .filter(move |line| arms().any(|arm| arm.comparable) && !has(line.model));
        let quoted = published.filter_map(|line| quoted(account, set, line, columns));
        ours.chain(quoted).collect::<Vec<_>>()
    });
    write(document, columns, rows.collect());
}

/// Writes a table with a row for each arm that has a finished unit.
pub fn table(account: &Account<'_>, document: &mut Document, columns: Columns<'_>) {
    let arms = account.plan.compared();
    let rows = arms.filter_map(|arm| row_of(account, arm, columns));
    write(document, columns, rows.collect());
}

/// The columns of measures, by their names.
pub const fn measures<const N: usize>(names: [&'static str; N]) -> [(&'static str, Column); N] {
    let (mut columns, mut place) = ([("", Column::N); N], 0);
    while place < N {
        columns[place] = (names[place], Column::Measure(names[place]));
        place += 1;
    }
    columns
}

/// The columns of measures after the last epoch, by their names.
pub const fn at_last<const N: usize>(names: [&'static str; N]) -> [(&'static str, Column); N] {
    let (mut columns, mut place) = ([("", Column::N); N], 0);
    while place < N {
        columns[place] = (names[place], Column::AtLast(names[place]));
        place += 1;
    }
    columns
}

fn write(document: &mut Document, columns: Columns<'_>, rows: Vec<Vec<String>>) {
    let head: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    document.table(&head, rows);
}

/// The cells of an arm; `None` while no unit is finished.
pub fn row_of(account: &Account<'_>, arm: &Arm, columns: Columns<'_>) -> Option<Vec<String>> {
    let rows = account.results.of(arm);
    rows.first()?;
    let cell = |column| cell(account, arm, &rows, column).unwrap_or(NOTHING.into());
    Some(columns.iter().map(|(_, column)| cell(*column)).collect())
}

fn cell(account: &Account<'_>, arm: &Arm, rows: &[&Row], column: Column) -> Option<String> {
    let (metric, settings) = (account.card.metric, arm.settings());
    let (digits, fine) = (metric.digits, metric.fine);
    let spread = |number| account.results.spread(arm, number);
    let mean_of = |number| Some(metric.show(spread(number)?.0));
    let average =
        |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).sum::<f64>() / rows.len() as f64;
    Some(match column {
        Column::Set => arm.set.to_owned(),
        Column::Model => arm.label(),
        Column::Splits => arm.protocol.name().to_owned(),
        Column::Paper => printed(account, published(account, arm)?),
        Column::Ours(number) => {
            let (mean, deviation) = spread(number)?;
            metric.spread(metric.show(mean), metric.factor() * deviation)
        }
        Column::Difference(number) => {
            let paper = published(account, arm).filter(|_| account.plan.scale != Scale::Smoke)?;
            format!("{:+.digits$}", mean_of(number)? - paper.mean)
        }
        Column::Gain(number) => {
            let others = arm.model != account.card.baseline;
            let baseline = account.plan.beside(arm, account.card.baseline);
            let baseline = baseline.filter(|_| others)?;
            metric.difference(&account.results.compare(arm, baseline, number)?)
        }
        Column::Verdict => verdict(account, arm),
        Column::P => settings.p()?.to_string(),
        Column::Points => settings.points()?.to_string(),
        Column::Parameters => rows[0].parameters.to_string(),
        Column::Optimism => format!("{:+.fine$}", mean_of(Number::R)? - mean_of(Number::V)?),
        Column::Epochs => {
            let trained =
                |row: &Row| row.stopped_after.unwrap_or(row.unit.settings.epochs()) as f64;
            format!("{:.0}", average(&trained))
        }
        Column::N => rows.len().to_string(),
        Column::Seconds => format!("{:.1}", average(&|row| row.seconds)),
        Column::Measure(name) => significant(account.results.measure(arm, name)?),
        Column::AtLast(name) => significant(account.results.measure(arm, &row::at_last(name))?),
    })
}

/// The published value of an arm's model, where it is one of the same rows.
pub(super) fn published(account: &Account<'_>, arm: &Arm) -> Option<Published> {
    let published = account.card.published(arm.model, arm.set)?;
    arm.comparable.then_some(published)
}

fn printed(account: &Account<'_>, published: Published) -> String {
    let metric = account.card.metric;
    match published.deviation {
        Some(deviation) => metric.spread(published.mean, deviation),
        None => format!("{:.1$}", published.mean, metric.digits),
    }
}

fn verdict(account: &Account<'_>, arm: &Arm) -> String {
    let card = account.card;
    if account.plan.scale == Scale::Smoke {
        return "not tested".into();
    }
    if arm.model == card.baseline {
        return "baseline".into();
    }
    if !card.model(arm.model).is_some_and(|model| model.judged) {
        return "reported, not judged".into();
    }
    if !account.is_adequate(arm) {
        return NOT_ADEQUATE.into();
    }
    let baseline = account.plan.beside(arm, card.baseline);
    let found = |number| Some(account.results.compare(arm, baseline?, number)?.finding());
    let against = card.against;
    match (found(Number::V), found(Number::R)) {
        (Some(v), Some(r)) => format!("against {against}: {v} (V), {r} (R)"),
        (None, Some(r)) => format!("against {against}: {r} (R)"),
        _ => "not tested".into(),
    }
}

/// A line of the paper that nothing was run for.
fn quoted(
    account: &Account<'_>,
    set: &str,
    line: &Line,
    columns: Columns<'_>,
) -> Option<Vec<String>> {
    let published = account.card.published(line.model, set)?;
    let cell = |column| match column {
        Column::Set => set.to_owned(),
        Column::Model => format!("{}*", line.model),
        Column::Paper => printed(account, published),
        Column::Verdict => "not run".to_owned(),
        _ => NOTHING.to_owned(),
    };
    Some(columns.iter().map(|(_, column)| cell(*column)).collect())
}
