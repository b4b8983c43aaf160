//! Bytes in text (RFC 4648), for pictures inside JSON and HTML.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.chunks(3).flat_map(encode_group).collect()
}

fn encode_group(group: &[u8]) -> [char; 4] {
    let bits = (0..3).fold(0u32, |bits, i| {
        bits << 8 | u32::from(group.get(i).copied().unwrap_or(0))
    });
    std::array::from_fn(|i| {
        if i <= group.len() {
            ALPHABET[(bits >> (18 - 6 * i) & 63) as usize].into()
        } else {
            '='
        }
    })
}

/// `None` if the text is not what [`encode`] writes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let padding = text.bytes().rev().take_while(|&b| b == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let bits = group
            .iter()
            .try_fold(0u32, |bits, &c| Some(bits << 6 | value(c)?))?;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    bytes.truncate(bytes.len() - padding);
    (encode(&bytes) == text).then_some(bytes)
}

fn value(character: u8) -> Option<u32> {
    if character == b'=' {
        return Some(0);
    }
    let place = ALPHABET.iter().position(|&a| a == character)?;
    Some(place as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        for damaged in ["Zg=", "Z===", "Zg==Zg==", "Zm9!", "Zh=="] {
            assert!(decode(damaged).is_none(), "{damaged}");
        }
    }
}
