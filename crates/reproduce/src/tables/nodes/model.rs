//! The models of the table.

use crate::Settings;
use crate::settings::NodeSettings;
use bochner_datasets::PlanetoidSet;
use bochner_graph::{AttentionKind, EdgeKernel};
use bochner_models::node_classifier::Architecture;
use bochner_spectral::{Copula, Direct, Implicit, Stationarity};
use std::num::NonZeroUsize;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// Graph attention networks: what all others are compared with.
    Gat,
    /// Graph convolutional networks, the baseline without attention.
    Gcn,
    /// The kernel form of graph attention without its magnitudes.
    RbfOnly,
    /// A stationary kernel with an implicit spectral density.
    IkaS,
    /// A non-stationary kernel with an implicit spectral density.
    IkaNs,
    /// The same with a norm of its own.
    Ikan,
    /// A non-stationary kernel whose spectral points are parameters.
    IkanDirect,
    /// IKAN with heads that depend on each other.
    Mikan,
}

/// The exponent p of a model's magnitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Norm {
    /// It has none.
    Absent,
    /// Its definition fixes it.
    Fixed(f64),
    /// Validation chooses it.
    Chosen,
}

/// What differs between scales.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) points: usize,
    pub(super) epochs: usize,
}

/// Epochs in a row without progress on the validation part, in all published runs of GAT.
const PATIENCE: NonZeroUsize = NonZeroUsize::new(100).unwrap();

