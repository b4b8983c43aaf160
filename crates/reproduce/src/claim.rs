//! The claims of the paper as data, and one function that judges them.

pub(crate) mod gate;
mod judge;

pub use judge::{Average, Averaged, Measured, judge};

use crate::plan::{Choices, Frame, OnRequest, Plan};
use crate::statistics::Verdict;
use crate::suite::Suite;
use crate::{Error, Scale};
use std::collections::BTreeSet;
use std::panic::Location;

/// A statement of the paper and what it takes to hold, written down before anything is run.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its number in the suite, such as C1.
    pub name: &'static str,
    /// What is claimed.
    pub text: &'static str,
    /// The smallest scale that can tell, and what is said at smaller ones.
    pub from: (Scale, &'static str),
    /// The claim without which this one means nothing, and what is said if it does not hold.
    pub needs: Option<(&'static str, &'static str)>,
    /// What it takes.
    pub criterion: Criterion,
    /// The line that makes the claim, for the error about a name in it.
    pub(crate) place: &'static Location<'static>,
}

impl Claim {
    /// A claim that scale `desk` can tell.
    #[track_caller]
    pub const fn new(name: &'static str, text: &'static str, criterion: Criterion) -> Self {
        Self {
            name,
            text,
            from: FROM_DESK,
            needs: None,
            criterion,
            place: Location::caller(),
        }
    }

    /// The claim, which smaller scales than this cannot tell, and what they say.
    pub const fn from(self, scale: Scale, otherwise: &'static str) -> Self {
        Self {
            from: (scale, otherwise),
            ..self
        }
    }

    /// The claim, which means nothing unless another one holds, and what is said if it does not.
    pub const fn needs(self, name: &'static str, otherwise: &'static str) -> Self {
        Self {
            needs: Some((name, otherwise)),
            ..self
        }
    }
}

/// What scale `smoke` says of claims.
const FROM_DESK: (Scale, &str) = (Scale::Desk, "smoke tests the machinery only");

/// What it takes for a claim to hold; models by their names, sets by their titles.
#[derive(Clone, Copy, Debug)]
pub enum Criterion {
    /// The model is better than the baseline on at least `sign` of the sets, by two standard errors on at
    /// least `clear`.
    Better {
        /// The model.
        model: &'static str,
        /// All sets that are needed.
        sets: &'static [&'static str],
        /// Sets on which it must be better.
        sign: usize,
        /// Sets on which it must be better by two standard errors.
        clear: usize,
    },
    /// The model is better than the baseline by two standard errors on all sets; partly if it is not worse.
    NotWorse {
        /// The model.
        model: &'static str,
        /// The sets.
        sets: &'static [&'static str],
        /// The name of all sets together, in words.
        all: &'static str,
    },
    /// The model is worse than the baseline on a set by less than a margin, in what is shown; a set whose
    /// [gate](crate::suite::Set::gate) the baseline misses does not count.
    NotWorseBy {
        /// The model.
        model: &'static str,
        /// The set.
        set: &'static str,
        /// The margin.
        margin: f64,
    },
    /// The models are better than others, each than each, in the mean over the sets of the mean difference.
    OnAverage {
        /// The models.
        models: &'static [&'static str],
        /// What each of them is compared with.
        others: &'static [&'static str],
        /// The sets; one whose [gate](crate::suite::Set::gate) the baseline misses does not count.
        sets: &'static [&'static str],
        /// What is asked for.
        asked: Asked,
    },
    /// On a set, the model's mean error is at most a share of the baseline's and below another model's.
    AtMost {
        /// The model.
        model: &'static str,
        /// The set.
        set: &'static str,
        /// The share.
        share: f64,
        /// The other model.
        below: &'static str,
    },
    /// The R-numbers of a reading lie within two published deviations of the published means.
    NearPublished {
        /// The models, each in the reading that is compared with published numbers.
        models: &'static [(&'static str, crate::Preset)],
        /// The sets.
        sets: &'static [&'static str],
        /// The rows that the published numbers are of.
        protocol: crate::Protocol,
    },
    /// The shown V-numbers of a model lie in bands.
    Within {
        /// The model.
        model: &'static str,
        /// Set, smallest and largest value.
        bands: &'static [(&'static str, f64, f64)],
    },
    /// Measures rise or fall, in their means, from model to model.
    Trend {
        /// The set.
        set: &'static str,
        /// The models in their order.
        models: &'static [&'static str],
        /// The measures that rise.
        rising: &'static [&'static str],
        /// The measures that fall.
        falling: &'static [&'static str],
    },
    /// A measure of a model exceeds that of another by two standard errors over the units, and that of the model in a
    /// reading that is the control.
    More {
        /// The set.
        set: &'static str,
        /// The measure.
        measure: &'static str,
        /// The model.
        model: &'static str,
        /// The other model.
        than: &'static str,
        /// The reading of the model that is the control; `None` if the other model is.
        control: Option<crate::Preset>,
    },
    /// In every unit measures of the baseline rise by more from the first to the second of each pair than those of the
    /// models with the same seed.
    RisesMost {
        /// The set; the claim is not judged where the baseline misses its [gate](crate::suite::Set::gate).
        set: &'static str,
        /// The models.
        models: &'static [&'static str],
        /// Pairs of measures.
        measures: &'static [[&'static str; 2]],
    },
    /// In more than half of a model's units on a set, a measure is at least a value.
    InMost {
        /// The set.
        set: &'static str,
        /// The model.
        model: &'static str,
        /// The measure.
        measure: &'static str,
        /// The value.
        least: f64,
    },
    /// Each of the models is better than the baseline on a set; the sign is enough.
    Below {
        /// The set.
        set: &'static str,
        /// The models.
        models: &'static [&'static str],
    },
}

