//! Data as one number.

/// A hash of some bytes, the same in every version: FNV-1a in 64 bits.
///
/// The hash tells data or settings from others. It protects from mistakes, not from malice.
///
/// ```
/// let data = [0.5_f32, 2.0];
/// let found = bochner_numerics::fingerprint(data.into_iter().flat_map(f32::to_le_bytes));
/// assert_eq!(format!("{found:016x}"), "54ac836526861e58");
/// ```
///
/// # Reference
/// Fowler, Noll, Vo, Eastlake, *The FNV non-cryptographic hash algorithm*.
pub fn fingerprint(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
