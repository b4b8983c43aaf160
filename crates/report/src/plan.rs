//! The plan of a run: the arms of a suite, and the order of their units.

use crate::statistics::mean;
use crate::suite::{At, Card, Set};
use crate::{Number, Results, Scale, Settings, Unit};
use bochner_datasets::Protocol;
use serde::Serialize;
use std::cmp::Ordering;

/// The purpose of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A choice for the models of all sets rests on it. Every shard runs it, since no shard knows the rest of the plan
    /// before the choice is made.
    Common,
    /// A choice for all models of its set rests on it. Every shard runs it.
    Choice,
    /// A choice for its own model rests on it. Every shard runs it.
    OwnChoice,
    /// It is compared and reported.
    Compared,
}

impl Role {
    /// Whether other arms wait for it.
    pub fn is_choice(self) -> bool {
        matches!(self, Self::Common | Self::Choice | Self::OwnChoice)
    }
}

/// One model on one set, over its splits or seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The title of the set.
    pub set: &'static str,
    /// The model.
    pub model: &'static str,
    /// The difference from the model's own arm, such as `p = 2` or the reading of the method.
    pub tag: Option<String>,
    /// The division of the rows.
    pub protocol: Protocol,
    /// Its purpose.
    pub role: Role,
    /// Whether a published number of the model on the set is one of the same rows.
    pub comparable: bool,
    /// One unit for each split or seed.
    pub units: Vec<Unit>,
}

impl AsRef<[Unit]> for Arm {
    fn as_ref(&self) -> &[Unit] {
        &self.units
    }
}

impl Arm {
    /// A model's own arm; `runs` are splits with their seeds. The settings have a field `epochs`, which the epochs of
    /// [`At`] replace where a run asks for others than its scale's.
    ///
    /// # Panics
    /// If the settings cannot be written as JSON: they have plain fields.
    pub fn new(
        at: &At<'_>,
        model: &'static str,
        protocol: Protocol,
        runs: impl IntoIterator<Item = (usize, u64)>,
        settings: &impl Serialize,
    ) -> Self {
        let mut settings = Settings::of(settings);
        if let Some(epochs) = at.epochs {
            settings.set_epochs(epochs);
        }
        let unit = |(split, seed)| Unit {
            suite: at.card.name.to_owned(),
            scale: at.scale,
            set: at.set.title.to_owned(),
            variant: model.to_owned(),
            protocol,
            split,
            seed,
            settings: settings.clone(),
            versions: None,
        };
        Self {
            set: at.set.title,
            model,
            tag: None,
            protocol,
            role: Role::Compared,
            comparable: true,
            units: runs.into_iter().map(unit).collect(),
        }
    }

    /// The arm in another role.
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The arm with what sets it apart from the model's own.
    pub fn with_tag(self, tag: Option<&str>) -> Self {
        let tag = tag.map(str::to_owned);
        Self { tag, ..self }
    }

    /// One of several arms of the model that validation chooses among.
    pub fn among(self, tag: String, role: Role) -> Self {
        Self {
            tag: Some(tag),
            role,
            comparable: false,
            ..self
        }
    }

    /// Whether the arm is none of several that validation chooses among.
    pub fn stands_alone(&self) -> bool {
        self.tag.is_none() || self.comparable
    }

    /// The model, with what sets the arm apart.
    pub fn label(&self) -> String {
        match &self.tag {
            Some(tag) => format!("{} ({tag})", self.model),
            None => self.model.to_owned(),
        }
    }

    /// The settings of its units.
    pub fn settings(&self) -> &Settings {
        &self.units[0].settings
    }
}

/// The criterion of a choice among arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The best mean validation value; among equal ones the smaller loss beside it.
    Value,
    /// The smallest mean loss on the validation part, in the epoch that validation chose.
    Loss,
    /// The smallest mean of a measure that is a loss on the validation part.
    Measure(&'static str),
}

impl ChosenBy {
    /// The mean loss of units that is recorded beside their validation value, or in its place.
    pub(crate) fn loss(self, results: &Results, units: &impl AsRef<[Unit]>) -> Option<f64> {
        if let Self::Measure(name) = self {
            return results.measure(units, name);
        }
        let losses = results.of(units).into_iter();
        let losses = losses.map(|row| row.validation_loss);
        mean(&losses.collect::<Option<Vec<f64>>>()?).ok()
    }

    /// The losses that units are chosen by, if all are finished: smaller is better, and the second loss decides between equal
    /// first ones.
    fn losses(self, results: &Results, units: &impl AsRef<[Unit]>) -> Option<[f64; 2]> {
        let loss = results
            .is_complete(units)
            .then(|| self.loss(results, units))?;
        match self {
            Self::Value => {
                let value = results.mean(units, Number::Validation)?;
                Some([
                    results.direction().loss(value),
                    loss.unwrap_or(f64::INFINITY),
                ])
            }
            Self::Loss | Self::Measure(_) => Some([loss?, 0.0]),
        }
    }
}

/// The choices that are known when arms are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Choices<'a> {
    /// No choice.
    None,
    /// Every choice falls on its last candidate, and every gate is passed. Suites list candidates from the cheapest to the
    /// dearest, so that projected times are upper bounds.
    Dearest,
    /// The choices of these results.
    Of(&'a Results),
}

