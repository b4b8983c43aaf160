//! Shades as PNG (RFC 2083), stored without compression.

/// The darkest colour; the lightest is white.
const DARK: [u8; 3] = [8, 48, 107];

/// A picture of `side` by `side` cells.
pub(super) fn shades(side: usize, levels: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(u32::try_from(side).unwrap_or(0).to_be_bytes());
    header.extend(u32::try_from(side).unwrap_or(0).to_be_bytes());
    // Eight bits per cell, with a palette.
    header.extend([8, 3, 0, 0, 0]);
    // Each row is preceded by its filter: none.
    let rows: Vec<u8> = levels
        .chunks(side.max(1))
        .flat_map(|row| std::iter::once(0).chain(row.iter().copied()))
        .collect();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"PLTE", &palette());
    chunk(&mut png, b"IDAT", &stored(&rows));
    chunk(&mut png, b"IEND", &[]);
    png
}

fn palette() -> Vec<u8> {
    let colour = |level: u32| DARK.map(|dark| (255 - (255 - u32::from(dark)) * level / 255) as u8);
    (0..256).flat_map(colour).collect()
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend(kind);
    png.extend(data);
    png.extend(crc32(&png[start..]).to_be_bytes());
}

/// A zlib stream (RFC 1950) of stored blocks (RFC 1951).
fn stored(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_their_known_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn long_pictures_are_stored_in_several_blocks() {
        let data = vec![7; 0x1_0005];
        let stream = stored(&data);
        assert_eq!(stream[2..7], [0, 0xff, 0xff, 0, 0]);
        let second = 7 + 0xffff;
        assert_eq!(stream[second..second + 5], [1, 6, 0, 0xf9, 0xff]);
        assert_eq!(stream.len(), second + 5 + 6 + 4);
    }

    #[test]
    fn the_palette_runs_from_white_to_dark() {
        let palette = palette();
        assert_eq!(palette.len(), 768);
        assert_eq!(palette[..3], [255; 3]);
        assert_eq!(palette[765..], DARK);
    }
}
