//! Records of the files that numbers were made from: their digests, and where they were found.

use crate::manifest::Entry;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The place where a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The given directory.
    Directory,
    /// The crate itself.
    Embedded,
    /// The user's cache.
    Cache,
    /// Downloaded just now.
    Download,
}

/// A file that numbers were made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProvenance {
    /// The name in the manifest.
    pub file: String,
    /// SHA-256 of the bytes read.
    pub sha256: String,
    /// The place where they were found.
    pub origin: Origin,
}

impl FileProvenance {
    pub(crate) fn of(entry: &Entry, stored: &Stored) -> Self {
        Self {
            file: entry.file.clone(),
            sha256: entry.pin.sha256_of(&stored.bytes),
            origin: stored.origin,
        }
    }
}

/// The verified bytes of a pinned file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The bytes.
    pub bytes: Cow<'static, [u8]>,
    /// The path or address they were read from.
    pub place: String,
    /// The kind of that place.
    pub origin: Origin,
}
