//! The list of mechanisms: an entry makes a module, an enum variant, a place in the registry and a dispatch.

/// Makes the modules, [`Variant`](super::Variant), [`registry`](super::registry()) and the dispatch out of one line
/// a mechanism, which names its file, its type, the name of its default, by which settings files know the type, and its
/// settings: the default, and its presets. Settings are checked when they are read: their serde derives are
/// `remote = "Self"`, or else there are two.
///
/// A macro, because the enum that settings are stored in, the list that tests run over and the
/// dispatch would otherwise be three places to forget a line in. `cargo fmt` looks for no modules in macros:
/// `cargo xtask fmt` names their files to it.
macro_rules! list_of_mechanisms {
    ($($(#[$doc:meta])* $module:ident :: $name:ident as $written:literal: $($settings:expr),+;)+) => {
        $(mod $module;)+
        $(pub use $module::$name;)+

        /// Any mechanism with its settings: ours, or one of another crate.
        ///
        /// Written down, `mechanism` is the registry's name of the type's default. The names of presets, such as `ikan`,
        /// are refused there: a preset is its type under other settings, which have to be written beside it. A mechanism
        /// of another crate is a map from its name to its settings, and can be read once it is [registered](register).
        ///
        /// ```
        /// use bochner_attention::{Mikan, Variant, find};
        ///
        /// let variant: Variant = serde_json::from_str(r#"{"mechanism": "ikan-direct", "points": 16}"#)?;
        /// assert!(serde_json::to_string(&variant)?.starts_with(r#"{"mechanism":"ikan-direct""#));
        /// assert_eq!(find("ikan"), Some(Mikan::ikan().into()));
        ///
        /// let unknown = serde_json::from_str::<Variant>(r#"{"mycrate/name": {}}"#);
        /// assert!(unknown.unwrap_err().to_string().contains("there are softmax, rbf-only"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "mechanism", remote = "Self")]
        #[non_exhaustive]
        pub enum Variant {
            $($(#[$doc])* #[serde(rename = $written)] $name($name),)+
            /// A mechanism of another crate.
            #[serde(skip)]
            Custom(CustomSettings),
        }


        impl Variant {
            /// The mechanism, for `f32` or `f64`.
            pub fn mechanism<T: Real>(&self) -> &dyn Mechanism<T> {
                match self {
                    $(Self::$name(mechanism) => mechanism,)+
                    Self::Custom(settings) => settings.mechanism(),
                }
            }

            /// The mechanism, shared with what outlives its settings.
            pub fn shared(&self) -> SharedMechanism {
                match self {
                    $(Self::$name(mechanism) => SharedMechanism::new(mechanism.clone()),)+
                    Self::Custom(settings) => settings.shared(),
                }
            }
        }

        $(impl From<$name> for Variant {
            fn from(mechanism: $name) -> Self {
                Self::$name(mechanism)
            }
        })+

        $(bochner_numerics::checked_when_read!($name, <$name as Mechanism<f64>>::validate);)+

        /// Every mechanism with its default settings, and its presets: ours, then those that are [registered](register).
        pub fn registry() -> Vec<Variant> {
            let mut all: Vec<Variant> = vec![$($($settings.into(),)+)+];
            all.extend(custom::registered().iter().map(|entry| (entry.default)()));
            all
        }
    };
}

pub(super) use list_of_mechanisms;
