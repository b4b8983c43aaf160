//! Shades as PNG.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

/// The darkest colour; the lightest is white.
const DARK: [u8; 3] = [8, 48, 107];

/// A picture of `side` by `side` cells, one level each.
///
/// # Errors
/// If there are not `side * side` levels.
pub(super) fn shades(side: usize, levels: &[u8]) -> Result<Vec<u8>, EncodingError> {
    let side = u32::try_from(side).unwrap_or(0);
    let mut picture = Vec::new();
    let mut encoder = Encoder::new(&mut picture, side, side);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette());
    encoder.set_compression(Compression::High);
    encoder.write_header()?.write_image_data(levels)?;
    Ok(picture)
}

fn palette() -> Vec<u8> {
    let colour = |level: u32| DARK.map(|dark| (255 - (255 - u32::from(dark)) * level / 255) as u8);
    (0..256).flat_map(colour).collect()
}
