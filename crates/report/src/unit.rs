//! A unit of work: one model trained once on one split of one data set.

use crate::{Error, Settings};
use bochner_datasets::Protocol;
use bochner_numerics::fingerprint;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The size of the experiments.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Tests the machinery in minutes, never the science.
    #[default]
    Smoke,
    /// Real data, reduced models; hours on two cores. Only signs and orderings are judged.
    Desk,
    /// The full protocol.
    Paper,
}

impl Scale {
    /// All scales, the smallest first.
    pub const ALL: [Self; 3] = [Self::Smoke, Self::Desk, Self::Paper];

    /// The name on the command line and in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Desk => "desk",
            Self::Paper => "paper",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scale {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|scale| scale.name() == name)
            .ok_or_else(|| Error::UnknownScale {
                given: name.to_owned(),
            })
    }
}

/// One model trained once on one split of one data set.
///
/// Everything that decides the result is in here, and nothing else: two units are equal exactly
/// if their results may stand for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The suite, such as `regression`.
    pub suite: String,
    /// The scale.
    pub scale: Scale,
    /// The data set.
    pub set: String,
    /// The model.
    pub variant: String,
    /// The division of the rows.
    pub protocol: Protocol,
    /// The split, counted from zero.
    pub split: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// The numbers of the training run.
    pub settings: Settings,
    /// The versions of everything else that decides the result. Rows written before 2026-12 have none: they can be read and
    /// judged, and no run goes on from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
}

/// The versions of everything that decides a result besides the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The number of the suite, [`Card::version`](crate::suite::Card::version).
    pub suite: u32,
    /// The number of the arithmetic of models and engine.
    pub results: u32,
    /// A fingerprint of the default settings of the models, which a suite's settings leave out.
    pub defaults: String,
    /// A fingerprint of the pinned files of the set; absent where it is drawn.
    pub data: Option<String>,
}

impl Unit {
    /// The unit's name: readable, and different for every different unit.
    ///
    /// The last part is a fingerprint of all fields. So a result that was recorded with, say,
    /// other epochs has another name: it is neither mistaken for this unit's nor overwritten.
    pub fn id(&self) -> String {
        format!("{}.{:016x}", self.name(), self.fingerprint())
    }

    /// The readable part of the [`id`](Self::id), which units with other settings share.
    pub fn name(&self) -> String {
        format!(
            "{}.{}.{}.{}-{:02}.seed-{}",
            self.scale,
            slug(&self.set),
            slug(&self.variant),
            slug(self.protocol.name()),
            self.split,
            self.seed,
        )
    }

    /// A short name for people.
    pub fn label(&self) -> String {
        let split = match self.protocol {
            Protocol::Fixed => format!("seed {}", self.seed),
            protocol => format!("{} split {}", protocol.name(), self.split),
        };
        format!("{} {} {split}", self.set, self.variant)
    }

    /// FNV-1a over the unit's JSON, whose field order is fixed by the type.
    fn fingerprint(&self) -> u64 {
        fingerprint(serde_json::to_vec(self).expect("a unit has only plain fields"))
    }
}

fn slug(name: &str) -> String {
    let letters: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    letters
        .split('-')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}
