//! Pictures as SVG: inside a page, and side by side in files of their own.

use super::templates::escape;
use super::{Chart, Picture, png};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fmt::Write;

/// The styles of pictures outside of a page, readable on light and dark ground.
const STYLE: &str = "text{font:11px sans-serif;fill:#888}.title{font-size:13px}\
                     .cell{font-size:9px;fill:#1b1f24;text-anchor:middle}.grid{stroke:#8884}\
                     .line{fill:none;stroke-width:1.5}";

/// Between pictures of a file.
const GAP: f64 = 16.0;

/// Pictures in a row of a file.
const IN_A_ROW: usize = 2;

/// Width and height of a matrix in shades, without its title.
const SHADES: f64 = 144.0;

const TITLE: f64 = 16.0;

/// Pictures side by side, as a file that carries its own styles.
pub(super) fn file(pictures: &[Picture]) -> String {
    let (mut inside, mut width, mut top) = (String::new(), 0_f64, 0.0);
    for row in pictures.chunks(IN_A_ROW) {
        let (mut left, mut height) = (0.0, 0_f64);
        for picture in row {
            let [own_width, own_height] = size(picture);
            let svg = element(picture);
            let rest = svg.strip_prefix("<svg").unwrap_or(&svg);
            let _ = write!(
                inside,
                "<svg x=\"{left}\" y=\"{top}\" height=\"{own_height}\"{rest}"
            );
            left += own_width + GAP;
            height = height.max(own_height);
        }
        width = width.max(left - GAP);
        top += height + GAP;
    }
    let height = top - GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         role=\"img\"><style>{STYLE}</style>{inside}</svg>\n"
    )
}

/// Width and height of a picture.
fn size(picture: &Picture) -> [f64; 2] {
    match picture {
        Picture::Chart(_) => Chart::SIZE,
        Picture::Shades { .. } => [SHADES, SHADES + TITLE],
        Picture::Matrix(matrix) => matrix.size(),
    }
}

/// A picture as an element of a page.
pub(super) fn element(picture: &Picture) -> String {
    match picture {
        Picture::Chart(chart) => chart.to_svg(),
        Picture::Matrix(matrix) => matrix.to_svg(),
        Picture::Shades {
            title,
            side,
            levels,
        } => {
            let [width, height] = size(picture);
            let png = png::shades(*side, levels).expect("one level a cell");
            format!(
                "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\
                 <image width=\"{SHADES}\" height=\"{SHADES}\" style=\"image-rendering:pixelated\" \
                 href=\"data:image/png;base64,{}\"/><text x=\"0\" y=\"{}\">{}</text></svg>",
                BASE64_STANDARD.encode(png),
                height - 3.0,
                escape(title),
            )
        }
    }
}
