//! Which models run on which graphs, and how often.

use super::model::{Norm, Size};
use super::{Model, Norms, SUITE, title};
use crate::tables::Skipped;
use crate::tables::arms::{in_turns, set_epochs};
use crate::{Preset, Scale, Unit, tables};
use bochner_datasets::{PlanetoidSet, Protocol};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The seed on which norms are chosen: none of those that are compared.
const CHOICE_SEED: u64 = 1000;

/// The norms that validation chooses among, in increasing order.
const CANDIDATES: [f64; 3] = [1.5, 2.0, 3.0];

/// One model on one graph, over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The graph.
    pub set: PlanetoidSet,
    /// The model.
    pub model: Model,
    /// The norm of its magnitudes; absent where it has none.
    pub p: Option<f64>,
    /// One unit per seed.
    pub units: Vec<Unit>,
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
    /// 32 spectral points instead of 64.
    Points,
    /// Also, half of the seeds on Citeseer.
    Seeds,
}

impl tables::Cut for Cut {
    const NONE: Self = Self::None;
    const ALL: &'static [Self] = &[Self::None, Self::Points, Self::Seeds];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Points => "points",
            Self::Seeds => "seeds",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::None => "nothing was cut",
            Self::Points => "the spectral points were cut to 32",
            Self::Seeds => {
                "the spectral points were cut to 32, and the seeds on Citeseer to half of them"
            }
        }
    }
}

/// The arms of a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    scale: Scale,
    cut: Cut,
    /// Where they are not the scale's.
    epochs: Option<usize>,
    arms: Vec<Arm>,
}

impl Plan {
    /// What is compared, on some graphs, each once; small graphs first, whatever the order given.
    /// Models whose norm is not chosen yet are left out. At scale `smoke` it is 2.
    pub fn new(scale: Scale, sets: &[PlanetoidSet], cut: Cut, norms: &Norms) -> Self {
        let arm = |(set, model)| {
            let p = match model_norm(scale, model) {
                Norm::Absent => None,
                Norm::Fixed(p) => Some(p),
                Norm::Chosen => Some(norms.of(set, model)?),
            };
            Some(arm(scale, cut, set, model, p, seeds(scale, cut, set)))
        };
        Self {
            scale,
            cut,
            epochs: None,
            arms: models(scale, sets).filter_map(arm).collect(),
        }
    }

    /// What the norms are chosen from: every candidate once, on a seed of its own. Nothing at scale
    /// `smoke`.
    pub fn of_candidates(scale: Scale, sets: &[PlanetoidSet], cut: Cut) -> Self {
        let free = |&(_, model): &(PlanetoidSet, Model)| model_norm(scale, model) == Norm::Chosen;
        let each = |(set, model)| {
            let seeds = CHOICE_SEED..CHOICE_SEED + 1;
            let of = move |p| arm(scale, cut, set, model, Some(p), seeds.clone());
            CANDIDATES.into_iter().map(of)
        };
        Self {
            scale,
            cut,
            epochs: None,
            arms: models(scale, sets).filter(free).flat_map(each).collect(),
        }
    }

    /// The plan without the graphs that could not be had.
    pub fn without(mut self, skipped: &[Skipped]) -> Self {
        self.arms
            .retain(|arm| skipped.iter().all(|s| s.set != title(arm.set)));
        self
    }

