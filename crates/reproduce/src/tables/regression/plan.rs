//! Which models run on which sets, and how.

use super::{SUITE, Skipped, title};
use crate::{Preset, Scale, Settings, Unit};
use bochner_attention::{DirectInit, IkanDirect, Mikan, Softmax, Variant};
use bochner_datasets::{Protocol, RegressionSet};
use serde::{Deserialize, Serialize};

/// A model of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// Softmax attention with the heads of the released code: 8 on CO2, 4 elsewhere.
    Transformer,
    /// Softmax attention with 8 heads, as many as the others have.
    TransformerEightHeads,
    /// Kernel attention whose spectral points are parameters.
    IkanDirect,
    /// Kernel attention whose spectral points are drawn jointly over the heads.
    Mikan,
}

impl Model {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transformer => "Transformer",
            Self::TransformerEightHeads => "Transformer (8 heads)",
            Self::IkanDirect => "IKAN-direct",
            Self::Mikan => "MIKAN",
        }
    }

    /// Whether it draws on spectral points, and so has presets and a norm to choose.
    pub const fn is_implicit(self) -> bool {
        matches!(self, Self::IkanDirect | Self::Mikan)
    }

    const fn heads(self, set: RegressionSet) -> usize {
        match (self, set) {
            (Self::Transformer, RegressionSet::Co2) => 8,
            (Self::Transformer, _) => 4,
            _ => 8,
        }
    }

    /// The attention mechanism; everything not given is the mechanism's own default.
    fn attention(self, p: Option<f64>, points: usize, preset: Preset) -> Variant {
        let followed = match preset {
            Preset::Paper => bochner_attention::Preset::Paper,
            Preset::Released => bochner_attention::Preset::Released,
        };
        match (self, p) {
            (Self::IkanDirect, Some(p)) => IkanDirect {
                p,
                points,
                preset: followed,
                start: match preset {
                    Preset::Paper => DirectInit::NearSoftmax,
                    Preset::Released => DirectInit::KaimingUniform,
                },
                ..IkanDirect::default()
            }
            .into(),
            (Self::Mikan, Some(p)) => Mikan {
                p,
                points,
                preset: followed,
                ..Mikan::default()
            }
            .into(),
            _ => Softmax {}.into(),
        }
    }

    /// The norm p that the released code uses.
    fn released_p(self, set: RegressionSet) -> Option<f64> {
        use RegressionSet::{Co2, Concrete, Housing, Parkinsons, Passenger};
        match (self, set) {
            (Self::IkanDirect, Passenger | Concrete) => Some(2.0),
            (Self::IkanDirect, _) => Some(3.0),
            (Self::Mikan, Co2 | Passenger) => Some(3.0),
            (Self::Mikan, Housing | Concrete) => Some(1.8),
            (Self::Mikan, Parkinsons) => Some(2.0),
            _ => None,
        }
    }
}

/// One model on one set in one reading, over the splits.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The set.
    pub set: RegressionSet,
    /// The model.
    pub model: Model,
    /// The reading of the method. Models without spectral points have one reading, `paper`.
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

impl Cut {
    /// All cuts, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::None, Self::Rows, Self::Epochs];

    /// What to say about it.
    pub const fn describe(self) -> &'static str {
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

/// The sizes that differ between the scales.
#[derive(Clone, Copy)]
struct Size {
    splits: usize,
    points: usize,
    epochs: usize,
    every: usize,
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
        for unit in units.chain(&mut self.repeats) {
            unit.settings.epochs = epochs;
        }
        self
    }

