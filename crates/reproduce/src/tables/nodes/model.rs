//! The models of the table.

use crate::Settings;
use crate::settings::{GraphAttention, NodeSettings};
use bochner_attention::{IkanDirect, Mikan, Variant};
use bochner_datasets::PlanetoidSet;
use std::num::NonZeroUsize;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// Graph attention networks: what all others are compared with.
    Gat,
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
    pub const ALL: [Self; 6] = [
        Self::Gat,
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

    pub(super) const fn norm(self) -> Norm {
        match self {
            Self::Gat => Norm::Absent,
            Self::IkaS | Self::IkaNs => Norm::Fixed(2.0),
            Self::Ikan | Self::IkanDirect | Self::Mikan => Norm::Chosen,
        }
    }

    /// The settings of a unit. What is common to all models is GAT's, on Pubmed with its own numbers.
    pub(super) fn settings(self, set: PlanetoidSet, size: Size, p: Option<f64>) -> Settings {
        let pubmed = set == PlanetoidSet::Pubmed;
        Settings::Nodes(NodeSettings {
            graph_attention: self.attention(size.points, p),
            p,
            points: p.map(|_| size.points),
            heads: 8,
            width: 8,
            output_heads: if pubmed { 8 } else { 1 },
            dropout: 0.6,
            l2: if pubmed { 1e-3 } else { 5e-4 },
            epochs: size.epochs,
            patience: PATIENCE,
            learning_rate: if pubmed { 0.01 } else { 0.005 },
        })
    }

    /// The mechanism with the norm `p`; everything not given is its own default.
    fn attention(self, points: usize, p: Option<f64>) -> GraphAttention {
        let implicit = |settings: Mikan| {
            let p = p.unwrap_or(settings.p);
            Variant::from(Mikan {
                p,
                points,
                ..settings
            })
        };
        let direct = |settings: IkanDirect| {
            let p = p.unwrap_or(settings.p);
            Variant::from(IkanDirect {
                p,
                points,
                ..settings
            })
        };
        GraphAttention::Kernel(match self {
            Self::Gat => return GraphAttention::Classic,
            Self::IkaS => implicit(Mikan::ika_s()),
            Self::IkaNs => implicit(Mikan::ika_ns()),
            Self::Ikan => implicit(Mikan::ikan()),
            Self::IkanDirect => direct(IkanDirect::default()),
            Self::Mikan => implicit(Mikan::default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn every_model_is_the_mechanism_of_its_name() {
        for model in Model::ALL {
            let settings = settings(model, PlanetoidSet::Cora);
            let GraphAttention::Kernel(variant) = settings.graph_attention else {
                assert_eq!(model, Model::Gat);
                assert_eq!((settings.p, settings.points), (None, None));
                continue;
            };
            let (p, points) = match &variant {
                Variant::IkanDirect(m) => (m.p, m.points),
                Variant::Mikan(m) => (m.p, m.points),
                other => panic!("{other:?}"),
            };
            assert_eq!((Some(p), Some(points)), (settings.p, settings.points));
            assert_eq!((p, points), (3.0, 32));
        }
        let named = |model: Model, p| match model.attention(32, Some(p)) {
            GraphAttention::Kernel(variant) => variant.name().to_uppercase(),
            GraphAttention::Classic => "GAT".into(),
        };
        for model in Model::ALL {
            let p = match model.norm() {
                Norm::Fixed(p) => p,
                Norm::Absent | Norm::Chosen => 3.0,
            };
            assert_eq!(named(model, p), model.name().to_uppercase());
        }
    }

    #[test]
    fn pubmed_has_the_numbers_that_were_published_for_it() {
        let of = |set| {
            let settings = settings(Model::Gat, set);
            (settings.output_heads, settings.l2, settings.learning_rate)
        };
        assert_eq!(of(PlanetoidSet::Cora), (1, 5e-4, 0.005));
        assert_eq!(of(PlanetoidSet::Citeseer), of(PlanetoidSet::Cora));
        assert_eq!(of(PlanetoidSet::Pubmed), (8, 1e-3, 0.01));
    }
}
