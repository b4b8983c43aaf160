//! The judge: from claims and rows to verdicts.

mod verdict;

pub use verdict::{Effect, Evidence, Judged, Verdict};

use crate::claim::{Claim, Hypothesis, Quantity, Sense, Shown, Side, Statistic, Test, Than};
use crate::document::significant;
use crate::plan::{Arm, Choices, Plan};
use crate::row::Row;
use crate::statistics::{
    Difference, Estimate, FEWEST, LEVEL, holm, independent, partial_conjunction, sign_test,
};
use crate::suite::Card;
use crate::{Number, Results};

/// Judges the claims of a page together.
///
/// A claim's p-value is that of its partial conjunction, doubled if it counts both directions. It is *reproduced* if this
/// p-value, adjusted by Holm's procedure over all claims of the page that have one, is at most [`LEVEL`]. It is
/// *contradicted* if that of the opposite is.
pub fn judge(card: &'static Card, claims: &[Claim], plan: &Plan, results: &Results) -> Vec<Judged> {
    let court = Court {
        card,
        plan,
        results,
    };
    let tried: Vec<Result<Trial, Verdict>> = claims.iter().map(|c| court.try_claim(c)).collect();
    let adjusted = [0, 1].map(|side| {
        let tested = tried.iter().flatten();
        holm(&tested.map(|trial| trial.p_values[side]).collect::<Vec<_>>()).into_iter()
    });
    let [mut own, mut opposite] = adjusted;
    let mut judged: Vec<Judged> = Vec::new();
    for (claim, tried) in claims.iter().zip(tried) {
        let (mut verdict, p_values, evidence) = match tried {
            Err(verdict) => (verdict, None, Vec::new()),
            Ok(trial) => {
                let p_values = [&mut own, &mut opposite].map(|side| side.next().unwrap_or(1.0));
                let verdict = match p_values.map(|p| p <= LEVEL) {
                    [true, _] => Verdict::Reproduced,
                    [_, true] => Verdict::Contradicted,
                    _ => Verdict::Undecided,
                };
                (verdict, Some(p_values), trial.evidence)
            }
        };
        if let (Some((name, otherwise)), Some(_)) = (claim.needs, p_values) {
            let needed = judged.iter().find(|judged| judged.name == name);
            match needed.map(|judged| &judged.verdict) {
                Some(Verdict::Reproduced) => {}
                Some(Verdict::NotTested(why)) => verdict = Verdict::NotTested(why.clone()),
                _ => verdict = Verdict::NotTested(otherwise.into()),
            }
        }
        judged.push(Judged {
            name: claim.name,
            text: claim.text,
            null: claim.null(),
            p_values,
            verdict,
            evidence,
        });
    }
    judged
}

/// Whether the baseline reaches the gate of a set in validation, where it has one; `None` before it is finished.
pub fn passes_gate(card: &Card, plan: &Plan, results: &Results, set: &str) -> Option<bool> {
    let Some(set) = card.set(set).filter(|set| set.gate.is_some()) else {
        return Some(true);
    };
    let baseline = plan.claimed(set.title, card.baseline)?;
    Choices::Of(results).reaches(card, set, baseline)
}

