//! The arms of a plan that belong together.

use super::{Arm, Model, Plan};
use crate::Preset;
use bochner_datasets::{Protocol, RegressionSet};

impl Plan {
    /// The arm of a model with its released norm.
    pub fn arm(
        &self,
        set: RegressionSet,
        model: Model,
        preset: Preset,
        protocol: Protocol,
    ) -> Option<&Arm> {
        self.arms().iter().find(|arm| {
            (arm.set, arm.model, arm.preset, arm.protocol) == (set, model, preset, protocol)
                && arm.candidate.is_none()
        })
    }

    /// The Transformer that an arm is judged against: it has one reading, `paper`.
    pub fn baseline(&self, arm: &Arm) -> Option<&Arm> {
        self.arm(arm.set, Model::Transformer, Preset::Paper, arm.protocol)
    }

    /// The Transformers that an arm is compared with: that one, and the one with as many heads.
    /// Gaussian processes are not: they share neither architecture nor initial values with it.
    pub fn baselines(&self, arm: &Arm) -> Vec<&Arm> {
        let eight = Model::TransformerEightHeads;
        let eight = self.arm(arm.set, eight, Preset::Paper, arm.protocol);
        match arm.model {
            Model::Transformer => Vec::new(),
            model if model.is_process() => Vec::new(),
            Model::TransformerEightHeads => self.baseline(arm).into_iter().collect(),
            _ => self.baseline(arm).into_iter().chain(eight).collect(),
        }
    }

    /// The arm of the model that lacks one thing that this one has, in the paper's reading.
    pub fn simpler(&self, arm: &Arm) -> Option<&Arm> {
        let comparable = arm.preset == Preset::Paper && arm.candidate.is_none();
        let model = arm.model.simpler().filter(|_| comparable)?;
        self.arm(arm.set, model, Preset::Paper, arm.protocol)
    }

    /// The sets of the plan.
    pub fn sets(&self) -> Vec<RegressionSet> {
        let mut sets: Vec<_> = self.arms().iter().map(|arm| arm.set).collect();
        sets.dedup();
        sets
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Cut;
    use super::*;
    use crate::Scale;
    use crate::store::Row;
    use crate::tables::results::tests::row;
    use crate::tables::{Number, Results};

    /// Results with the V-numbers that a function gives, R-numbers .01 below.
    pub(crate) fn results(plan: &Plan, value: impl Fn(&Arm, usize) -> Option<f64>) -> Results {
        let arms = plan.arms().iter();
        let units = arms.flat_map(|arm| arm.units.iter().map(move |unit| (arm, unit)));
        Results::of_rows(units.filter_map(|(arm, unit)| {
            let v = value(arm, unit.split)?;
            Some(as_in_its_protocol(row(unit, v)))
        }))
    }

    /// Only one of the protocols has a validation part.
    fn as_in_its_protocol(row: Row) -> Row {
        let v_number = row.v_number.filter(|_| row.unit.protocol == Protocol::P10);
        Row { v_number, ..row }
    }

    #[test]
    fn comparisons_pair_the_splits_that_both_have() {
        let plan = Plan::new(Scale::Desk, &[RegressionSet::Passenger], Cut::None);
        let results = results(&plan, |arm, split| match arm.model {
            Model::Transformer => Some(0.2 + 0.01 * split as f64),
            Model::Mikan if split < 4 => Some(0.1 + 0.01 * split as f64),
            _ => None,
        });
        let arm = |model| {
            plan.arm(
                RegressionSet::Passenger,
                model,
                Preset::Paper,
                Protocol::P10,
            )
            .unwrap()
        };
        let baseline = plan.baseline(arm(Model::Mikan)).unwrap();
        let paired = results
            .compare(arm(Model::Mikan), baseline, Number::V)
            .unwrap();
        assert_eq!((paired.n, paired.wins), (4, 4));
        assert!((paired.mean + 0.1).abs() < 1e-12);
        assert!(!results.is_complete(arm(Model::Mikan)));
        let nothing = results.compare(arm(Model::IkanDirect), baseline, Number::R);
        assert!(nothing.is_none());
    }
}
