//! Which models run on which sets, and how.

use super::model::Size;
use super::{Model, SUITE, title};
use crate::tables::arms::{in_turns, set_epochs};
use crate::tables::{self, Skipped};
use crate::{Preset, Scale, Unit};
use bochner_datasets::{Protocol, RegressionSet};
use serde::{Deserialize, Serialize};

/// One model on one set in one reading, over the splits.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The set.
    pub set: RegressionSet,
    /// The model.
    pub model: Model,
    /// The reading of the method. Models that are not in the released code have one, `paper`.
    pub preset: Preset,
    /// How the rows are divided.
    pub protocol: Protocol,
    /// Every how many rows of the set are used.
    pub every: usize,
    /// The norm, where it is not the released one but a candidate for choice by validation.
    pub candidate: Option<f64>,
    /// One unit per split.
    pub units: Vec<Unit>,
}

impl Arm {
    /// Whether one of the claims rests on it: the judged models and what they are compared with, on
    /// ten folds in the paper's reading, and as published on the released splits.
    pub fn is_claimed(&self) -> bool {
        let compared = self.model == Model::Transformer || self.model.is_judged();
        let preset = if self.protocol == Protocol::R90 {
            self.model.as_published()
        } else {
            Preset::Paper
        };
        compared && self.preset == preset && self.candidate.is_none()
    }
}

impl AsRef<[Unit]> for Arm {
    fn as_ref(&self) -> &[Unit] {
        &self.units
    }
}

/// What is given up when the projected time is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Nothing.
    #[default]
    None,
    /// Parkinsons keeps every 10th row instead of every 5th.
    Rows,
    /// Also, 300 epochs instead of 500.
    Epochs,
}

impl tables::Cut for Cut {
    const NONE: Self = Self::None;
    const ALL: &'static [Self] = &[Self::None, Self::Rows, Self::Epochs];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rows => "rows",
            Self::Epochs => "epochs",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::None => "nothing was cut",
            Self::Rows => "Parkinsons was cut to every 10th row",
            Self::Epochs => "Parkinsons was cut to every 10th row, and training to 300 epochs",
        }
    }
}

/// The arms of a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    scale: Scale,
    cut: Cut,
    arms: Vec<Arm>,
    repeats: Vec<Unit>,
}

impl Plan {
    /// The plan for some sets, each once; cheap sets first, whatever the order given.
    pub fn new(scale: Scale, sets: &[RegressionSet], cut: Cut) -> Self {
        let mut sets = sets.to_vec();
        sets.sort_by_key(|set| set.rows());
        sets.dedup();
        let arms: Vec<Arm> = sets.iter().flat_map(|&set| arms(scale, set, cut)).collect();
        let repeats = match scale {
            Scale::Smoke => repeats(&arms),
            _ => Vec::new(),
        };
        Self {
            scale,
            cut,
            arms,
            repeats,
        }
    }

    /// The same plan with another number of epochs everywhere.
    pub fn with_epochs(mut self, epochs: usize) -> Self {
        let units = self.arms.iter_mut().flat_map(|arm| arm.units.iter_mut());
        set_epochs(units.chain(&mut self.repeats), epochs);
        self
    }