    /// The graphs of a scale.
    pub const fn sets(scale: Scale) -> &'static [PlanetoidSet] {
        use PlanetoidSet::{Citeseer, Cora, Pubmed};
        match scale {
            Scale::Smoke => &[Cora],
            Scale::Desk => &[Cora, Citeseer],
            Scale::Paper => &[Cora, Citeseer, Pubmed],
        }
    }

    /// The same plan with another number of epochs everywhere.
    pub fn with_epochs(mut self, epochs: usize) -> Self {
        set_epochs(
            self.arms.iter_mut().flat_map(|arm| arm.units.iter_mut()),
            epochs,
        );
        self.epochs = Some(epochs);
        self
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// What the norms of the same graphs are chosen from.
    pub fn candidates(&self) -> Self {
        let plan = Self::of_candidates(self.scale, &self.graphs(), self.cut);
        match self.epochs {
            Some(epochs) => plan.with_epochs(epochs),
            None => plan,
        }
    }

    /// The graphs of the plan.
    pub fn graphs(&self) -> Vec<PlanetoidSet> {
        let mut sets: Vec<_> = self.arms.iter().map(|arm| arm.set).collect();
        sets.dedup();
        sets
    }

    /// The arms; those that differ in the norm alone side by side.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// The arm of a model on a graph.
    pub fn arm(&self, set: PlanetoidSet, model: Model) -> Option<&Arm> {
        let mut arms = self.arms.iter();
        arms.find(|arm| (arm.set, arm.model) == (set, model))
    }

    /// All units: graph by graph, within a graph seed by seed, so that an unfinished run has all
    /// models on the seeds it has.
    pub fn units(&self) -> Vec<Unit> {
        in_turns(&self.arms)
    }
}

fn models(scale: Scale, sets: &[PlanetoidSet]) -> impl Iterator<Item = (PlanetoidSet, Model)> {
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| set.nodes());
    sets.dedup();
    let models = Model::ALL.into_iter();
    let models = models.filter(move |model| match scale {
        Scale::Smoke => *model == Model::Gat || model.is_judged(),
        Scale::Desk => matches!(model, Model::Gat | Model::Gcn) || model.is_judged(),
        Scale::Paper => true,
    });
    sets.into_iter()
        .flat_map(move |set| models.clone().map(move |model| (set, model)))
}

fn model_norm(scale: Scale, model: Model) -> Norm {
    match (model.norm(), scale) {
        (Norm::Chosen, Scale::Smoke) => Norm::Fixed(2.0),
        (norm, _) => norm,
    }
}

/// At scale `desk` 20, twice the paper's number: ten can hardly show a gain of .3.
fn seeds(scale: Scale, cut: Cut, set: PlanetoidSet) -> Range<u64> {
    match (scale, cut, set) {
        (Scale::Smoke, ..) => 0..1,
        (Scale::Desk, Cut::Seeds, PlanetoidSet::Citeseer) => 0..10,
        (Scale::Desk, ..) => 0..20,
        (Scale::Paper, ..) => 0..100,
    }
}

fn size(scale: Scale, cut: Cut) -> Size {
    match scale {
        Scale::Smoke => Size {
            points: 16,
            epochs: 30,
        },
        Scale::Desk => Size {
            points: if cut >= Cut::Points { 32 } else { 64 },
            epochs: 1000,
        },
        // Patience ends a run long before; this is the limit in GAT's own code.
        Scale::Paper => Size {
            points: 64,
            epochs: 100_000,
        },
    }
}