impl Model {
    /// All models; the one that the others are compared with first.
    pub const ALL: [Self; 8] = [
        Self::Gat,
        Self::Gcn,
        Self::RbfOnly,
        Self::IkaS,
        Self::IkaNs,
        Self::Ikan,
        Self::IkanDirect,
        Self::Mikan,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gat => "GAT",
            Self::Gcn => "GCN",
            Self::RbfOnly => "RBF-only",
            Self::IkaS => "IKA-S",
            Self::IkaNs => "IKA-NS",
            Self::Ikan => "IKAN",
            Self::IkanDirect => "IKAN-direct",
            Self::Mikan => "MIKAN",
        }
    }

    /// Whether the paper's table claims an improvement for it. The others are reported.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::IkanDirect | Self::Mikan)
    }

    /// The model that lacks one thing that this one has: their difference is what that brings.
    pub const fn simpler(self) -> Option<Self> {
        match self {
            Self::IkaNs => Some(Self::IkaS),
            Self::Ikan => Some(Self::IkaNs),
            Self::Mikan => Some(Self::Ikan),
            _ => None,
        }
    }

    pub(super) const fn norm(self) -> Norm {
        match self {
            Self::Gat | Self::Gcn | Self::RbfOnly => Norm::Absent,
            Self::IkaS | Self::IkaNs => Norm::Fixed(2.0),
            Self::Ikan | Self::IkanDirect | Self::Mikan => Norm::Chosen,
        }
    }

    /// The settings of a unit. What is common to all models with attention is GAT's, on Pubmed with
    /// its own numbers. GCN has its own, but for the rule that ends training: that is GAT's.
    pub(super) fn settings(self, set: PlanetoidSet, size: Size, p: Option<f64>) -> Settings {
        let pubmed = set == PlanetoidSet::Pubmed;
        let of_gat = NodeSettings {
            architecture: Architecture::Attention {
                kind: self.attention(size.points, p),
                heads: 8,
                width: 8,
                output_heads: if pubmed { 8 } else { 1 },
            },
            p,
            points: p.map(|_| size.points),
            dropout: 0.6,
            l2: if pubmed { 1e-3 } else { 5e-4 },
            epochs: size.epochs,
            patience: PATIENCE,
            learning_rate: if pubmed { 0.01 } else { 0.005 },
        };
        Settings::Nodes(match self {
            Self::Gcn => NodeSettings {
                architecture: Architecture::Convolution { hidden: 16 },
                dropout: 0.5,
                l2: 5e-4,
                learning_rate: 0.01,
                ..of_gat
            },
            _ => of_gat,
        })
    }

    /// The kernel with the norm `p`; what is not given has its usual value.
    fn attention(self, points: usize, p: Option<f64>) -> AttentionKind {
        let with_p =
            |kernel: EdgeKernel, p| kernel.with_p(p).expect("a kernel with points, and p > 0");
        let implicit = |copula, stationarity, usual: f64| {
            let source = Implicit {
                points,
                copula,
                stationarity,
                ..Implicit::default()
            };
            with_p(source.into(), p.unwrap_or(usual))
        };
        let direct = Direct {
            points,
            ..Direct::default()
        };
        let (none, pairs) = (Copula::Independent, Stationarity::Nonstationary);
        AttentionKind::Kernel(match self {
            Self::Gat | Self::Gcn => return AttentionKind::Classic,
            Self::RbfOnly => EdgeKernel::RbfOnly,
            Self::IkaS => implicit(none, Stationarity::Stationary, 2.0),
            Self::IkaNs => implicit(none, pairs, 2.0),
            Self::Ikan => implicit(none, pairs, 1.5),
            Self::IkanDirect => with_p(direct.into(), p.unwrap_or(2.0)),
            Self::Mikan => implicit(Copula::Amortised, pairs, 2.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_attention::Variant;

    const SIZE: Size = Size {
        points: 32,
        epochs: 1000,
    };

    fn settings(model: Model, set: PlanetoidSet) -> NodeSettings {
        let p = (model.norm() != Norm::Absent).then_some(3.0);
        match model.settings(set, SIZE, p) {
            Settings::Nodes(settings) => settings,
            other => panic!("{other:?}"),
        }
    }

    fn kind(settings: &NodeSettings) -> Option<&AttentionKind> {
        match &settings.architecture {
            Architecture::Attention { kind, .. } => Some(kind),
            Architecture::Convolution { .. } => None,
        }
    }

    #[test]
    fn what_a_unit_says_of_its_norm_and_points_is_what_its_mechanism_has() {
        for model in Model::ALL {
            let settings = settings(model, PlanetoidSet::Cora);
            let own = match kind(&settings) {
                Some(AttentionKind::Kernel(EdgeKernel::Direct { p, source, .. })) => {
                    Some((*p, source.points))
                }
                Some(AttentionKind::Kernel(EdgeKernel::Implicit { p, source, .. })) => {
                    Some((*p, source.points))
                }
                _ => None,
            };
            assert_eq!(own, settings.p.zip(settings.points));
            assert_eq!(own.is_some(), model.norm() != Norm::Absent);
            assert!(own.is_none_or(|own| own == (3.0, 32)));
        }
    }

    #[test]
    fn every_model_is_the_mechanism_of_its_name() {
        for model in Model::ALL {
            let p = match model.norm() {
                Norm::Fixed(p) => p,
                Norm::Absent | Norm::Chosen => 3.0,
            };
            let name = match model.attention(32, Some(p)) {
                AttentionKind::Kernel(kernel) => {
                    // Attention over sequences reads what graphs write.
                    let written = serde_json::to_value(kernel).unwrap();
                    let variant: Variant = serde_json::from_value(written).unwrap();
                    variant.name().to_uppercase()
                }
                _ => model.name().to_owned(),
            };
            assert_eq!(name, model.name().to_uppercase());
        }
        let gcn = settings(Model::Gcn, PlanetoidSet::Cora);
        assert_eq!(kind(&gcn), None);
        let gat = settings(Model::Gat, PlanetoidSet::Cora);
        assert_eq!(kind(&gat), Some(&AttentionKind::Classic));
    }

    #[test]
    fn pubmed_has_the_numbers_that_were_published_for_it() {
        let of = |set| {
            let settings = settings(Model::Gat, set);
            let heads = match settings.architecture {
                Architecture::Attention { output_heads, .. } => output_heads,
                Architecture::Convolution { .. } => 0,
            };
            (heads, settings.l2, settings.learning_rate)
        };
        assert_eq!(of(PlanetoidSet::Cora), (1, 5e-4, 0.005));
        assert_eq!(of(PlanetoidSet::Citeseer), of(PlanetoidSet::Cora));
        assert_eq!(of(PlanetoidSet::Pubmed), (8, 1e-3, 0.01));
        let gcn = PlanetoidSet::ALL.map(|set| settings(Model::Gcn, set));
        assert!(gcn.iter().all(|settings| settings == &gcn[0]));
        assert_eq!((gcn[0].l2, gcn[0].dropout), (5e-4, 0.5));
    }
}