    /// The plan without the sets that could not be had.
    pub fn without(mut self, skipped: &[Skipped]) -> Self {
        self.arms
            .retain(|arm| skipped.iter().all(|s| s.set != arm.set));
        self.repeats
            .retain(|unit| skipped.iter().all(|s| title(s.set) != unit.set));
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
    /// models on the splits it has.
    pub fn units(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        for arms in self.arms.chunk_by(|a, b| a.set == b.set) {
            let splits = arms.iter().map(|arm| arm.units.len()).max().unwrap_or(0);
            for split in 0..splits {
                units.extend(arms.iter().filter_map(|arm| arm.units.get(split).cloned()));
            }
        }
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
    use Model::{IkanDirect, Mikan, Transformer, TransformerEightHeads};
    let mut choices: Vec<Choice> = Vec::new();
    let protocols: &[Protocol] = match scale {
        Scale::Paper => &[Protocol::P10, Protocol::R90],
        _ => &[Protocol::P10],
    };
    for &protocol in protocols {
        choices.push((Transformer, Preset::Paper, protocol, None));
        if scale == Scale::Paper && Transformer.heads(set) != 8 {
            choices.push((TransformerEightHeads, Preset::Paper, protocol, None));
        }
        for preset in presets(scale, set) {
            choices.push((IkanDirect, *preset, protocol, None));
            choices.push((Mikan, *preset, protocol, None));
        }
    }
    if scale == Scale::Paper {
        choices.extend(candidates(set));
    }
    choices
}

fn presets(scale: Scale, set: RegressionSet) -> &'static [Preset] {
    let both = match scale {
        Scale::Smoke => set == RegressionSet::Passenger,
        Scale::Desk => matches!(set, RegressionSet::Passenger | RegressionSet::Housing),
        Scale::Paper => true,
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
            .filter(move |p| Some(*p) != model.released_p(set))
            .map(move |p| (model, Preset::Paper, Protocol::P10, Some(p)))
    })
}

fn arm(scale: Scale, set: RegressionSet, size: Size, choice: Choice) -> Arm {
    let (model, preset, protocol, candidate) = choice;
    let p = candidate.or(model.released_p(set));
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
        settings: Settings {
            attention: model.attention(p, size.points, preset),
            p,
            points: model.is_implicit().then_some(size.points),
            heads: model.heads(set),
            width: 64,
            hidden: 64,
            epochs: size.epochs,
            learning_rate: 0.01,
            clip_norm: 1000.0,
            every: size.every,
        },
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

    fn plan(scale: Scale) -> Plan {
        Plan::new(scale, &RegressionSet::ALL, Cut::None)
    }

    #[test]
    fn smoke_has_both_presets_on_passenger_and_repeats_them() {
        let plan = plan(Scale::Smoke);
        // Transformer, and two models in two readings, on two splits; each once more.
        let passenger = plan.units().iter().filter(|u| u.set == "Passenger").count();
        assert_eq!(passenger, 5 * 2 + 5);
        assert_eq!(plan.units().len(), passenger + 4 * 3 * 2);
        assert_eq!(plan.units()[0].set, "Passenger");
    }

    #[test]
    fn desk_is_what_the_protocol_says() {
        let plan = plan(Scale::Desk);
        assert_eq!(plan.units().len(), (5 * 3 + 2 * 2) * 10);
        for unit in plan.units() {
            assert_eq!(unit.settings.epochs, 500);
            let thinned = if unit.set == "Parkinsons" { 5 } else { 1 };
            assert_eq!(unit.settings.every, thinned);
        }
        let cut = Plan::new(Scale::Desk, &RegressionSet::ALL, Cut::Epochs);
        assert!(cut.units().iter().all(|u| u.settings.epochs == 300));
    }

    #[test]
    fn norms_and_heads_are_those_released() {
        let plan = plan(Scale::Desk);
        let of = |set, model| {
            let arm = plan
                .arms()
                .iter()
                .find(|a| a.set == set && a.model == model);
            let settings = &arm.unwrap().units[0].settings;
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
            let (p, points, preset) = match &unit.settings.attention {
                Variant::Softmax(_) => (None, None, bochner_attention::Preset::Paper),
                Variant::IkanDirect(m) => (Some(m.p), Some(m.points), m.preset),
                Variant::Mikan(m) => (Some(m.p), Some(m.points), m.preset),
                other => panic!("{other:?}"),
            };
            assert_eq!((p, points), (unit.settings.p, unit.settings.points));
            assert_eq!(
                preset == bochner_attention::Preset::Released,
                unit.preset == Preset::Released
            );
            let implicit = unit.variant == "MIKAN" || unit.variant == "IKAN-direct";
            assert_eq!(p.is_some(), implicit, "{}", unit.label());
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
    }
}
