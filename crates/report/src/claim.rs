//! Claims as data: what is compared with what, and what must be shown.

use crate::plan::{Arm, Choices, Frame, OnRequest, Plan};
use crate::suite::Card;
use crate::{Error, Scale};
use bochner_datasets::Protocol;
use std::collections::BTreeSet;
use std::panic::Location;

/// A statement of the paper and the test of it, written down before anything is run.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its number in the suite, such as C1.
    pub name: &'static str,
    /// The sentence.
    pub text: &'static str,
    /// The smallest scale that can tell, and the reason that smaller ones give.
    pub from: (Scale, &'static str),
    /// The claim without which this one means nothing, and the reason that is given if it does not hold.
    pub needs: Option<(&'static str, &'static str)>,
    /// The test.
    pub test: Test,
    /// The line that makes the claim, for the error about a name in it.
    pub(crate) place: &'static Location<'static>,
}

/// The test of a claim.
#[derive(Clone, Debug)]
pub enum Test {
    /// At least so many of the hypotheses hold. The opposite is that enough of them are reversed to make that impossible.
    AtLeast {
        /// The least number of hypotheses.
        count: usize,
        /// The hypotheses.
        of: Vec<Hypothesis>,
        /// The directions that the p-value counts.
        side: Side,
    },
    /// The claim has no p-value: numbers are shown, and nothing is judged.
    Shown(Shown),
}

/// The directions that a p-value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The direction of the claim alone, as for a bound.
    One,
    /// Two directions: the claim could as well have turned out reversed.
    Two,
}

/// Numbers that are shown beside a claim without a p-value.
#[derive(Clone, Debug)]
pub enum Shown {
    /// The number of means of R-numbers that lie within two published deviations of the published mean.
    NearPublished {
        /// The models, each with the tag of the arm that is compared with published numbers.
        models: Vec<(&'static str, Option<&'static str>)>,
        /// The titles of the sets.
        sets: Vec<&'static str>,
        /// The division of the rows that published numbers rest on.
        protocol: Protocol,
    },
}

/// One comparison: in the mean over the sets, a quantity of a model exceeds another one by more than minus the margin.
///
/// Models are named as in the suite's card, sets by their titles. The null hypothesis is that it does not.
#[derive(Clone, Debug)]
pub struct Hypothesis {
    /// The quantity.
    pub quantity: Quantity,
    /// The model.
    pub model: &'static str,
    /// The other side of the comparison.
    pub than: Than,
    /// The sets. One whose [gate](crate::suite::Set::gate) the baseline misses does not count.
    pub sets: Vec<&'static str>,
    /// The direction of the comparison: more or less of the quantity.
    pub sense: Sense,
    /// The amount by which the model may fall behind, in shown units. Zero unless "not worse" is tested.
    pub margin: f64,
    /// The statistic.
    pub statistic: Statistic,
}

/// The compared quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// The suite's metric as it is shown, in V-numbers.
    Metric,
    /// A measure of the rows.
    Measure(&'static str),
    /// The rise from the first measure of a row to the second.
    Rise([&'static str; 2]),
}

/// The other side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Than {
    /// Another arm, with the same split and seed.
    Model {
        /// The model.
        name: &'static str,
        /// The tag of its arm.
        tag: Option<&'static str>,
        /// The share of its quantity.
        share: f64,
    },
    /// A number, as it is shown.
    Value(f64),
}

/// The sense of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// A better metric, a larger measure, or a larger number than a value.
    More,
    /// The reverse.
    Less,
}

/// The statistic of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean of the differences, by the t distribution.
    Mean,
    /// The number of runs that reach the value, by the sign test.
    Majority,
}

impl Hypothesis {
    fn new(quantity: Quantity, model: &'static str, than: Than, set: &'static str) -> Self {
        Self {
            quantity,
            model,
            than,
            sets: vec![set],
            sense: Sense::More,
            margin: 0.0,
            statistic: Statistic::Mean,
        }
    }

    /// The model is better than another on a set.
    pub fn better(model: &'static str, than: &'static str, set: &'static str) -> Self {
        Self::new(Quantity::Metric, model, own_arm(than, 1.0), set)
    }

    /// The model's error on a set is smaller than a share of another model's.
    pub fn below_share(
        model: &'static str,
        share: f64,
        of: &'static str,
        set: &'static str,
    ) -> Self {
        Self::new(Quantity::Metric, model, own_arm(of, share), set)
    }

