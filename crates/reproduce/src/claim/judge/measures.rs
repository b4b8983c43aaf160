//! Judging claims about measures.

use super::Court;
use crate::Preset;
use crate::claim::Criterion;
use crate::plan::Arm;
use crate::report::significant;
use crate::statistics::{Paired, Verdict};
use std::fmt;

/// A measure that a verdict rests on: that of a model against that of another, or against the value that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The measure, or a rise to it.
    pub measure: String,
    /// The model that has more of it, if the claim holds.
    pub model: String,
    /// What has less of it then.
    pub other: String,
    /// The other model's value minus this model's, unit by unit: negative where this model has more, which counts as a
    /// win. So does a unit that reaches the value that is asked for.
    pub paired: Paired,
}

impl Measured {
    fn new(measure: &str, [model, other]: [String; 2], paired: Paired) -> Self {
        Self {
            measure: measure.to_owned(),
            model,
            other,
            paired,
        }
    }

    /// The difference in favour of the claim, as it is shown: mean ± SE (SE'), wins of n.
    pub fn shown(&self) -> String {
        let Paired { n, wins, .. } = self.paired;
        let error = self.paired.error.map(|e| format!(" ± {}", significant(e)));
        let corrected = self.paired.corrected_error;
        let corrected = corrected.map(|e| format!(" ({})", significant(e)));
        let errors = [error, corrected].map(Option::unwrap_or_default).concat();
        // Adding zero takes the sign from a negative zero.
        let mean = 0.0 - self.paired.mean;
        let sign = if mean > 0.0 { "+" } else { "" };
        format!("{sign}{}{errors}, {wins} of {n}", significant(mean))
    }

    fn is_ahead(&self) -> bool {
        self.paired.mean < 0.0
    }

    fn is_clear(&self) -> bool {
        self.is_ahead() && self.paired.is_clear()
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { measure, .. }, shown) = (self, self.shown());
        write!(
            f,
            "{measure} of {} over {}: {shown}",
            self.model, self.other
        )
    }
}

impl Court<'_> {
    /// The measures that a criterion rests on, or what is missing.
    pub(super) fn measured(&self, criterion: Criterion) -> Result<Vec<Measured>, String> {
        match criterion {
            Criterion::Trend {
                set,
                models,
                rising,
                falling,
            } => {
                let rising = rising.iter().map(|measure| (*measure, [1, 0]));
                let falling = falling.iter().map(|measure| (*measure, [0, 1]));
                let steps = rising.chain(falling).flat_map(|(measure, order)| {
                    let steps = models.windows(2);
                    steps.map(move |step| (measure, order.map(|place| step[place])))
                });
                let paper = |model| (set, model, Preset::Paper);
                let step = |(measure, step): (_, [_; 2])| self.over(measure, step.map(paper));
                steps.map(step).collect()
            }
            Criterion::More {
                set,
                measure,
                model,
                than,
                control,
            } => {
                let own = (set, model, Preset::Paper);
                let control = control.map(|preset| (set, model, preset));
                let others = [Some((set, than, Preset::Paper)), control].into_iter();
                let others = others.flatten();
                others
                    .map(|other| self.over(measure, [own, other]))
                    .collect()
            }
            Criterion::RisesMost {
                set,
                models,
                measures,
            } => {
                let pairs = measures.iter();
                let steps = pairs.flat_map(|pair| models.iter().map(move |model| (pair, *model)));
                steps
                    .map(|(pair, model)| self.rises_over(set, model, pair))
                    .collect()
            }
            Criterion::InMost {
                set,
                model,
                measure,
                least,
            } => Ok(vec![self.at_least(
                measure,
                (set, model, Preset::Paper),
                least,
            )?]),
            _ => Ok(Vec::new()),
        }
    }

    /// A finished arm whose rows have a measure, or what is missing.
    fn with_measure(
        &self,
        measure: &str,
        (set, model, preset): (&str, &str, Preset),
    ) -> Result<&Arm, String> {
        let mut arms = self.plan.compared();
        let arm = arms.find(|arm| (arm.set, arm.model, arm.preset) == (set, model, preset));
        let name = format!("{model} ({}) on {set}", preset.name());
        let arm = arm.filter(|arm| self.results.is_complete(*arm)).ok_or(arm);
        let arm = arm.map_err(|arm| format!("{name} {}", self.why_missing(arm)))?;
        let lacks = |row: &&crate::store::Row| !row.measures.contains_key(measure);
        match self.results.of(arm).iter().filter(|row| lacks(row)).count() {
            0 => Ok(arm),
            n => Err(format!(
                "{n} of the rows of {name} lack the measure {measure}"
            )),
        }
    }

    /// How much more of a measure the first arm has than the second.
    fn over(&self, measure: &str, arms: [(&str, &str, Preset); 2]) -> Result<Measured, String> {
        let [own, other] = arms.map(|arm| self.with_measure(measure, arm));
        let (own, other) = (own?, other?);
        let paired = self.results.compare_measure([other, own], measure);
        let paired = paired.ok_or_else(|| format!("there is no unit with {measure}"))?;
        let is_alone = own.preset == other.preset;
        let name = |arm: &Arm| match is_alone {
            true => arm.model.to_owned(),
            false => format!("{} ({})", arm.model, arm.reading),
        };
        Ok(Measured::new(measure, [name(own), name(other)], paired))
    }

    /// How much more of a measure than a value the units of an arm have, and how many of them reach it.
    fn at_least(
        &self,
        measure: &str,
        arm: (&str, &str, Preset),
        least: f64,
    ) -> Result<Measured, String> {
        let values = self.values(measure, arm)?;
        let paired = Paired::new(&vec![least; values.len()], &values, None);
        let paired = Paired {
            wins: values.iter().filter(|value| **value >= least).count(),
            ..paired.map_err(|error| error.to_string())?
        };
        let names = [arm.1.to_owned(), format!("the value {least}")];
        Ok(Measured::new(measure, names, paired))
    }

    /// A measure of each unit of an arm, or what is missing.
    fn values(&self, measure: &str, arm: (&str, &str, Preset)) -> Result<Vec<f64>, String> {
        let rows = self.results.of(self.with_measure(measure, arm)?);
        Ok(rows.iter().map(|row| row.measures[measure]).collect())
    }

    /// How much more a measure of the baseline rises, from the first of a pair to the second, than that of a model.
    fn rises_over(
        &self,
        set: &str,
        model: &str,
        pair: &[&'static str; 2],
    ) -> Result<Measured, String> {
        let rises = |model: &str| {
            let [first, last] = pair.map(|name| self.values(name, (set, model, Preset::Paper)));
            let pairs = first?.into_iter().zip(last?);
            Ok::<Vec<f64>, String>(pairs.map(|(first, last)| last - first).collect())
        };
        let baseline = self.card.baseline;
        let (own, theirs) = (rises(baseline)?, rises(model)?);
        let paired = Paired::new(&theirs, &own, None).map_err(|error| error.to_string())?;
        let names = [baseline, model].map(str::to_owned);
        Ok(Measured::new(
            &format!("rise to {}", pair[1]),
            names,
            paired,
        ))
    }
}