    /// The plan without the sets that could not be had.
    pub fn without(mut self, skipped: &[Skipped]) -> Self {
        self.arms
            .retain(|arm| skipped.iter().all(|s| s.set != title(arm.set)));
        self.repeats
            .retain(|unit| skipped.iter().all(|s| s.set != unit.set));
        self
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// What was cut.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// The arms.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// Units that are run a second time and must give the same bits.
    pub fn repeats(&self) -> &[Unit] {
        &self.repeats
    }

    /// All units: set by set, within a set split by split, so that an unfinished run has all
    /// models on the splits it has. What claims rest on comes first, what validation chooses among
    /// when everything else is done.
    pub fn units(&self) -> Vec<Unit> {
        let (claimed, others): (Vec<&Arm>, Vec<&Arm>) =
            self.arms.iter().partition(|arm| arm.is_claimed());
        let (candidates, others): (Vec<&Arm>, _) =
            others.into_iter().partition(|arm| arm.candidate.is_some());
        let mut units = in_turns(&claimed);
        units.extend(in_turns(&others));
        units.extend(in_turns(&candidates));
        units.extend(self.repeats.iter().cloned());
        units
    }
}

fn size(scale: Scale, set: RegressionSet, cut: Cut) -> Size {
    let parkinsons = set == RegressionSet::Parkinsons;
    match scale {
        Scale::Smoke => Size {
            splits: 2,
            points: 16,
            epochs: 60,
            every: if parkinsons { 10 } else { 1 },
        },
        Scale::Desk => Size {
            splits: 10,
            points: 32,
            epochs: if cut >= Cut::Epochs { 300 } else { 500 },
            every: match (parkinsons, cut) {
                (false, _) => 1,
                (true, Cut::None) => 5,
                (true, _) => 10,
            },
        },
        Scale::Paper => Size {
            splits: 10,
            points: 64,
            epochs: 1000,
            every: 1,
        },
    }
}

/// What is run on one set: model, preset, protocol, and a norm that is a candidate for choice.
type Choice = (Model, Preset, Protocol, Option<f64>);

fn arms(scale: Scale, set: RegressionSet, cut: Cut) -> Vec<Arm> {
    let size = size(scale, set, cut);
    choices(scale, set)
        .into_iter()
        .map(|choice| arm(scale, set, size, choice))
        .collect()
}

fn choices(scale: Scale, set: RegressionSet) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for &protocol in protocols(scale, set) {
        let models = models(scale, set, protocol);
        let (judged, others): (Vec<Model>, _) = models.iter().partition(|m| m.is_judged());
        choices.extend(others.iter().map(|&m| (m, Preset::Paper, protocol, None)));
        for &preset in presets(scale, set) {
            choices.extend(judged.iter().map(|&m| (m, preset, protocol, None)));
        }
    }
    if scale == Scale::Paper && is_released(set) {
        choices.extend(candidates(set));
    }
    choices
}

/// Whether the rows that were published numbers' are known, so that a run can be compared with them.
/// Those of Parkinsons are not: the released code reads a table that is not public.
pub(super) fn is_released(set: RegressionSet) -> bool {
    set != RegressionSet::Parkinsons
}

fn protocols(scale: Scale, set: RegressionSet) -> &'static [Protocol] {
    if scale == Scale::Paper && is_released(set) {
        &[Protocol::P10, Protocol::R90]
    } else {
        &[Protocol::P10]
    }
}

/// The models that are run on a set: those that the released code has where the comparison is with
/// published numbers, and on the largest set.
fn models(scale: Scale, set: RegressionSet, protocol: Protocol) -> Vec<Model> {
    use RegressionSet::{Co2, Concrete, Housing, Parkinsons, Passenger};
    let reduced = [Model::Transformer, Model::IkanDirect, Model::Mikan];
    match (scale, set) {
        (Scale::Smoke, Passenger) | (Scale::Desk, Passenger | Co2 | Housing) => Model::ALL.to_vec(),
        (Scale::Desk, Concrete) => [&[Model::GpRbf, Model::GpSm], &reduced[..]].concat(),
        (Scale::Smoke | Scale::Desk, _) => reduced.to_vec(),
        (Scale::Paper, _) if protocol == Protocol::P10 && set != Parkinsons => {
            with_eight_heads(set, &Model::ALL)
        }
        (Scale::Paper, _) => with_eight_heads(set, &reduced),
    }
}

/// Some models, and the Transformer with as many heads as the others where it has fewer.
fn with_eight_heads(set: RegressionSet, models: &[Model]) -> Vec<Model> {
    let (own, eight) = (Model::Transformer, Model::TransformerEightHeads);
    let mut models = models.to_vec();
    if own.heads(set) != eight.heads(set) {
        let place = models.iter().position(|model| *model == own);
        models.insert(place.map_or(0, |place| place + 1), eight);
    }
    models
}

