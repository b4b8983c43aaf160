//! The hash of a task, which the descriptions of checkpoints hold.

/// A hash of some numbers, in hexadecimal digits.
pub(crate) fn fingerprint(numbers: impl Iterator<Item = u32>) -> String {
    let hash = bochner_numerics::fingerprint(numbers.flat_map(u32::to_le_bytes));
    format!("{hash:016x}")
}