    /// A quantity of a model on a set exceeds that of another.
    pub fn more(
        quantity: Quantity,
        model: &'static str,
        than: &'static str,
        set: &'static str,
    ) -> Self {
        Self::new(quantity, model, own_arm(than, 1.0), set)
    }

    /// The model's metric on a set, as it is shown, exceeds a value.
    pub fn above(model: &'static str, value: f64, set: &'static str) -> Self {
        Self::new(Quantity::Metric, model, Than::Value(value), set)
    }

    /// In most runs a measure of a model on a set is at least a value.
    pub fn in_most(
        measure: &'static str,
        model: &'static str,
        least: f64,
        set: &'static str,
    ) -> Self {
        let quantity = Quantity::Measure(measure);
        Self {
            statistic: Statistic::Majority,
            ..Self::new(quantity, model, Than::Value(least), set)
        }
    }

    /// The comparison with the arm of the other model that has this tag.
    #[must_use]
    pub fn than_tagged(mut self, other: &'static str) -> Self {
        if let Than::Model { tag, .. } = &mut self.than {
            *tag = Some(other);
        }
        self
    }

    /// The comparison in the mean over sets.
    #[must_use]
    pub fn over(self, sets: &[&'static str]) -> Self {
        Self {
            sets: sets.to_vec(),
            ..self
        }
    }

    /// The comparison in the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            sense: Sense::Less,
            ..self
        }
    }

    /// The comparison in which the model may fall behind by less than a margin, in shown units.
    #[must_use]
    pub fn within(self, margin: f64) -> Self {
        Self { margin, ..self }
    }
}

const fn own_arm(name: &'static str, share: f64) -> Than {
    Than::Model {
        name,
        tag: None,
        share,
    }
}

/// The reason of scale `smoke` for not judging claims.
const FROM_DESK: (Scale, &str) = (Scale::Desk, "smoke tests the machinery only");

impl Claim {
    #[track_caller]
    fn new(name: &'static str, text: &'static str, test: Test) -> Self {
        Self {
            name,
            text,
            from: FROM_DESK,
            needs: None,
            test,
            place: Location::caller(),
        }
    }

    /// A claim that at least so many of several hypotheses hold.
    #[track_caller]
    pub fn at_least(
        count: usize,
        name: &'static str,
        text: &'static str,
        of: Vec<Hypothesis>,
    ) -> Self {
        let side = Side::Two;
        Self::new(name, text, Test::AtLeast { count, of, side })
    }

    /// A claim that all of several hypotheses hold.
    #[track_caller]
    pub fn all(name: &'static str, text: &'static str, of: Vec<Hypothesis>) -> Self {
        Self::at_least(of.len(), name, text, of)
    }

    /// A claim that is shown and not judged.
    #[track_caller]
    pub fn shown(name: &'static str, text: &'static str, shown: Shown) -> Self {
        Self::new(name, text, Test::Shown(shown))
    }

    /// The claim, whose p-value counts its own direction alone.
    #[must_use]
    pub fn one_sided(mut self) -> Self {
        if let Test::AtLeast { side, .. } = &mut self.test {
            *side = Side::One;
        }
        self
    }

    /// The claim, which scales smaller than this cannot tell, and their reason.
    #[must_use]
    pub fn from(self, scale: Scale, otherwise: &'static str) -> Self {
        Self {
            from: (scale, otherwise),
            ..self
        }
    }

    /// The claim, which means nothing unless another one holds, and the reason that is given then.
    #[must_use]
    pub fn needs(self, name: &'static str, otherwise: &'static str) -> Self {
        Self {
            needs: Some((name, otherwise)),
            ..self
        }
    }

    /// The hypotheses; none of a claim that is only shown.
    pub fn hypotheses(&self) -> &[Hypothesis] {
        match &self.test {
            Test::AtLeast { of, .. } => of,
            Test::Shown(_) => &[],
        }
    }

