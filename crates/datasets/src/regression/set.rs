//! The names of sets and protocols, and the choice of rows.

use crate::{Error, Table};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Writes and reads the variants of an enum by `name` and `ALL`; `what` they are is said where a name is unknown.
macro_rules! named {
    ($type:ty, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> Result<Self, $crate::Error> {
                $crate::regression::by_name($what, &Self::ALL, Self::name, name)
            }
        }
    };
}
pub(crate) use named;

/// Makes the enum of the regression sets of a list, in which each names its module.
macro_rules! list_of_sets {
    ($($(#[$doc:meta])* $set:ident = $module:ident;)*) => {
        /// The regression sets of Table 4.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum RegressionSet {
            $($(#[$doc])* $set,)*
        }

        impl RegressionSet {
            /// All sets, in the order of the table's columns.
            pub const ALL: [Self; [$(stringify!($set)),*].len()] = [$(Self::$set),*];

            pub(super) const fn described(self) -> &'static Described {
                match self {
                    $(Self::$set => &super::$module::SET,)*
                }
            }
        }
    };
}

list_of_sets! {
    /// Atmospheric carbon dioxide at Mauna Loa, monthly.
    Co2 = co2;
    /// International airline passengers, monthly.
    Passenger = passenger;
    /// House prices in Boston.
    Housing = housing;
    /// Compressive strength of concrete.
    Concrete = concrete;
    /// Symptom scores of people with Parkinson's disease from their voices.
    Parkinsons = parkinsons;
}

/// The description of a set in its module.
pub(super) struct Described {
    /// The name of its folder.
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) inputs: usize,
    /// Whether the rows are the months of one series, in their order.
    pub(super) is_series: bool,
    /// Whether a ten-fold partition has been published, `folds10.txt`.
    pub(super) has_published_folds: bool,
    /// The place of the table.
    pub(super) table: Place,
    /// The place of the table in the row order of [`Protocol::R90`].
    pub(super) released: Place,
}

/// The place of a table, with the target as its last column.
pub(super) enum Place {
    /// In this crate.
    Here,
    /// In the source's scaled files, `train.csv` and `test.csv`.
    Scaled,
    /// In a raw file, to be scaled, with the function that reads it.
    Raw(&'static str, fn(&str, &[u8]) -> Result<Table, Error>),
}

impl RegressionSet {
    /// The name of its folder.
    pub const fn name(self) -> &'static str {
        self.described().name
    }

    /// Number of rows, $n$.
    pub const fn rows(self) -> usize {
        self.described().rows
    }

    /// Number of inputs, $d$.
    pub const fn inputs(self) -> usize {
        self.described().inputs
    }

    /// Whether the table is part of this crate, so that no file is needed.
    pub const fn is_built_in(self) -> bool {
        matches!(self.described().table, Place::Here)
    }

    /// Whether the rows are the months of one series, in their order; those of other sets have no order.
    pub const fn is_series(self) -> bool {
        self.described().is_series
    }
}

named!(RegressionSet, "regression set");

/// The split of rows into training, validation and test rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// Ten-fold cross-validation with a validation fold, [`Split::cross_validation`](crate::Split::cross_validation).
    P10,
    /// The ten random 90/10 splits of the paper's released code, [`Split::held_out`](crate::Split::held_out). They are
    /// no partition. The row order that the released code used for Parkinsons is unknown, so the test
    /// rows of that set are other rows than the paper's, drawn by the same rule.
    R90,
    /// The one split that was published with the data, which the citation graphs have; runs differ in
    /// their seeds.
    Fixed,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::P10, Self::R90, Self::Fixed];

    /// The protocols that the regression sets have splits for.
    pub const REGRESSION: [Self; 2] = [Self::P10, Self::R90];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P10 => "P10",
            Self::R90 => "R90",
            Self::Fixed => "Fixed",
        }
    }
}

named!(Protocol, "protocol");

/// The rows of a set that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rows {
    /// Every row.
    All,
    /// Rows 0, $k$, 2$k$, ..., each in the fold it has in the full set.
    Every(NonZeroUsize),
}

impl Rows {
    pub(super) const fn step(self) -> usize {
        match self {
            Self::All => 1,
            Self::Every(k) => k.get(),
        }
    }
}

pub(crate) fn by_name<T: Copy>(
    what: impl Into<String>,
    all: &[T],
    name_of: fn(T) -> &'static str,
    name: &str,
) -> Result<T, Error> {
    let names = || all.iter().map(|&item| name_of(item));
    match names().position(|known| known == name) {
        Some(at) => Ok(all[at]),
        None => Err(Error::UnknownName {
            what: what.into(),
            given: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for set in RegressionSet::ALL {
            assert_eq!(set.to_string().parse::<RegressionSet>().unwrap(), set);
        }
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse::<Protocol>().unwrap(), protocol);
        }
        let error = "boston".parse::<RegressionSet>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no regression set is called `boston`: there are co2, passenger, housing, concrete, parkinsons"
        );
    }
}
