//! The sizes of a decoder.

use bochner_spectral::Size;

/// The sizes of a [`Decoder`](super::Decoder).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderSize {
    /// Number of sequences, B.
    pub batch: usize,
    /// Number of heads, M.
    pub heads: usize,
    /// Width of one head's queries and keys, d.
    pub width: usize,
    /// Width of one head's values, dv.
    pub value_width: usize,
}

impl From<DecoderSize> for Size {
    fn from(DecoderSize { heads, width, .. }: DecoderSize) -> Self {
        Self { heads, width }
    }
}