    /// The measures that it names.
    pub fn measures(&self) -> Vec<&'static str> {
        let of = |hypothesis: &Hypothesis| match hypothesis.quantity {
            Quantity::Metric => Vec::new(),
            Quantity::Measure(name) => vec![name],
            Quantity::Rise(names) => names.to_vec(),
        };
        self.hypotheses().iter().flat_map(of).collect()
    }

    /// The models that it names.
    pub fn models(&self) -> Vec<&'static str> {
        let of = |hypothesis: &Hypothesis| match hypothesis.than {
            Than::Model { name, .. } => vec![hypothesis.model, name],
            Than::Value(_) => vec![hypothesis.model],
        };
        match &self.test {
            Test::AtLeast { of: all, .. } => all.iter().flat_map(of).collect(),
            Test::Shown(Shown::NearPublished { models, .. }) => {
                models.iter().map(|model| model.0).collect()
            }
        }
    }

    /// The titles of the sets that it names.
    pub fn sets(&self) -> Vec<&'static str> {
        match &self.test {
            Test::AtLeast { of, .. } => of.iter().flat_map(|h| h.sets.clone()).collect(),
            Test::Shown(Shown::NearPublished { sets, .. }) => sets.clone(),
        }
    }

    /// The null hypothesis, the side and the margin in a few words.
    pub fn null(&self) -> String {
        let Test::AtLeast { count, of, side } = &self.test else {
            return "none: shown, not judged".to_owned();
        };
        let null = |hypothesis: &Hypothesis| match (hypothesis.statistic, hypothesis.margin) {
            (Statistic::Majority, _) => "at most half of the runs".to_owned(),
            (_, 0.0) => "d ≤ 0".to_owned(),
            (_, margin) => format!("d ≤ -{margin}"),
        };
        let side = match side {
            Side::One => "one-sided",
            Side::Two => "two-sided",
        };
        match (of.len(), *count) {
            (1, _) => format!("{}; {side}", null(&of[0])),
            (all, count) if all == count => format!("{} for some of {all}; {side}", null(&of[0])),
            (all, count) => format!("d > 0 on fewer than {count} of {all}; {side}"),
        }
    }
}

/// Refuses a card that contradicts itself: an empty name, a baseline or an arm of a model that it does not list, two arms
/// with one label, an arm without epochs, and a claim about a model or a set that no arm has at any scale.
///
/// # Errors
/// [`Error::Card`], and [`Error::UnknownInClaim`] with the names that there are.
pub fn check_card(card: &'static Card) -> Result<(), Error> {
    let fault = |fault: String| Error::Card {
        suite: card.name,
        fault,
    };
    if card.name.is_empty() {
        return Err(fault("its name is empty".to_owned()));
    }
    if card.model(card.baseline).is_none() {
        let baseline = card.baseline;
        return Err(fault(format!(
            "its baseline {baseline:?} is not among its models"
        )));
    }
    let sets: Vec<_> = card.sets.iter().collect();
    let plans = Scale::ALL.map(|scale| {
        let frame = Frame {
            scale,
            epochs: None,
            on_request: OnRequest::LeftOut,
        };
        Plan::new(card, &sets, frame, Choices::Dearest)
    });
    for plan in &plans {
        for (place, arm) in plan.arms.iter().enumerate() {
            let of = format!(
                "an arm of {} on {} at scale {}",
                arm.label(),
                arm.set,
                plan.scale
            );
            if card.model(arm.model).is_none() {
                return Err(fault(format!(
                    "{of} is of a model that the card does not list"
                )));
            }
            if arm.units.iter().any(|unit| unit.settings.epochs() == 0) {
                return Err(fault(format!(
                    "the settings of {of} have no field `epochs` of at least 1"
                )));
            }
            let is_same = |other: &Arm| {
                let of = |arm: &Arm| (arm.set, arm.label(), arm.protocol, arm.role);
                of(other) == of(arm)
            };
            if plan.arms[..place].iter().any(is_same) {
                return Err(fault(format!(
                    "{of} is there twice; a tag sets arms of one model apart"
                )));
            }
        }
    }
    let compared = || plans.iter().flat_map(Plan::compared);
    for claim in (card.claims)() {
        let has_model = |name: &&str| compared().any(|arm| arm.model == *name);
        let has_set = |name: &&str| compared().any(|arm| arm.set == *name);
        let model = claim.models().into_iter().find(|name| !has_model(name));
        let set = || claim.sets().into_iter().find(|name| !has_set(name));
        if let Some(unknown) = model.or_else(set) {
            let known: BTreeSet<&str> = compared().flat_map(|arm| [arm.model, arm.set]).collect();
            return Err(Error::UnknownInClaim {
                suite: card.name,
                claim: claim.name,
                place: claim.place,
                unknown,
                known: Vec::from_iter(known).join(", "),
            });
        }
    }
    Ok(())
}
