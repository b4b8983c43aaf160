//! Parts of a list of units, for several machines.

use crate::Error;
use std::fmt;
use std::str::FromStr;

/// One of several disjoint parts of a list of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// The whole list.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Whether there are other shards of the list.
    pub const fn is_one_of_several(self) -> bool {
        self.count > 1
    }

    /// The first of the places in a list that every shard goes through, different for each shard.
    pub const fn start(self, length: usize) -> usize {
        (self.index - 1) * length / self.count
    }

    /// Whether the unit at this place of the list belongs to the part.
    pub const fn holds(self, place: usize) -> bool {
        place % self.count == self.index - 1
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
