//! A unit of work: one model trained once on one split of one data set.

use crate::{Error, Preset, Settings};
use bochner_datasets::Protocol;
use bochner_numerics::fingerprint;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How large the experiments are.
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
        [Self::Smoke, Self::Desk, Self::Paper]
            .into_iter()
            .find(|scale| scale.name() == name)
            .ok_or_else(|| Error::InvalidOption {
                option: "--scale",
                given: name.to_owned(),
                expected: "smoke, desk or paper".to_owned(),
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
    /// The reading of the method.
    pub preset: Preset,
    /// How the rows are divided.
    pub protocol: Protocol,
    /// Which of the splits, from zero.
    pub split: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// Zero; one for the second run of a unit that must give the same bits as the first.
    pub repeat: usize,
    /// The numbers of the training run.
    pub settings: Settings,
}

impl Unit {
    /// The unit's name: readable, and different for every different unit.
    ///
    /// The last part is a fingerprint of all fields. So a result that was recorded with, say,
    /// other epochs has another name: it is neither mistaken for this unit's nor overwritten.
    pub fn id(&self) -> String {
        let again = if self.repeat > 0 { ".again" } else { "" };
        format!(
            "{}.{}.{}.{}.{}-{:02}.seed-{}{again}.{:016x}",
            self.scale,
            slug(&self.set),
            slug(&self.variant),
            self.preset.name(),
            slug(self.protocol.name()),
            self.split,
            self.seed,
            self.fingerprint(),
        )
    }

    /// A short name for people.
    pub fn label(&self) -> String {
        let mut label = format!("{} {}", self.set, self.variant);
        if self.preset == Preset::Released {
            label.push_str(" (released)");
        }
        let again = if self.repeat > 0 { ", again" } else { "" };
        let split = match self.protocol {
            Protocol::Fixed => format!("seed {}", self.seed),
            protocol => format!("{} split {}", protocol.name(), self.split),
        };
        format!("{label} {split}{again}")
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

/// One of several disjoint parts of a list of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// The whole list.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Whether the unit at this place of the list belongs to the part.
    pub const fn holds(self, place: usize) -> bool {
        place % self.count == self.index - 1
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = Error;

    /// Reads `i/n` with `1 <= i <= n`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let shard = text.split_once('/').and_then(|(index, count)| {
            Some(Self {
                index: index.parse().ok()?,
                count: count.parse().ok()?,
            })
        });
        shard
            .filter(|s| (1..=s.count).contains(&s.index))
            .ok_or_else(|| Error::InvalidOption {
                option: "--shard",
                given: text.to_owned(),
                expected: "i/n with 1 <= i <= n, such as 2/3".to_owned(),
            })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trial::gaussian_process::{Covariance, ProcessSettings};
    use crate::trial::regressor::AttentionSettings;
    use bochner_attention::Softmax;

    fn attention() -> AttentionSettings {
        AttentionSettings {
            attention: Softmax::default().into(),
            p: Some(2.0),
            points: None,
            heads: 8,
            width: 64,
            hidden: 64,
            epochs: 60,
            learning_rate: 0.01,
            clip_norm: 1000.0,
            every: 1,
        }
    }

    pub(crate) fn unit() -> Unit {
        Unit {
            suite: "regression".into(),
            scale: Scale::Smoke,
            set: "Passenger".into(),
            variant: "Transformer (8 heads)".into(),
            preset: Preset::Paper,
            protocol: Protocol::P10,
            split: 3,
            seed: 0,
            repeat: 0,
            settings: Settings::of(&attention()),
        }
    }

    #[test]
    fn an_id_is_readable_and_safe_as_a_file_name() {
        let id = unit().id();
        assert!(
            id.starts_with("smoke.passenger.transformer-8-heads.paper.p10-03.seed-0."),
            "{id}"
        );
        assert!(
            id.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
        );
    }

    #[test]
    fn every_field_changes_the_id() {
        let mut ids = vec![unit().id()];
        let changes: [fn(&mut Unit); 5] = [
            |u| u.split = 4,
            |u| u.repeat = 1,
            |u| u.seed = 1,
            |u| u.protocol = Protocol::R90,
            |u| u.protocol = Protocol::Fixed,
        ];
        for change in changes {
            let mut other = unit();
            change(&mut other);
            ids.push(other.id());
        }
        let changes: [fn(&mut AttentionSettings); 4] = [
            |s| s.epochs += 1,
            |s| s.p = None,
            |s| s.every = 5,
            |s| s.learning_rate = 0.02,
        ];
        for change in changes {
            let mut settings = attention();
            change(&mut settings);
            let settings = Settings::of(&settings);
            ids.push(Unit { settings, ..unit() }.id());
        }
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }

    #[test]
    fn a_fingerprint_is_the_same_for_as_long_as_settings_are_spelt_alike() {
        // Unfinished runs are found by it: a change here orphans them all.
        assert_eq!(unit().fingerprint(), 2_647_521_109_458_747_099);
        let process = ProcessSettings {
            covariance: Covariance::SpectralMixture { components: 5 },
            epochs: 60,
            learning_rate: 0.01,
            every: 1,
        };
        let process = Unit {
            settings: Settings::of(&process),
            protocol: Protocol::R90,
            ..unit()
        };
        assert_eq!(process.fingerprint(), 14_309_566_412_945_290_183);
    }

    #[test]
    fn runs_on_one_split_are_told_apart_by_their_seeds() {
        let unit = |seed| Unit {
            protocol: Protocol::Fixed,
            split: 0,
            seed,
            ..unit()
        };
        assert_eq!(unit(7).label(), "Passenger Transformer (8 heads) seed 7");
        let id = unit(7).id();
        assert!(id.contains(".fixed-00.seed-7."), "{id}");
        assert_ne!(id, unit(8).id());
    }

    #[test]
    fn shards_divide_the_list_without_rest_or_overlap() {
        let shards: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for place in 0..20 {
            assert_eq!(shards.iter().filter(|s| s.holds(place)).count(), 1);
        }
        for bad in ["0/3", "4/3", "1/0", "1", "a/b", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
