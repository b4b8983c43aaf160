//! The hash of a task, which the descriptions of checkpoints hold.

use bochner_text::{BatchConfig, Counted};

/// A hash of some numbers, in hexadecimal digits.
pub(crate) fn fingerprint(numbers: impl Iterator<Item = u32>) -> String {
    let hash = bochner_numerics::fingerprint(numbers.flat_map(u32::to_le_bytes));
    format!("{hash:016x}")
}

/// The numbers of the settings of batches.
pub(crate) fn batch_numbers(batches: &BatchConfig) -> [usize; 4] {
    let of_last = usize::from(batches.counted == Counted::LastSide);
    let sentences = batches.sentences.unwrap_or(0);
    [batches.tokens, sentences, batches.bucket, of_last]
}
