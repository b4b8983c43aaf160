//! Judging claims about measures.

use super::Court;
use crate::Preset;
use crate::statistics::{Paired, Verdict};

impl Court<'_> {
    pub(super) fn trend(
        &self,
        set: &str,
        models: &[&str],
        rising: &[&str],
        falling: &[&str],
    ) -> Result<Verdict, String> {
        let mut against = Vec::new();
        let rising_ones = rising.iter().map(|measure| (*measure, 1.0));
        let falling_ones = falling.iter().map(|measure| (*measure, -1.0));
        for (measure, sign) in rising_ones.chain(falling_ones) {
            let values = models.iter().map(|model| {
                let arm = self.plan.claimed(set, model);
                let mean = arm.and_then(|arm| self.results.measure(arm, measure));
                mean.ok_or_else(|| format!("{model} on {set} is not finished"))
            });
            let values = values.collect::<Result<Vec<f64>, String>>()?;
            if !values
                .windows(2)
                .all(|pair| sign * (pair[1] - pair[0]) > 0.0)
            {
                let values = values.iter().map(|value| format!("{value:.3}"));
                against.push(format!(
                    "{measure} {}",
                    values.collect::<Vec<_>>().join(", ")
                ));
            }
        }
        Ok(match against.len() {
            0 => Verdict::Reproduced,
            n if n == rising.len() + falling.len() => Verdict::NotReproduced(against.join("; ")),
            _ => Verdict::Partly(format!("not {}", against.join("; "))),
        })
    }

    /// A measure of each unit of a model in a reading.
    fn measured(
        &self,
        set: &str,
        measure: &str,
        model: &str,
        preset: Preset,
    ) -> Result<Vec<f64>, String> {
        let mut arms = self.plan.compared();
        let arm = arms.find(|arm| (arm.set, arm.model, arm.preset) == (set, model, preset));
        let values = arm
            .filter(|arm| self.results.is_complete(*arm))
            .and_then(|arm| {
                let rows = self.results.of(arm).into_iter();
                rows.map(|row| row.measures.get(measure).copied())
                    .collect::<Option<Vec<f64>>>()
            });
        values.ok_or_else(|| format!("{model} ({}) on {set} is not finished", preset.name()))
    }

    /// Whether the first of two models has more of a measure than the second, and than the control.
    pub(super) fn more(
        &self,
        set: &str,
        measure: &str,
        [model, than]: [&str; 2],
        control: Option<Preset>,
    ) -> Result<Verdict, String> {
        let own = self.measured(set, measure, model, Preset::Paper)?;
        // A comparison counts what is smaller as better.
        let over =
            |other: &[f64]| Paired::new(other, &own, None).map_err(|error| error.to_string());
        let other = over(&self.measured(set, measure, than, Preset::Paper)?)?;
        let control = control
            .map(|preset| over(&self.measured(set, measure, model, preset)?))
            .transpose()?;
        let shown = |paired: &Paired, name: &str| {
            format!(
                "{:+.4} ± {:.4} over {name}",
                -paired.mean,
                paired.error.unwrap_or(f64::NAN)
            )
        };
        let seen = [
            Some(shown(&other, than)),
            control.as_ref().map(|paired| shown(paired, "the control")),
        ];
        let seen = format!(
            "{measure} {}",
            seen.into_iter().flatten().collect::<Vec<_>>().join(", ")
        );
        let ahead = |paired: &Paired| paired.mean < 0.0 && paired.is_clear();
        Ok(match (ahead(&other), control.as_ref().is_none_or(ahead)) {
            (true, true) => Verdict::Reproduced,
            (true, false) => Verdict::Partly(format!("the control is not behind: {seen}")),
            (false, _) => Verdict::NotReproduced(seen),
        })
    }

    /// Whether measures of the baseline rise by more than those of the models, in every unit and for every pair.
    pub(super) fn rises_most(
        &self,
        set: &str,
        models: &[&'static str],
        measures: &[[&'static str; 2]],
    ) -> Result<Verdict, String> {
        let rises = |model: &str, pair: &[&str; 2]| {
            let [first, last] = pair.map(|name| self.measured(set, name, model, Preset::Paper));
            let pairs = first?.into_iter().zip(last?);
            Ok::<Vec<f64>, String>(pairs.map(|(first, last)| last - first).collect())
        };
        let (mut against, mut compared) = (Vec::new(), 0);
        for pair in measures {
            let own = rises(self.card.baseline, pair)?;
            for model in models {
                let theirs = rises(model, pair)?;
                let ahead = own.iter().zip(&theirs).filter(|(a, b)| a > b).count();
                compared += 1;
                if ahead < own.len().max(theirs.len()) {
                    let name = pair[1];
                    against.push(format!("{name} over {model} in {ahead} of {}", own.len()));
                }
            }
        }
        Ok(match against.len() {
            0 => Verdict::Reproduced,
            n if n == compared => Verdict::NotReproduced(against.join("; ")),
            _ => Verdict::Partly(against.join("; ")),
        })
    }

    /// Whether a measure is at least a value in more than half of the units.
    pub(super) fn in_most(
        &self,
        set: &str,
        model: &str,
        measure: &str,
        least: f64,
    ) -> Result<Verdict, String> {
        let values = self.measured(set, measure, model, Preset::Paper)?;
        let enough = values.iter().filter(|value| **value >= least).count();
        Ok(match 2 * enough > values.len() {
            true => Verdict::Reproduced,
            false => Verdict::NotReproduced(format!("in {enough} of {} runs", values.len())),
        })
    }
}
