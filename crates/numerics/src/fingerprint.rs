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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_values_come_out() {
        assert_eq!(fingerprint(*b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