fn presets(scale: Scale, set: RegressionSet) -> &'static [Preset] {
    let both = match scale {
        Scale::Smoke => set == RegressionSet::Passenger,
        Scale::Desk => matches!(set, RegressionSet::Passenger | RegressionSet::Housing),
        Scale::Paper => is_released(set),
    };
    if both {
        &[Preset::Paper, Preset::Released]
    } else {
        &[Preset::Paper]
    }
}

/// The norms among which validation chooses, besides the released one.
fn candidates(set: RegressionSet) -> impl Iterator<Item = Choice> {
    let models = [Model::IkanDirect, Model::Mikan].into_iter();
    models.flat_map(move |model| {
        [1.0, 1.5, 1.8, 2.0, 3.0]
            .into_iter()
            .filter(move |p| Some(*p) != model.p(set))
            .map(move |p| (model, Preset::Paper, Protocol::P10, Some(p)))
    })
}

fn arm(scale: Scale, set: RegressionSet, size: Size, choice: Choice) -> Arm {
    let (model, preset, protocol, candidate) = choice;
    let p = candidate.or(model.p(set));
    let unit = |split| Unit {
        suite: SUITE.to_owned(),
        scale,
        set: title(set).to_owned(),
        variant: model.name().to_owned(),
        preset,
        protocol,
        split,
        // All models of a split start from the same seed.
        seed: split as u64,
        repeat: 0,
        settings: model.settings(set, size, preset, p),
    };
    Arm {
        set,
        model,
        preset,
        protocol,
        every: size.every,
        candidate,
        units: (0..size.splits).map(unit).collect(),
    }
}

