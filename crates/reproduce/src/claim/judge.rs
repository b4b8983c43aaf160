//! Judging claims on V- and R-numbers.

mod averages;
mod measures;

pub use averages::{Average, Averaged};
pub use measures::Measured;

use super::{Asked, Claim, Criterion, Judged, gate};
use crate::plan::{Arm, Plan};
use crate::statistics::{Paired, Verdict};
use crate::suite::Card;
use crate::{Number, Preset, Protocol, Results};

/// Judges claims, each in its turn: a later one may rest on an earlier one.
///
/// A claim is *reproduced* if its criterion holds for V-numbers and R-numbers, and *partly* if it holds for one
/// of them or on some of its sets.
pub fn judge(card: &'static Card, claims: &[Claim], plan: &Plan, results: &Results) -> Vec<Judged> {
    let court = Court {
        card,
        plan,
        results,
    };
    let mut judged: Vec<Judged> = Vec::new();
    for claim in claims {
        let evidence = match plan.scale < claim.from.0 {
            true => Evidence::default(),
            false => Evidence {
                averages: court.averages(claim.criterion),
                measured: court.measured(claim.criterion),
            },
        };
        judged.push(Judged {
            name: claim.name,
            text: claim.text,
            verdict: court.verdict(claim, &evidence, &judged),
            averages: evidence.averages,
            measured: evidence.measured.unwrap_or_default(),
        });
    }
    judged
}

/// What a verdict rests on, besides comparisons on single sets.
struct Evidence {
    averages: Vec<Averaged>,
    /// Measures, or what is missing of them.
    measured: Result<Vec<Measured>, String>,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            averages: Vec::new(),
            measured: Ok(Vec::new()),
        }
    }
}

/// What V-numbers and R-numbers say.
const BOTH: [Number; 2] = [Number::V, Number::R];

#[derive(Clone, Copy)]
struct Court<'a> {
    card: &'static Card,
    plan: &'a Plan,
    results: &'a Results,
}

/// How a model compares with another on several sets, or on the average over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    Worse,
    NotWorse,
    Better,
}

