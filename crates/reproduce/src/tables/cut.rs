//! What a table gives up to be done in time.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is given up when the projected time is too long.
pub trait Cut: Copy + Serialize + DeserializeOwned + 'static {
    /// Nothing.
    const NONE: Self;

    /// All cuts, in the order in which they are tried; nothing is the first.
    const ALL: &'static [Self];

    /// The name on the command line.
    fn name(self) -> &'static str;

    /// What to say about it.
    fn describe(self) -> &'static str;

    /// The cut of a name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cut| cut.name() == name)
    }
}
