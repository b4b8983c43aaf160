//! The names and sizes of the citation graphs.

use serde::{Deserialize, Serialize};

/// The citation graphs of Table 5: papers are nodes, citations are edges, words are features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanetoidSet {
    /// Papers on machine learning.
    Cora,
    /// Papers on computer science.
    Citeseer,
    /// Papers on diabetes.
    Pubmed,
}

impl PlanetoidSet {
    /// All graphs, in the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::Cora, Self::Citeseer, Self::Pubmed];

    /// The name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cora => "cora",
            Self::Citeseer => "citeseer",
            Self::Pubmed => "pubmed",
        }
    }

    /// Number of nodes, $n$.
    pub const fn nodes(self) -> usize {
        match self {
            Self::Cora => 2708,
            Self::Citeseer => 3327,
            Self::Pubmed => 19717,
        }
    }

    /// Number of edges, without direction, repetitions and self loops.
    pub const fn edges(self) -> usize {
        match self {
            Self::Cora => 5278,
            Self::Citeseer => 4552,
            Self::Pubmed => 44324,
        }
    }

    /// Number of features, $d$.
    pub const fn features(self) -> usize {
        match self {
            Self::Cora => 1433,
            Self::Citeseer => 3703,
            Self::Pubmed => 500,
        }
    }

    /// Number of classes.
    pub const fn classes(self) -> usize {
        match self {
            Self::Cora => 7,
            Self::Citeseer => 6,
            Self::Pubmed => 3,
        }
    }
}

crate::regression::named!(PlanetoidSet, "citation graph");