/// Whether measures go from model to model as they must.
pub(super) fn trend(measured: &[Measured]) -> Verdict {
    let of_one = measured.chunk_by(|a, b| a.measure == b.measure);
    let all = of_one.clone().count();
    let against = of_one.map(|steps| {
        let against = steps.iter().filter(|step| !step.is_ahead());
        against.map(Measured::to_string).collect::<Vec<_>>()
    });
    let against: Vec<Vec<String>> = against.filter(|steps| !steps.is_empty()).collect();
    match (against.len(), against.concat().join("; ")) {
        (0, _) => Verdict::Reproduced,
        (n, against) if n == all => Verdict::NotReproduced(against),
        (_, against) => Verdict::Partly(format!("not {against}")),
    }
}

/// Whether a model has more of a measure than another, and than the control if there is one.
pub(super) fn more(measured: &[Measured]) -> Verdict {
    let all = measured.iter().map(Measured::to_string).collect::<Vec<_>>();
    let all = all.join("; ");
    match measured {
        [other, ..] if !other.is_clear() => Verdict::NotReproduced(all),
        [_, control] if !control.is_clear() => {
            Verdict::Partly(format!("the control is not behind: {all}"))
        }
        _ => Verdict::Reproduced,
    }
}

/// Whether measures of the baseline rise by more than those of the models in every unit.
pub(super) fn rises_most(measured: &[Measured]) -> Verdict {
    let against = measured.iter();
    let against = against.filter(|found| found.paired.wins < found.paired.n);
    let against: Vec<String> = against.map(Measured::to_string).collect();
    match against.len() {
        0 => Verdict::Reproduced,
        n if n == measured.len() => Verdict::NotReproduced(against.join("; ")),
        _ => Verdict::Partly(format!("not {}", against.join("; "))),
    }
}

/// Whether more than half of the units reach a value.
pub(super) fn in_most(measured: &[Measured]) -> Verdict {
    let on = |found: &Measured| 2 * found.paired.wins > found.paired.n;
    match measured.iter().find(|found| !on(found)) {
        None => Verdict::Reproduced,
        Some(found) => {
            let Paired { n, wins, .. } = found.paired;
            Verdict::NotReproduced(format!("in {wins} of {n} runs"))
        }
    }
}