/// Refuses claims that name a model or a set that no arm of the suite has at scale `paper`.
///
/// # Errors
/// [`Error::UnknownInClaim`], with the names that there are.
pub(crate) fn check_names(suite: &dyn Suite) -> Result<(), Error> {
    let card = suite.card();
    let frame = Frame {
        scale: Scale::Paper,
        cut: 0,
        epochs: None,
        on_request: OnRequest::LeftOut,
    };
    let sets: Vec<_> = card.sets.iter().collect();
    let plan = Plan::new(suite, &sets, frame, Choices::Dearest);
    for claim in suite.claims() {
        let (models, sets) = claim.criterion.names();
        let has_model = |name: &&str| plan.compared().any(|arm| arm.model == *name);
        let has_set = |name: &&str| plan.compared().any(|arm| arm.set == *name);
        let model = models.into_iter().find(|name| !has_model(name));
        let set = || sets.into_iter().find(|name| !has_set(name));
        if let Some(unknown) = model.or_else(set) {
            let known = plan.compared().flat_map(|arm| [arm.model, arm.set]);
            let known: BTreeSet<&str> = known.collect();
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

impl Criterion {
    /// The models are better than others, each than each, in the mean over the sets.
    pub const fn on_average(
        models: &'static [&'static str],
        others: &'static [&'static str],
        sets: &'static [&'static str],
        asked: Asked,
    ) -> Self {
        Self::OnAverage {
            models,
            others,
            sets,
            asked,
        }
    }

    /// The measures that it names.
    pub fn measures(&self) -> Vec<&'static str> {
        match *self {
            Self::Trend {
                rising, falling, ..
            } => [rising, falling].concat(),
            Self::More { measure, .. } | Self::InMost { measure, .. } => vec![measure],
            Self::RisesMost { measures, .. } => measures.as_flattened().to_vec(),
            _ => Vec::new(),
        }
    }

    /// The models and the sets that it names.
    pub fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        match *self {
            Self::Better { model, sets, .. } | Self::NotWorse { model, sets, .. } => {
                (vec![model], sets.to_vec())
            }
            Self::OnAverage {
                models,
                others,
                sets,
                ..
            } => ([models, others].concat(), sets.to_vec()),
            Self::AtMost {
                model, set, below, ..
            } => (vec![model, below], vec![set]),
            Self::NearPublished { models, sets, .. } => {
                (models.iter().map(|model| model.0).collect(), sets.to_vec())
            }
            Self::More {
                set, model, than, ..
            } => (vec![model, than], vec![set]),
            Self::InMost { set, model, .. } | Self::NotWorseBy { set, model, .. } => {
                (vec![model], vec![set])
            }
            Self::Within { model, bands } => {
                (vec![model], bands.iter().map(|band| band.0).collect())
            }
            Self::Trend { set, models, .. }
            | Self::Below { set, models }
            | Self::RisesMost { set, models, .. } => (models.to_vec(), vec![set]),
        }
    }
}

/// What a comparison of averages must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Two standard errors, and nothing less.
    Clear,
    /// Two standard errors; the right sign is partly.
    ClearOrSign,
    /// The right sign.
    Sign,
}

/// A claim with what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its number in the suite.
    pub name: &'static str,
    /// What is claimed.
    pub text: &'static str,
    /// Whether it was found again.
    pub verdict: Verdict,
    /// The averages over sets that the verdict rests on, where the claim is about such.
    pub averages: Vec<Averaged>,
    /// The measures that it rests on, where the claim is about such.
    pub measured: Vec<Measured>,
}