/// The mean over sets of a model's mean differences from another, in favour of the model and in shown units, with the
/// sets that count and on which both are finished. `None` if there are none, or one has too few runs.
pub fn average_over(
    (card, plan, results): (&'static Card, &Plan, &Results),
    [model, other]: [&'static str; 2],
    sets: &[&'static str],
    number: Number,
) -> Option<(Estimate, Vec<&'static str>)> {
    let court = Court {
        card,
        plan,
        results,
    };
    let counts = |set: &&&'static str| passes_gate(card, plan, results, set) == Some(true);
    let hypothesis = Hypothesis::better(model, other, "");
    let on = sets.iter().filter(counts).filter_map(|&set| {
        let sample = court.sample(&hypothesis, set, number).ok()?;
        Some((sample.estimate()?, set))
    });
    let (estimates, sets): (Vec<Estimate>, Vec<&'static str>) = on.unzip();
    Some((Estimate::average(&estimates)?, sets))
}

/// The tested part of a claim.
struct Trial {
    p_values: [f64; 2],
    evidence: Vec<Evidence>,
}

/// Differences in favour of a hypothesis, run by run.
struct Sample {
    differences: Vec<Difference>,
    test_share: Option<f64>,
}

impl Sample {
    fn estimate(&self) -> Option<Estimate> {
        Estimate::new(&independent(&self.differences), self.test_share)
    }
}

#[derive(Clone, Copy)]
struct Court<'a> {
    card: &'static Card,
    plan: &'a Plan,
    results: &'a Results,
}

impl Court<'_> {
    fn try_claim(&self, claim: &Claim) -> Result<Trial, Verdict> {
        let (scale, why) = claim.from;
        if self.plan.scale < scale {
            return Err(Verdict::NotTested(why.into()));
        }
        let (count, of, side) = match &claim.test {
            Test::AtLeast { count, of, side } => (*count, of, *side),
            Test::Shown(shown) => return Err(self.shown(shown)),
        };
        let factor = if side == Side::Two { 2.0 } else { 1.0 };
        let level = LEVEL / factor;
        let tried = of.iter().map(|hypothesis| self.evidence(hypothesis, level));
        let (mut evidence, mut missing) = (Vec::new(), Vec::new());
        for found in tried {
            match found {
                Ok(found) => evidence.push(found),
                Err(why) if missing.contains(&why) => {}
                Err(why) => missing.push(why),
            }
        }
        if !missing.is_empty() {
            return Err(Verdict::NotTested(missing.join("; ")));
        }
        let p_of = |side: usize, count| {
            let p_values: Vec<f64> = evidence.iter().map(|found| found.p_values[side]).collect();
            partial_conjunction(&p_values, count)
        };
        let both = [p_of(0, count), p_of(1, of.len() - count + 1)];
        Ok(Trial {
            p_values: both.map(|p| (factor * p).min(1.0)),
            evidence,
        })
    }

    /// The evidence for a hypothesis that is tested at a level, or why there is none.
    fn evidence(&self, hypothesis: &Hypothesis, level: f64) -> Result<Evidence, String> {
        let mut sets = Vec::new();
        for &set in &hypothesis.sets {
            match passes_gate(self.card, self.plan, self.results, set) {
                Some(true) => sets.push(set),
                Some(false) => {}
                None => return Err(self.missing(set, self.card.baseline)),
            }
        }
        if sets.is_empty() {
            let all = hypothesis.sets.join(", ");
            return Err(format!("the set-up is not adequate on {all}"));
        }
        let on = |number| {
            let samples = sets.iter().map(|set| self.sample(hypothesis, set, number));
            samples.collect::<Result<Vec<Sample>, String>>()
        };
        let (shown, published, p_values) = match hypothesis.statistic {
            Statistic::Mean => {
                let estimate = estimate(&on(Number::V)?, &sets, hypothesis.model)?;
                let bound = -hypothesis.margin;
                let p_values = [estimate.p_above(bound), estimate.p_below(bound)];
                let published = self.published(hypothesis, &estimate, &sets, level);
                (self.show(hypothesis, &estimate), published, p_values)
            }
            Statistic::Majority => {
                let samples = on(Number::V)?;
                let runs = samples.iter().flat_map(|sample| &sample.differences);
                let n = runs.clone().count();
                let reached = runs.filter(|d| d.value >= 0.0).count();
                if sign_test(n, n)[0] > LEVEL {
                    return Err(format!("{n} runs cannot show a majority"));
                }
                let shown = format!("{reached} of {n} runs");
                (shown, None, sign_test(reached, n))
            }
        };
        let in_r = match hypothesis.quantity {
            Quantity::Metric => on(Number::R).and_then(|r| estimate(&r, &sets, hypothesis.model)),
            Quantity::Measure(_) | Quantity::Rise(_) => Err(String::new()),
        };
        Ok(Evidence {
            quantity: match hypothesis.quantity {
                Quantity::Metric => self.card.metric.plural.to_owned(),
                Quantity::Measure(name) => name.to_owned(),
                Quantity::Rise([_, last]) => format!("rise to {last}"),
            },
            model: hypothesis.model.to_owned(),
            other: match (hypothesis.than, hypothesis.sense) {
                (Than::Model { name, tag, share }, _) => {
                    let tag = tag.map_or(String::new(), |tag| format!(" ({tag})"));
                    match share {
                        1.0 => format!("{name}{tag}"),
                        _ => format!("{share} of {name}{tag}"),
                    }
                }
                (Than::Value(value), Sense::More) => format!("at least {value}"),
                (Than::Value(value), Sense::Less) => format!("at most {value}"),
            },
            sets,
            shown,
            in_r: in_r.ok().map(|estimate| self.show(hypothesis, &estimate)),
            published,
            p_values,
        })
    }

    /// The published effect of a hypothesis on these sets, if it compares the metric of two models.
    fn published(
        &self,
        hypothesis: &Hypothesis,
        estimate: &Estimate,
        sets: &[&str],
        level: f64,
    ) -> Option<Effect> {
        let (Quantity::Metric, Than::Model { name, share, .. }) =
            (hypothesis.quantity, hypothesis.than)
        else {
            return None;
        };
        let pair = [hypothesis.model, name];
        if pair[0] == pair[1] {
            return None;
        }
        let gain = self.card.published_gain(pair, share, sets)?;
        let gain = match hypothesis.sense {
            Sense::More => gain,
            Sense::Less => -gain,
        };
        Some(Effect {
            gain,
            power: estimate.power(gain + hypothesis.margin, level)?,
            level,
        })
    }

    fn show(&self, hypothesis: &Hypothesis, estimate: &Estimate) -> String {
        match hypothesis.quantity {
            Quantity::Metric => self.card.metric.estimate(estimate),
            Quantity::Measure(_) | Quantity::Rise(_) => {
                let sign = if estimate.mean > 0.0 { "+" } else { "" };
                let [mean, error] = [estimate.mean, estimate.error].map(significant);
                format!("{sign}{mean} ± {error}")
            }
        }
    }

    /// The differences in favour of a hypothesis on a set, in V- or R-numbers where it is about the metric.
    fn sample(&self, hypothesis: &Hypothesis, set: &str, number: Number) -> Result<Sample, String> {
        let own = self.plan.claimed(set, hypothesis.model);
        let rows = self.rows(set, hypothesis.model, own)?;
        let metric = self.card.metric;
        let sign = match hypothesis.sense {
            Sense::More => 1.0,
            Sense::Less => -1.0,
        };
        let lacks = |name: &str| format!("the rows of {} on {set} lack {name}", hypothesis.model);
        let value = |row: &Row| match hypothesis.quantity {
            Quantity::Metric => {
                let value = number.in_row(row);
                value.ok_or_else(|| format!("{set} has no validation part"))
            }
            Quantity::Measure(name) => row.measures.get(name).copied().ok_or_else(|| lacks(name)),
            Quantity::Rise(names) => {
                let [first, last] = names.map(|name| row.measures.get(name));
                let rise = first.zip(last).map(|(first, last)| last - first);
                rise.ok_or_else(|| lacks(names[1]))
            }
        };
        let differences = match hypothesis.than {
            Than::Value(bound) => {
                let shown = |row: &&Row| {
                    let value = value(row)?;
                    let shown = match hypothesis.quantity {
                        Quantity::Metric => metric.show(value),
                        _ => value,
                    };
                    Ok(Difference {
                        split: row.unit.split,
                        value: sign * (shown - bound),
                    })
                };
                rows.iter().map(shown).collect::<Result<Vec<_>, String>>()?
            }
            Than::Model { name, tag, share } => {
                let other = own.and_then(|own| self.plan.arm(set, name, tag, own.protocol));
                self.rows(set, name, other)?;
                let (own, other) = own.zip(other).expect("arms with rows");
                let pairs = self.results.pairs(own, other)?;
                let difference = |(row, other): &(&Row, &Row)| {
                    let (own, other) = (value(row)?, value(other)?);
                    let gain = match hypothesis.quantity {
                        Quantity::Metric => {
                            let loss = |value| metric.direction.loss(value);
                            metric.factor() * (share * loss(other) - loss(own))
                        }
                        _ => own - share * other,
                    };
                    Ok(Difference {
                        split: row.unit.split,
                        value: sign * gain,
                    })
                };
                let differences = pairs.iter().map(difference);
                differences.collect::<Result<Vec<_>, String>>()?
            }
        };
        Ok(Sample {
            differences,
            test_share: crate::results::test_share(&rows),
        })
    }

    /// The rows of a finished arm, or why there are none.
    fn rows<'a>(
        &'a self,
        set: &str,
        model: &str,
        arm: Option<&Arm>,
    ) -> Result<Vec<&'a Row>, String> {
        let finished = arm.filter(|arm| self.results.is_complete(*arm));
        let finished = finished.ok_or_else(|| self.missing(set, model))?;
        Ok(self.results.of(finished))
    }

    /// That a model cannot be judged on a set, and why.
    fn missing(&self, set: &str, model: &str) -> String {
        let arm = self.plan.claimed(set, model);
        let why = match arm.is_some_and(|arm| self.results.has_failed(arm)) {
            true => "has failed",
            false => "is not finished",
        };
        format!("{model} on {set} {why}")
    }

    fn shown(&self, shown: &Shown) -> Verdict {
        let Shown::NearPublished {
            models,
            sets,
            protocol,
        } = shown;
        let arms = sets.iter().flat_map(|set| {
            models.iter().map(move |&(model, tag)| {
                let arm = self.plan.arm(set, model, tag, *protocol);
                (format!("{model} on {set}"), arm)
            })
        });
        let (mut near, mut far, mut missing) = (0, Vec::new(), Vec::new());
        for (name, arm) in arms {
            match arm.map(|arm| self.is_near(arm)) {
                Some(Ok(true)) => near += 1,
                Some(Ok(false)) => far.push(name),
                Some(Err(why)) => missing.push(format!("{name} ({why})")),
                None => missing.push(format!("{name} (not run)")),
            }
        }
        let mut text = format!(
            "{near} of {} means of R-numbers lie within 2 published standard deviations",
            near + far.len() + missing.len()
        );
        for (what, names) in [("not", far), ("missing", missing)] {
            if !names.is_empty() {
                text.push_str(&format!("; {what} {}", names.join(", ")));
            }
        }
        Verdict::Shown(text)
    }

    fn is_near(&self, arm: &Arm) -> Result<bool, &'static str> {
        let mean = self.results.mean(arm, Number::R).ok_or("not finished")?;
        let published = self.card.published(arm.model, arm.set);
        let published = published.ok_or("the paper prints no number")?;
        let deviation = published.deviation;
        let deviation = deviation.ok_or("the paper prints no deviation")?;
        Ok((self.card.metric.show(mean) - published.mean).abs() <= 2.0 * deviation)
    }
}

/// The mean over sets of the means of samples, or which set has too few runs.
fn estimate(samples: &[Sample], sets: &[&str], model: &str) -> Result<Estimate, String> {
    let of = |(sample, set): (&Sample, &&str)| {
        let n = independent(&sample.differences).len();
        let too_few = || {
            let runs = if n == 1 { "run" } else { "runs" };
            format!("{n} {runs} of {model} on {set}, at least {FEWEST} are needed")
        };
        sample.estimate().ok_or_else(too_few)
    };
    let estimates = samples.iter().zip(sets).map(of);
    let estimates = estimates.collect::<Result<Vec<Estimate>, String>>()?;
    Estimate::average(&estimates).ok_or_else(|| "there is no set".to_owned())
}