impl Court<'_> {
    fn verdict(&self, claim: &Claim, evidence: &Evidence, judged: &[Judged]) -> Verdict {
        let (scale, why) = claim.from;
        if self.plan.scale < scale {
            return Verdict::NotTested(why.into());
        }
        if let Some((name, otherwise)) = claim.needs {
            let needed = judged.iter().find(|judged| judged.name == name);
            match needed.map(|judged| &judged.verdict) {
                Some(Verdict::Reproduced) => {}
                Some(Verdict::NotTested(why)) => return Verdict::NotTested(why.clone()),
                _ => return Verdict::NotTested(otherwise.into()),
            }
        }
        self.criterion(claim.criterion, evidence)
            .unwrap_or_else(Verdict::NotTested)
    }

    /// The verdict, or what is missing.
    fn criterion(&self, criterion: Criterion, evidence: &Evidence) -> Result<Verdict, String> {
        let measured = || evidence.measured.as_deref().map_err(String::clone);
        match criterion {
            Criterion::Better {
                model,
                sets,
                sign,
                clear,
            } => self.better(model, sets, sign, clear),
            Criterion::NotWorse { model, sets, all } => self.not_worse(model, sets, all),
            Criterion::NotWorseBy { model, set, margin } => self.not_worse_by(model, set, margin),
            Criterion::OnAverage { sets, asked, .. } => {
                self.on_average(&evidence.averages, sets, asked)
            }
            Criterion::AtMost {
                model,
                set,
                share,
                below,
            } => self.at_most(model, set, share, below),
            Criterion::NearPublished {
                models,
                sets,
                protocol,
            } => self.near_published(models, sets, protocol),
            Criterion::Within { model, bands } => self.within(model, bands),
            Criterion::Trend { .. } => Ok(measures::trend(measured()?)),
            Criterion::More { .. } => Ok(measures::more(measured()?)),
            Criterion::RisesMost { set, .. } => {
                self.adequate(set)?;
                Ok(measures::rises_most(measured()?))
            }
            Criterion::InMost { .. } => Ok(measures::in_most(measured()?)),
            Criterion::Below { set, models } => self.below(set, models),
        }
    }

    /// A model against another on a set, in V-numbers and in R-numbers; `None` until both are complete.
    fn paired(&self, set: &str, model: &str, other: &str) -> Option<[Paired; 2]> {
        let arm = self.plan.claimed(set, model)?;
        let other = self.plan.beside(arm, other)?;
        let [v, r] = BOTH.map(|number| self.results.compare_all(arm, other, number));
        Some([v?, r?])
    }

    /// A model against another on a set, or which of the two is missing.
    fn needed(&self, set: &str, model: &str, other: &str) -> Result<[Paired; 2], String> {
        let paired = self.paired(set, model, other);
        paired.ok_or_else(|| match self.is_there(set, model) {
            true => self.missing(set, other),
            false => self.missing(set, model),
        })
    }

    fn is_there(&self, set: &str, model: &str) -> bool {
        let arm = self.plan.claimed(set, model);
        arm.is_some_and(|arm| self.results.is_complete(arm))
    }

    /// That a model cannot be judged on a set, and why.
    fn missing(&self, set: &str, model: &str) -> String {
        let why = self.why_missing(self.plan.claimed(set, model));
        format!("{model} on {set} {why}")
    }

    /// Something in a list of what is not finished, for the lack of one of some arms.
    fn name_missing(&self, name: &str, arms: &[Option<&Arm>]) -> String {
        match arms
            .iter()
            .flatten()
            .any(|arm| self.results.has_failed(*arm))
        {
            true => format!("{name} (failed)"),
            false => name.to_owned(),
        }
    }

    fn why_missing(&self, arm: Option<&Arm>) -> &'static str {
        match arm.is_some_and(|arm| self.results.has_failed(arm)) {
            true => "has failed",
            false => "is not finished",
        }
    }

    fn better(
        &self,
        model: &str,
        sets: &[&'static str],
        sign: usize,
        clear: usize,
    ) -> Result<Verdict, String> {
        let baseline = self.card.baseline;
        let paired = |&set: &&'static str| (set, self.paired(set, model, baseline));
        let paired: Vec<_> = sets.iter().map(paired).collect();
        let missing = paired.iter().filter(|(_, paired)| paired.is_none());
        let missing: Vec<String> = missing
            .map(|(set, _)| {
                let arms = [model, baseline].map(|model| self.plan.claimed(set, model));
                self.name_missing(set, &arms)
            })
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "all {} sets are needed; not finished: {}",
                spelt(sets.len()),
                missing.join(", ")
            ));
        }
        let on = |number: usize| {
            paired
                .iter()
                .filter_map(move |(set, p)| Some((*set, (*p)?[number])))
        };
        let ahead = |number| on(number).filter(|(_, paired)| paired.mean < 0.0);
        let clearly = |number| ahead(number).filter(|(_, paired)| paired.is_clear());
        let holds = |number| ahead(number).count() >= sign && clearly(number).count() >= clear;
        Ok(on_both([holds(0), holds(1)], || {
            let clear: Vec<&str> = clearly(0).map(|(set, _)| set).collect();
            match clear.is_empty() {
                true => Verdict::NotReproduced(format!(
                    "the V-number is {} on {} of {} sets, on none by 2 standard errors",
                    self.card.metric.better(),
                    ahead(0).count(),
                    sets.len()
                )),
                false => {
                    Verdict::Partly(format!("by 2 standard errors only on {}", clear.join(", ")))
                }
            }
        }))
    }

    fn not_worse(&self, model: &str, sets: &[&'static str], all: &str) -> Result<Verdict, String> {
        use Grade::{Better, Worse};
        let paired = sets
            .iter()
            .map(|set| self.needed(set, model, self.card.baseline));
        let paired = paired.collect::<Result<Vec<[Paired; 2]>, String>>()?;
        let grade = |number: usize| {
            let grades = paired.iter().map(|on| match on[number] {
                d if d.mean < 0.0 && d.is_clear() => Better,
                d if d.mean <= 0.0 => Grade::NotWorse,
                _ => Worse,
            });
            grades.min().unwrap_or(Worse)
        };
        let partly = |why: &str| Verdict::Partly(why.into());
        Ok(match (grade(0), grade(1)) {
            (Better, Better) => Verdict::Reproduced,
            (Worse, Worse) => {
                let sets = sets.iter().zip(&paired).filter(|(_, on)| on[0].mean <= 0.0);
                let names: Vec<&str> = sets.map(|(set, _)| *set).collect();
                match names.is_empty() {
                    true => Verdict::NotReproduced(format!("worse on {all}")),
                    false => Verdict::Partly(format!("not worse only on {}", names.join(", "))),
                }
            }
            (Worse, _) => partly("not worse, for R-numbers only"),
            (_, Worse) => partly("not worse, for V-numbers only"),
            (Better, _) => partly("not worse; better for V-numbers only"),
            (_, Better) => partly("not worse; better for R-numbers only"),
            _ => partly("not worse"),
        })
    }

    /// Refuses to judge a set on which the baseline misses the gate, or is not finished.
    fn adequate(&self, set: &str) -> Result<(), String> {
        match gate::passes(self.card, self.plan, self.results, set) {
            Some(true) => Ok(()),
            Some(false) => Err(format!("the set-up is not adequate on {set}")),
            None => Err(self.missing(set, self.card.baseline)),
        }
    }

    fn not_worse_by(&self, model: &str, set: &'static str, margin: f64) -> Result<Verdict, String> {
        self.adequate(set)?;
        let paired = self.needed(set, model, self.card.baseline)?;
        let metric = self.card.metric;
        let holds = paired.map(|paired| metric.factor() * paired.mean < margin);
        Ok(on_both(holds, || {
            let v = metric.difference(&paired[0]);
            Verdict::NotReproduced(format!("{v} in V"))
        }))
    }

    fn on_average(
        &self,
        averages: &[Averaged],
        sets: &[&'static str],
        asked: Asked,
    ) -> Result<Verdict, String> {
        let (mut adequate, mut not_adequate) = (Vec::new(), Vec::new());
        for &set in sets {
            let passed = gate::passes(self.card, self.plan, self.results, set);
            let passed = passed.ok_or_else(|| self.missing(set, self.card.baseline))?;
            match passed {
                true => adequate.push(set),
                false => not_adequate.push(set),
            }
        }
        if adequate.is_empty() {
            return Err("the set-up is adequate on no set".into());
        }
        for average in averages {
            if let Some(set) = adequate.iter().find(|set| !average.sets.contains(set)) {
                self.needed(set, average.model, average.other)?;
            }
        }
        let grade = |number: usize| {
            averages
                .iter()
                .map(|average| average.grades()[number])
                .min()
        };
        let [v, r] = [0, 1].map(|number| grade(number).unwrap_or(Grade::Worse));
        let least = match asked {
            Asked::Sign => Grade::NotWorse,
            Asked::Clear | Asked::ClearOrSign => Grade::Better,
        };
        let short = averages
            .iter()
            .filter(|average| average.grades()[0] < least);
        let short = short.map(|average| format!("{} over {}", average.model, average.other));
        let short = short.collect::<Vec<_>>().join(", ");
        let without = match not_adequate.is_empty() {
            true => String::new(),
            false => format!(
                "not judged on {}, where the set-up is not adequate",
                not_adequate.join(", ")
            ),
        };
        let with = |why: String| match without.is_empty() {
            true => why,
            false => format!("{why}; {without}"),
        };
        let sign = asked == Asked::ClearOrSign && v.min(r) >= Grade::NotWorse;
        Ok(match (v >= least, r >= least) {
            (true, true) if not_adequate.is_empty() => Verdict::Reproduced,
            (true, true) => Verdict::Partly(without),
            (false, true) => Verdict::Partly(with("for R-numbers only".into())),
            (true, false) => Verdict::Partly(with("for V-numbers only".into())),
            _ if sign => Verdict::Partly(with(format!(
                "the sign is right, 2 standard errors are not reached by {short}"
            ))),
            _ => Verdict::NotReproduced(with(format!("not {short}"))),
        })
    }

    fn at_most(&self, model: &str, set: &str, share: f64, below: &str) -> Result<Verdict, String> {
        let mean = |model, number| self.results.mean(self.plan.claimed(set, model)?, number);
        let holds = |number| {
            let (own, baseline) = (mean(model, number)?, mean(self.card.baseline, number)?);
            Some(own <= share * baseline && own < mean(below, number)?)
        };
        let models = [model, self.card.baseline, below].into_iter();
        let mut missing = models.filter(|model| !self.is_there(set, model));
        if let Some(missing) = missing.next() {
            return Err(self.missing(set, missing));
        }
        let [Some(v), Some(r)] = BOTH.map(holds) else {
            return Err(format!("{set} has no validation part"));
        };
        Ok(on_both([v, r], || {
            Verdict::NotReproduced(format!("see the {set} rows"))
        }))
    }

    fn near_published(
        &self,
        models: &[(&'static str, Preset)],
        sets: &[&'static str],
        protocol: Protocol,
    ) -> Result<Verdict, String> {
        let (mut outside, mut missing, mut cells) = (Vec::new(), Vec::new(), 0);
        for set in sets {
            for &(model, preset) in models {
                let arm = self.plan.arm(set, model, preset, protocol);
                let near = arm.and_then(|arm| self.is_near(arm));
                cells += 1;
                match near {
                    None => missing.push(self.name_missing(&format!("{model} on {set}"), &[arm])),
                    Some(false) => outside.push(format!("{model} on {set}")),
                    Some(true) => {}
                }
            }
        }
        if !missing.is_empty() {
            return Err(format!("not finished: {}", missing.join(", ")));
        }
        Ok(match outside.len() {
            0 => Verdict::Reproduced,
            n if n == cells => Verdict::NotReproduced("none is".into()),
            _ => Verdict::Partly(format!("not {}", outside.join(", "))),
        })
    }

    fn is_near(&self, arm: &Arm) -> Option<bool> {
        let ours = self.card.metric.show(self.results.mean(arm, Number::R)?);
        let published = self.card.published(arm.model, arm.set)?;
        Some((ours - published.mean).abs() <= 2.0 * published.deviation?)
    }

    fn within(&self, model: &str, bands: &[(&'static str, f64, f64)]) -> Result<Verdict, String> {
        let mut outside = Vec::new();
        for &(set, low, high) in bands {
            let arm = self.plan.claimed(set, model);
            let found = arm.and_then(|arm| self.results.mean(arm, Number::V));
            let found = found.ok_or_else(|| self.missing(set, model))?;
            let found = self.card.metric.show(found);
            if !(low..=high).contains(&found) {
                let (digits, unit) = (self.card.metric.digits, self.card.metric.unit());
                outside.push(format!("{found:.digits$}{unit} on {set}"));
            }
        }
        Ok(match outside.is_empty() {
            true => Verdict::Reproduced,
            false => Verdict::NotReproduced(format!("our {model} has {}", outside.join(" and "))),
        })
    }

    fn below(&self, set: &str, models: &[&'static str]) -> Result<Verdict, String> {
        let paired = models
            .iter()
            .map(|&model| Ok((model, self.needed(set, model, self.card.baseline)?)));
        let paired = paired.collect::<Result<Vec<_>, String>>()?;
        let not = |number: usize| {
            let not = paired.iter().filter(|(_, on)| on[number].mean >= 0.0);
            not.map(|(model, _)| *model).collect::<Vec<_>>()
        };
        let [v, r] = [not(0), not(1)];
        Ok(on_both([v.is_empty(), r.is_empty()], || match v.len() {
            n if n == models.len() => Verdict::NotReproduced("none is".into()),
            _ => Verdict::Partly(format!("not {}", v.join(", "))),
        }))
    }
}

/// The verdict on what holds for V-numbers and for R-numbers.
fn on_both(holds: [bool; 2], neither: impl FnOnce() -> Verdict) -> Verdict {
    match holds {
        [true, true] => Verdict::Reproduced,
        [false, true] => Verdict::Partly("for R-numbers only".into()),
        [true, false] => Verdict::Partly("for V-numbers only".into()),
        [false, false] => neither(),
    }
}

/// Small numbers as words.
fn spelt(n: usize) -> String {
    let words = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    words
        .get(n)
        .map_or_else(|| n.to_string(), |word| (*word).to_owned())
}
