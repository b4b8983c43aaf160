//! The norm p of each model on each graph, chosen by validation before anything is compared.

use super::{Model, Plan};
use crate::store::Row;
use crate::tables::Results;
use bochner_datasets::PlanetoidSet;
use std::collections::BTreeMap;

/// The norms that validation has chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Norms {
    chosen: BTreeMap<(PlanetoidSet, Model), f64>,
}

impl Norms {
    /// Chooses, for each model on each graph of [`Plan::of_candidates`], the norm with the smallest
    /// validation error; of equal ones that with the smaller validation loss, then the smaller norm.
    /// Where a candidate is not finished, there is no choice yet.
    pub fn choose(candidates: &Plan, results: &Results) -> Self {
        let arms = candidates.arms();
        let same = |arms: &[super::Arm]| {
            let rows: Option<Vec<&Row>> =
                arms.iter().map(|arm| results.row(&arm.units[0])).collect();
            Some(((arms[0].set, arms[0].model), best(&rows?)?))
        };
        let groups = arms.chunk_by(|a, b| (a.set, a.model) == (b.set, b.model));
        Self {
            chosen: groups.filter_map(same).collect(),
        }
    }

    /// The same norm for all, with which time can be projected before anything is chosen.
    pub(crate) fn provisional(norm: f64) -> Self {
        let sets = PlanetoidSet::ALL.into_iter();
        let each = sets.flat_map(|set| Model::ALL.map(|model| ((set, model), norm)));
        Self {
            chosen: each.collect(),
        }
    }

    /// The norm of a model on a graph; `None` while it is not chosen.
    pub fn of(&self, set: PlanetoidSet, model: Model) -> Option<f64> {
        self.chosen.get(&(set, model)).copied()
    }
}

/// The norm of the best of several rows, which are in the order of their norms.
fn best(rows: &[&Row]) -> Option<f64> {
    let judged = rows.iter().filter_map(|row| {
        let loss = row.validation_loss.unwrap_or(f64::INFINITY);
        Some((row.validation?, loss, row.unit.settings.p()?))
    });
    judged
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))
        .map(|(_, _, p)| p)
}

#[cfg(test)]
mod tests {
    use super::super::Cut;
    use super::*;
    use crate::Scale;
    use crate::tables::results::tests::row;

    /// Rows with the validation errors and losses that a function gives.
    fn results(plan: &Plan, value: impl Fn(Model, f64) -> Option<(f64, f64)>) -> Results {
        let rows = plan.arms().iter().filter_map(|arm| {
            let (error, loss) = value(arm.model, arm.p?)?;
            Some(Row {
                validation_loss: Some(loss),
                ..row(&arm.units[0], error)
            })
        });
        Results::of_rows(rows)
    }

    fn candidates() -> Plan {
        Plan::of_candidates(Scale::Desk, &[PlanetoidSet::Cora], Cut::None)
    }

    #[test]
    fn validation_chooses_for_each_model() {
        let plan = candidates();
        let results = results(&plan, |model, p| match (model, p) {
            (Model::Mikan, 3.0) | (Model::IkanDirect, 1.5) => Some((0.1, 1.0)),
            _ => Some((0.2, 0.5)),
        });
        let norms = Norms::choose(&plan, &results);
        let of = |model| norms.of(PlanetoidSet::Cora, model);
        assert_eq!(of(Model::Mikan), Some(3.0));
        assert_eq!(of(Model::IkanDirect), Some(1.5));
        assert_eq!(norms.of(PlanetoidSet::Citeseer, Model::Mikan), None);
    }

    #[test]
    fn the_loss_decides_between_equal_errors_and_then_the_smaller_norm() {
        let plan = candidates();
        let results = results(&plan, |model, p| match (model, p) {
            (Model::Mikan, 2.0) => Some((0.2, 0.4)),
            _ => Some((0.2, 0.5)),
        });
        let norms = Norms::choose(&plan, &results);
        let of = |model| norms.of(PlanetoidSet::Cora, model);
        assert_eq!(of(Model::Mikan), Some(2.0));
        assert_eq!(of(Model::IkanDirect), Some(1.5));
    }

    #[test]
    fn nothing_is_chosen_among_some_of_the_candidates() {
        let plan = candidates();
        let results = results(&plan, |model, p| {
            (model != Model::Mikan || p < 3.0).then_some((0.2, 0.5))
        });
        let norms = Norms::choose(&plan, &results);
        assert_eq!(norms.of(PlanetoidSet::Cora, Model::Mikan), None);
        assert!(norms.of(PlanetoidSet::Cora, Model::IkanDirect).is_some());
    }
}
