//! Small matrices with numbers, as SVG.

use super::templates::escape;
use std::fmt::Write;

/// Width and height of a cell.
const CELL: f64 = 30.0;

/// Above the matrix, for its title.
const TITLE: f64 = 24.0;

/// Width of a letter of a title, and of a name.
const LETTERS: [f64; 2] = [7.2, 6.0];

/// A small matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The title.
    pub title: String,
    /// The names of both rows and columns; empty where they have none.
    pub names: Vec<String>,
    /// Rows and columns.
    pub side: usize,
    /// The cells, row by row.
    pub values: Vec<f32>,
    /// The colours of the values.
    pub colours: Colours,
}

/// The colours of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Blue for -1, white for 0, red for 1.
    Signed,
    /// White for 0, blue for the largest.
    Shares,
}

impl Matrix {
    /// Width and height.
    pub(super) fn size(&self) -> [f64; 2] {
        let title = LETTERS[0] * self.title.chars().count() as f64;
        let [width, height] =
            [0.0, TITLE].map(|above| above + self.names_take() + self.cells_take());
        [width.max(title), height].map(f64::ceil)
    }

    fn cells_take(&self) -> f64 {
        CELL * self.side as f64
    }

    /// The space of the names beside and above the cells.
    fn names_take(&self) -> f64 {
        let longest = self.names.iter().map(|name| name.chars().count()).max();
        longest.map_or(0.0, |letters| 8.0 + LETTERS[1] * letters as f64)
    }

    /// The matrix as an SVG element.
    pub fn to_svg(&self) -> String {
        let [width, height] = self.size();
        let (left, top) = (self.names_take(), TITLE + self.names_take());
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\
             <text x=\"0\" y=\"14\" class=\"title\">{}</text>",
            escape(&self.title)
        );
        for (place, name) in self.names.iter().enumerate() {
            let (name, middle) = (escape(name), (place as f64 + 0.5) * CELL + 4.0);
            let (x, y) = (left + middle, top + middle);
            let (beside, above) = (left - 6.0, top - 6.0);
            let _ = write!(
                svg,
                "<text x=\"{beside}\" y=\"{y}\" text-anchor=\"end\">{name}</text>\
                 <text transform=\"translate({x} {above}) rotate(-90)\">{name}</text>",
            );
        }
        for (place, &value) in self.values.iter().enumerate() {
            let cell = |place: usize| place as f64 * CELL;
            let (x, y) = (
                left + cell(place % self.side),
                top + cell(place / self.side),
            );
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"{}\" class=\"cell\">{value:.2}</text>",
                self.colour(value),
                x + CELL / 2.0,
                y + CELL / 2.0 + 3.0,
            );
        }
        svg.push_str("</svg>");
        svg
    }

    fn colour(&self, value: f32) -> String {
        let largest = match self.colours {
            Colours::Signed => 1.0,
            // Numbers stay readable on the darkest cell.
            Colours::Shares => {
                1.8 * self
                    .values
                    .iter()
                    .copied()
                    .fold(f32::MIN_POSITIVE, f32::max)
            }
        };
        let fade = (255.0 * (1.0 - (value / largest).abs().min(1.0))).round();
        match value < 0.0 || self.colours == Colours::Shares {
            true => format!("rgb({fade},{fade},255)"),
            false => format!("rgb(255,{fade},{fade})"),
        }
    }
}