impl Choices<'_> {
    /// The place of the group of units that a criterion chooses, of equal ones the first. `None` unless all are finished.
    pub fn best<A: AsRef<[Unit]>>(&self, groups: &[A], by: ChosenBy) -> Option<usize> {
        let results = match self {
            Self::None => return None,
            Self::Dearest => return groups.len().checked_sub(1),
            Self::Of(results) => results,
        };
        let losses = groups.iter().map(|group| by.losses(results, group));
        let losses = losses.collect::<Option<Vec<[f64; 2]>>>()?;
        let order = |a: usize, b: usize| {
            let pairs = losses[a].iter().zip(&losses[b]);
            pairs.fold(Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(b)))
        };
        (0..groups.len()).min_by(|&a, &b| order(a, b))
    }

    /// Whether the mean validation value of an arm reaches the gate of a set; `None` unless the arm is finished.
    pub fn reaches(&self, card: &Card, set: &Set, arm: &Arm) -> Option<bool> {
        match self {
            Self::None => None,
            Self::Dearest => Some(true),
            Self::Of(results) => {
                let reached = results.mean(arm, Number::Validation)?;
                Some(
                    set.gate
                        .is_none_or(|gate| card.metric.show(reached) >= gate),
                )
            }
        }
    }
}

/// The arms of a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scale.
    pub scale: Scale,
    /// The arms, set by set.
    pub arms: Vec<Arm>,
    /// The sets and the models that each claim names.
    claimed: Vec<[Vec<&'static str>; 2]>,
}

/// The circumstances of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The scale.
    pub scale: Scale,
    /// Epochs other than the scale's.
    pub epochs: Option<usize>,
    /// The treatment of models that run [on request](crate::suite::Model::on_request()).
    pub on_request: OnRequest,
}

/// The treatment of models that run only where they are asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRequest {
    /// They are left out.
    #[default]
    LeftOut,
    /// They are part of the plan.
    Included,
}

impl Plan {
    /// The plan for some sets, each once; small sets first, whatever the order given.
    pub fn new(
        card: &'static Card,
        sets: &[&'static Set],
        frame: Frame,
        choices: Choices<'_>,
    ) -> Self {
        let Frame {
            scale,
            epochs,
            on_request,
        } = frame;
        let mut sets: Vec<_> = card.sets.iter().filter(|set| sets.contains(set)).collect();
        sets.sort_by_key(|set| set.size);
        let arms = sets.into_iter().flat_map(|set| {
            let at = At {
                card,
                scale,
                set,
                epochs,
                choices,
            };
            (card.arms)(&at)
        });
        let is_due = |arm: &Arm| {
            let left_out = on_request == OnRequest::LeftOut && card.is_on_request(arm.model);
            !arm.units.is_empty() && !left_out
        };
        let arms: Vec<Arm> = arms.filter(is_due).collect();
        Self {
            scale,
            arms,
            claimed: (card.claims)()
                .iter()
                .map(|claim| [claim.sets(), claim.models()])
                .collect(),
        }
    }

    /// The titles of its sets.
    pub fn sets(&self) -> Vec<&'static str> {
        let mut sets: Vec<_> = self.compared().map(|arm| arm.set).collect();
        sets.dedup();
        sets
    }

    /// The arms of a set.
    pub fn of_set(&self, set: &str) -> Vec<Arm> {
        let arms = self.arms.iter().filter(|arm| arm.set == set);
        arms.cloned().collect()
    }

    /// The arms that are not there for a choice alone.
    pub fn compared(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(|arm| !arm.role.is_choice())
    }

    /// The arm of a model with this tag.
    pub fn arm(
        &self,
        set: &str,
        model: &str,
        tag: Option<&str>,
        protocol: Protocol,
    ) -> Option<&Arm> {
        let wanted = (set, model, tag, protocol);
        self.compared()
            .find(|arm| (arm.set, arm.model, arm.tag.as_deref(), arm.protocol) == wanted)
    }

    /// A model's own arm, on the rows of another arm.
    pub fn beside(&self, arm: &Arm, model: &str) -> Option<&Arm> {
        self.arm(arm.set, model, None, arm.protocol)
    }

    /// The first of a model's own arms: the one that claims rest on.
    pub fn claimed(&self, set: &str, model: &str) -> Option<&Arm> {
        self.compared()
            .find(|arm| (arm.set, arm.model, &arm.tag) == (set, model, &None))
    }

    /// The units that choices rest on, each once.
    pub fn choosing(&self) -> Vec<Unit> {
        let arms = self.arms.iter().filter(|arm| arm.role.is_choice());
        let mut units: Vec<Unit> = Vec::new();
        for unit in in_turns(&arms.collect::<Vec<_>>()) {
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
        units
    }

    /// All other units: those of the models and sets that claims name first; set by set, within a set split by split, so
    /// that an unfinished run has all models on the splits it has.
    pub fn units(&self) -> Vec<Unit> {
        let choosing = self.choosing();
        let turns = [true, false].into_iter().flat_map(|is_claimed| {
            let arms = self.compared();
            let arms = arms.filter(|arm| self.is_claimed(arm) == is_claimed);
            in_turns(&arms.collect::<Vec<_>>())
        });
        turns.filter(|unit| !choosing.contains(unit)).collect()
    }

    fn is_claimed(&self, arm: &Arm) -> bool {
        let mut claimed = self.claimed.iter();
        arm.stands_alone()
            && claimed.any(|[sets, models]| sets.contains(&arm.set) && models.contains(&arm.model))
    }

    /// All units, those that choices rest on first.
    pub fn all(&self) -> Vec<Unit> {
        [self.choosing(), self.units()].concat()
    }
}

/// The units of arms that stand set by set: within a set one of each arm after another.
fn in_turns(arms: &[&Arm]) -> Vec<Unit> {
    let of_set = |arms: &[&Arm]| {
        let turns = arms.iter().map(|arm| arm.units.len()).max().unwrap_or(0);
        let turn = |turn| arms.iter().filter_map(move |arm| arm.units.get(turn));
        (0..turns).flat_map(turn).cloned().collect::<Vec<_>>()
    };
    arms.chunk_by(|a, b| a.set == b.set)
        .flat_map(of_set)
        .collect()
}