/// The first split of the cheapest set once more, per model and preset.
fn repeats(arms: &[Arm]) -> Vec<Unit> {
    let Some(first) = arms.first() else {
        return Vec::new();
    };
    arms.iter()
        .filter(|arm| arm.set == first.set)
        .map(|arm| Unit {
            repeat: 1,
            ..arm.units[0].clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::published;
    use bochner_attention::Variant;

    fn plan(scale: Scale) -> Plan {
        Plan::new(scale, &RegressionSet::ALL, Cut::None)
    }

    #[test]
    fn smoke_has_both_presets_on_passenger_and_repeats_them() {
        let plan = plan(Scale::Smoke);
        // All models, two of them in two readings, on two splits; each once more.
        let arms = Model::ALL.len() + 2;
        let passenger = plan.units().iter().filter(|u| u.set == "Passenger").count();
        assert_eq!(passenger, arms * 2 + arms);
        assert_eq!(plan.units().len(), passenger + 4 * 3 * 2);
        assert_eq!(plan.units()[0].set, "Passenger");
    }

    #[test]
    fn desk_is_what_the_protocol_says() {
        let plan = plan(Scale::Desk);
        // Two more for the released readings on Passenger and Housing.
        let arms = 3 * Model::ALL.len() + 2 * 2 + 5 + 3;
        assert_eq!(plan.units().len(), arms * 10);
        for unit in plan.units() {
            assert_eq!(unit.settings.epochs(), 500);
            let thinned = if unit.set == "Parkinsons" { 5 } else { 1 };
            assert_eq!(unit.settings.every(), thinned);
        }
        let cut = Plan::new(Scale::Desk, &RegressionSet::ALL, Cut::Epochs);
        assert!(cut.units().iter().all(|u| u.settings.epochs() == 300));
    }

    #[test]
    fn norms_and_heads_are_those_released() {
        let plan = plan(Scale::Desk);
        let of = |set, model| {
            let arm = plan
                .arms()
                .iter()
                .find(|a| a.set == set && a.model == model);
            let settings = arm.unwrap().units[0].settings.attention().unwrap();
            (settings.p, settings.heads, settings.points)
        };
        use RegressionSet::{Co2, Concrete, Housing, Parkinsons, Passenger};
        let sets = [Co2, Passenger, Housing, Concrete, Parkinsons];
        assert_eq!(
            sets.map(|set| of(set, Model::IkanDirect).0.unwrap()),
            [3.0, 2.0, 3.0, 2.0, 3.0]
        );
        assert_eq!(
            sets.map(|set| of(set, Model::Mikan).0.unwrap()),
            [3.0, 3.0, 1.8, 1.8, 2.0]
        );
        assert_eq!(of(Co2, Model::Transformer), (None, 8, None));
        assert_eq!(of(Housing, Model::Transformer), (None, 4, None));
        assert_eq!(of(Housing, Model::Mikan).2, Some(32));
    }

    #[test]
    fn mechanisms_are_set_up_as_the_unit_says() {
        for unit in plan(Scale::Paper).units() {
            let Some(settings) = unit.settings.attention() else {
                assert!(unit.variant.starts_with("GP"));
                continue;
            };
            let points = settings.attention.card().points;
            let (p, preset) = match &settings.attention {
                Variant::IkanDirect(m) => (Some(m.p), m.preset),
                Variant::Mikan(m) => (Some(m.p), m.preset),
                _ => (None, bochner_attention::Preset::Paper),
            };
            assert_eq!((p, points), (settings.p, settings.points));
            assert_eq!(
                preset == bochner_attention::Preset::Released,
                unit.preset == Preset::Released
            );
            let implicit = unit.variant.starts_with("IKA") || unit.variant == "MIKAN";
            assert_eq!(p.is_some(), implicit, "{}", unit.label());
        }
    }

    #[test]
    fn what_was_run_before_is_still_found() {
        for (scale, name) in [(Scale::Desk, "table4-desk"), (Scale::Paper, "table4-paper")] {
            let units = plan(scale).units();
            for row in published(name) {
                assert!(units.contains(&row.unit), "{}", row.id);
            }
        }
    }

    #[test]
    fn every_unit_has_its_own_id() {
        for scale in [Scale::Smoke, Scale::Desk, Scale::Paper] {
            let units = plan(scale).units();
            let mut ids: Vec<String> = units.iter().map(Unit::id).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), units.len());
        }
    }

    #[test]
    fn paper_chooses_among_five_norms() {
        let plan = plan(Scale::Paper);
        let passenger = |model: Model| {
            plan.arms().iter().filter(move |arm| {
                arm.set == RegressionSet::Passenger
                    && arm.model == model
                    && arm.protocol == Protocol::P10
                    && arm.preset == Preset::Paper
            })
        };
        assert_eq!(passenger(Model::IkanDirect).count(), 5);
        assert_eq!(passenger(Model::TransformerEightHeads).count(), 1);
        // Eleven models and eight heads, two released readings; on the released splits four and two.
        let first = (12 + 2 + 4 + 2) * 10;
        let units = plan.units();
        let released = |unit: &Unit| match unit.set.as_str() {
            "Parkinsons" => unit.preset == Preset::Released || unit.protocol == Protocol::R90,
            _ => false,
        };
        assert!(!units.iter().any(released));
        let parkinsons = units.iter().filter(|unit| unit.set == "Parkinsons").count();
        assert_eq!(parkinsons, 4 * 10);
        // Everything else is done before what validation chooses among.
        let chosen = 4 * first - 2 * 10 + parkinsons;
        assert_eq!(units.len(), chosen + (4 * 2 * 4) * 10);
        let candidates = plan.arms().iter().filter(|arm| arm.candidate.is_some());
        let candidates: Vec<&Unit> = candidates.flat_map(|arm| &arm.units).collect();
        assert!(
            units[chosen..]
                .iter()
                .all(|unit| candidates.contains(&unit))
        );
    }
}
