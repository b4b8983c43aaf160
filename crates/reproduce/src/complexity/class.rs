//! Which row of Table 1 a mechanism belongs to, and its settings.

use super::polynomial::Powers;
use crate::Error;
use bochner_attention::Variant;
use serde_json::Value;

/// A row of Table 1, or several that share their entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A similarity in closed form.
    Closed,
    /// A squared kernel by its spectral points.
    Spectral,
    /// The same with points that are drawn jointly over the heads.
    Joint,
    /// A squared kernel in its linear-time form, which is ours and not in the table.
    LinearTime,
}

impl Class {
    /// By the name in the registry.
    pub(super) fn of(name: &str) -> Result<Self, Error> {
        match name {
            "softmax" | "rbf-only" | "expsin" | "linear" => Ok(Self::Closed),
            "ika-s" | "ika-ns" | "ikan" | "ikan-direct" => Ok(Self::Spectral),
            "mikan" => Ok(Self::Joint),
            _ => Err(Error::Unclassified {
                name: name.to_owned(),
            }),
        }
    }

    /// What the paper prints.
    pub(super) fn published(self) -> &'static str {
        match self {
            Self::Closed => "T^2 d + T d^2",
            Self::Spectral => "T^2 R + T d^2 + T d R",
            Self::Joint => "T^2 R + T d^2 + T d R + d M^3",
            Self::LinearTime => "not in it; ours: T R^2 d + T d R",
        }
    }

    /// The powers of T, R and d that are stated, as far as they grow with T.
    pub(super) fn powers(self) -> &'static [Powers] {
        match self {
            Self::Closed => &[[2, 0, 1], [1, 0, 2]],
            Self::Spectral | Self::Joint => &[[2, 1, 0], [1, 0, 2], [1, 1, 1]],
            Self::LinearTime => &[[1, 2, 1], [1, 1, 1]],
        }
    }
}

/// Whether a mechanism has spectral points.
pub(super) fn has_points(variant: &Variant) -> bool {
    fields(variant).get("points").is_some()
}

/// The mechanism with another number of spectral points, if it has any; pair by pair, as Table 1
/// counts, whatever is faster.
pub(super) fn with_points(variant: &Variant, points: usize) -> Variant {
    if !has_points(variant) {
        return variant.clone();
    }
    let mut fields = fields(variant);
    fields["points"] = points.into();
    fields["form"] = "quadratic".into();
    serde_json::from_value(fields).expect("two forms to choose from")
}

/// The mechanism with another value of one of its settings.
///
/// By the name that settings files use, so that the suite need not know the registry's types.
///
/// # Panics
/// If it has no such setting: a defect of the suite.
pub(super) fn with(variant: &Variant, setting: &str, value: Value) -> Variant {
    let mut fields = fields(variant);
    let place = fields.get_mut(setting).expect("a setting of the mechanism");
    *place = value;
    serde_json::from_value(fields).expect("a value that the setting can have")
}

fn fields(variant: &Variant) -> Value {
    serde_json::to_value(variant).expect("settings have plain fields")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_attention::REGISTRY;

    #[test]
    fn every_mechanism_of_the_registry_has_its_row() {
        for entry in REGISTRY {
            let class = Class::of(entry.name).unwrap();
            let variant = (entry.default)();
            assert_eq!(
                class != Class::Closed,
                has_points(&variant),
                "{}",
                entry.name
            );
            let mechanism = with_points(&variant, 12);
            assert_eq!(mechanism.name(), entry.name);
            let form = fields(&mechanism).get("form").cloned();
            assert_eq!(form, has_points(&variant).then(|| "quadratic".into()));
        }
        let error = Class::of("wavelet").unwrap_err().to_string();
        assert!(
            error.contains("wavelet") && error.contains("class.rs"),
            "{error}"
        );
    }
}
