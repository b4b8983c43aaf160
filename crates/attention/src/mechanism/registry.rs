//! The mechanisms there are.

use super::{
    Expsin, IkanDirect, Linear, Mechanism, Mikan, RbfOnly, Softmax, ika_ns::IKA_NS, ika_s::IKA_S,
    ikan::IKAN,
};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One line of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name, as written in results and on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Where it is defined.
    pub reference: &'static str,
    /// The mechanism with its default settings.
    pub default: fn() -> Variant,
}

/// What the registry says of a mechanism.
pub trait Described: Default {
    /// The name, as written in results and on the command line.
    const NAME: &'static str;
    /// What it is, in one sentence.
    const SUMMARY: &'static str;
    /// Where it is defined.
    const REFERENCE: &'static str;

    /// The name that these settings go by.
    fn name(&self) -> &'static str {
        Self::NAME
    }
}

/// Makes [`Variant`], [`REGISTRY`] and the dispatch out of one line a mechanism, with the rows that
/// are presets of it.
///
/// A macro, because the enum that settings are stored in, the list that tests run over and the
/// dispatch would otherwise be three places to forget a line in.
macro_rules! registry {
    ($($(#[$doc:meta])* $name:ident $(with $($preset:path),+)?;)+) => {
        /// Any mechanism of the registry, with its settings.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "mechanism")]
        #[non_exhaustive]
        pub enum Variant {
            $($(#[$doc])* $name($name),)+
        }

        impl Variant {
            /// The name in the registry that its settings go by.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(mechanism) => mechanism.name(),)+
                }
            }

            /// The mechanism, for `f32` or `f64`.
            pub fn mechanism<T: Real>(&self) -> &dyn Mechanism<T> {
                match self {
                    $(Self::$name(mechanism) => mechanism,)+
                }
            }

            /// The mechanism, shared with what outlives its settings.
            pub fn shared<T: Real>(&self) -> Arc<dyn Mechanism<T>> {
                match self {
                    $(Self::$name(mechanism) => Arc::new(mechanism.clone()),)+
                }
            }
        }

        $(impl From<$name> for Variant {
            fn from(mechanism: $name) -> Self {
                Self::$name(mechanism)
            }
        })+

        /// Every mechanism, with its default settings.
        pub const REGISTRY: &[Entry] = &[$($($($preset,)+)? Entry {
            name: $name::NAME,
            summary: $name::SUMMARY,
            reference: $name::REFERENCE,
            default: || Variant::$name($name::default()),
        },)+];
    };
}

registry! {
    /// Softmax attention.
    Softmax;
    /// Softmax attention's similarity without its magnitude.
    RbfOnly;
    /// A similarity that repeats itself with the distance.
    Expsin;
    /// A squared linear similarity.
    Linear;
    /// Kernel attention with spectral points as parameters.
    IkanDirect;
    /// Kernel attention with an implicit spectral density, with or without a copula over the heads.
    Mikan with IKA_S, IKA_NS, IKAN;
}

/// The line called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
