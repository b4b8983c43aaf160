//! Models against each other in the mean over sets.

use super::{BOTH, Court, Grade};
use crate::Results;
use crate::claim::{Criterion, gate};
use crate::plan::Plan;
use crate::statistics::Paired;
use crate::suite::{Card, Metric};
use std::fmt;

/// A mean over sets of mean differences, with its standard error, from those of the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// The mean, as a difference of losses: negative if the model is better.
    pub mean: f64,
    /// Its standard error; infinite if a set has a single split.
    pub error: f64,
}

/// How a model compares with another in the mean over sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Averaged {
    /// The model.
    pub model: &'static str,
    /// What it is compared with.
    pub other: &'static str,
    /// The sets that count and on which both are finished.
    pub sets: Vec<&'static str>,
    /// The averages in V-numbers and in R-numbers.
    pub on: [Average; 2],
    /// What is averaged.
    pub metric: Metric,
}

impl Averaged {
    /// Compares a model with another in the mean over those of the sets that count.
    pub(crate) fn of(
        (card, plan, results): (&'static Card, &Plan, &Results),
        [model, other]: [&'static str; 2],
        sets: &[&'static str],
    ) -> Self {
        let court = Court {
            card,
            plan,
            results,
        };
        court.averaged([model, other], sets)
    }

    /// The averages as they are shown, mean ± standard error.
    pub fn shown(&self) -> [String; 2] {
        let (metric, fine) = (self.metric, self.metric.fine);
        self.on.map(|average| {
            let (mean, error) = (metric.gain(average.mean), metric.factor() * average.error);
            format!("{mean:+.fine$} ± {error:.fine$}")
        })
    }

    pub(super) fn grades(&self) -> [Grade; 2] {
        self.on.map(|average| match average.mean < 0.0 {
            true if average.mean.abs() >= 2.0 * average.error => Grade::Better,
            true => Grade::NotWorse,
            false => Grade::Worse,
        })
    }
}

impl Court<'_> {
    /// The averages that a criterion rests on.
    pub(super) fn averages(&self, criterion: Criterion) -> Vec<Averaged> {
        let Criterion::OnAverage {
            models,
            others,
            sets,
            ..
        } = criterion
        else {
            return Vec::new();
        };
        let pairs = models
            .iter()
            .flat_map(|model| others.iter().map(move |other| [*model, *other]));
        pairs.map(|pair| self.averaged(pair, sets)).collect()
    }

    fn averaged(&self, [model, other]: [&'static str; 2], sets: &[&'static str]) -> Averaged {
        let counts =
            |set: &str| gate::passes(self.card, self.plan, self.results, set) == Some(true);
        let paired = sets.iter().filter(|set| counts(set));
        let paired = paired.filter_map(|&set| Some((set, self.paired(set, model, other)?)));
        let paired: Vec<(&'static str, [Paired; 2])> = paired.collect();
        let n = paired.len() as f64;
        let mut on = [Average::default(); BOTH.len()];
        for (_, paired) in &paired {
            for (average, paired) in on.iter_mut().zip(paired) {
                let error = paired.error.unwrap_or(f64::INFINITY);
                average.mean += paired.mean / n;
                average.error = average.error.hypot(error / n);
            }
        }
        Averaged {
            model,
            other,
            sets: paired.into_iter().map(|(set, _)| set).collect(),
            on,
            metric: self.card.metric,
        }
    }
}

impl fmt::Display for Averaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([v, r], sets) = (self.shown(), self.sets.join(", "));
        write!(
            f,
            "{} - {}: {v} in V, {r} in R ({sets})",
            self.model, self.other
        )
    }
}