fn arm(
    scale: Scale,
    cut: Cut,
    set: PlanetoidSet,
    model: Model,
    p: Option<f64>,
    seeds: Range<u64>,
) -> Arm {
    let unit = |seed| Unit {
        suite: SUITE.to_owned(),
        scale,
        set: title(set).to_owned(),
        variant: model.name().to_owned(),
        preset: Preset::Paper,
        protocol: Protocol::Fixed,
        split: 0,
        seed,
        repeat: 0,
        settings: model.settings(set, size(scale, cut), p),
    };
    Arm {
        set,
        model,
        p,
        units: seeds.map(unit).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::published;
    use crate::tables::Results;
    use crate::tables::results::tests::row;

    /// The norms after all candidates came out equal: the smallest.
    fn norms(scale: Scale) -> Norms {
        let plan = Plan::of_candidates(scale, Plan::sets(scale), Cut::None);
        let rows = plan.units().into_iter().map(|unit| row(&unit, 0.2));
        Norms::choose(&plan, &Results::of_rows(rows))
    }

    fn plan(scale: Scale, cut: Cut) -> Plan {
        Plan::new(scale, Plan::sets(scale), cut, &norms(scale))
    }

    #[test]
    fn smoke_has_three_models_once_on_cora() {
        let plan = plan(Scale::Smoke, Cut::None);
        let units = plan.units();
        let variants: Vec<&str> = units.iter().map(|unit| unit.variant.as_str()).collect();
        assert_eq!(variants, ["GAT", "IKAN-direct", "MIKAN"]);
        assert!(units.iter().all(|unit| unit.settings.epochs() == 30));
        assert_eq!(units[2].settings.points(), Some(16));
        assert_eq!(units[2].settings.p(), Some(2.0));
        let candidates = Plan::of_candidates(Scale::Smoke, Plan::sets(Scale::Smoke), Cut::None);
        assert!(candidates.units().is_empty());
    }

    #[test]
    fn desk_is_what_the_protocol_says() {
        let plan = plan(Scale::Desk, Cut::None);
        assert_eq!(plan.units().len(), 2 * 4 * 20);
        for arm in plan.arms() {
            assert!(arm.units.iter().map(|unit| unit.seed).eq(0..20));
            assert_eq!(arm.units[0].settings.epochs(), 1000);
        }
        let cut = self::plan(Scale::Desk, Cut::Seeds);
        let units = |set| cut.arm(set, Model::Mikan).unwrap().units.clone();
        assert_eq!(units(PlanetoidSet::Cora).len(), 20);
        assert_eq!(units(PlanetoidSet::Citeseer).len(), 10);
        assert_eq!(units(PlanetoidSet::Cora)[0].settings.points(), Some(32));
        let full = plan.arm(PlanetoidSet::Cora, Model::Mikan).unwrap();
        assert_eq!(full.units[0].settings.points(), Some(64));
    }

    #[test]
    fn paper_has_all_models_a_hundred_times_on_all_graphs() {
        let plan = plan(Scale::Paper, Cut::None);
        assert_eq!(plan.units().len(), 3 * Model::ALL.len() * 100);
        let of = |model| plan.arm(PlanetoidSet::Pubmed, model).unwrap().p;
        assert_eq!((of(Model::Gat), of(Model::IkaS)), (None, Some(2.0)));
        assert_eq!(of(Model::Ikan), Some(1.5));
    }

    #[test]
    fn candidates_are_chosen_among_on_a_seed_that_is_not_compared() {
        let sets = Plan::sets(Scale::Desk);
        let candidates = Plan::of_candidates(Scale::Desk, sets, Cut::None);
        let units = candidates.units();
        assert_eq!(units.len(), 2 * 2 * 3);
        assert!(units.iter().all(|unit| unit.seed == 1000));
        let unchosen = Plan::new(Scale::Desk, sets, Cut::None, &Norms::default());
        let without_norm = |arm: &Arm| matches!(arm.model, Model::Gat | Model::Gcn);
        assert!(unchosen.arms().iter().all(without_norm));
        assert_eq!(unchosen.units().len(), 2 * 2 * 20);
    }

    #[test]
    fn what_was_run_before_is_still_found() {
        for (scale, name) in [(Scale::Desk, "table5-desk"), (Scale::Paper, "table5-paper")] {
            let candidates = Plan::of_candidates(scale, Plan::sets(scale), Cut::None);
            let rows = published(name);
            let norms = Norms::choose(&candidates, &Results::of_rows(rows.clone()));
            let all = Plan::new(scale, Plan::sets(scale), Cut::None, &norms);
            let units = [candidates.units(), all.units()].concat();
            for row in rows {
                assert!(units.contains(&row.unit), "{}", row.id);
            }
        }
    }

    #[test]
    fn every_unit_has_its_own_id_and_is_named_after_its_seed() {
        for scale in [Scale::Smoke, Scale::Desk, Scale::Paper] {
            let candidates = Plan::of_candidates(scale, Plan::sets(scale), Cut::None);
            let units = [candidates.units(), plan(scale, Cut::None).units()].concat();
            let mut ids: Vec<String> = units.iter().map(Unit::id).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), units.len());
        }
        let units = plan(Scale::Desk, Cut::None).units();
        assert_eq!(units[4].label(), "Cora GAT seed 1");
    }
}
