//! The picture of the README: one attention matrix as similarity times magnitude, and times beside
//! PyTorch's.

use super::number::short;
use super::results::{Results, Subject};
use crate::Error;
use bochner_attention::{Mask, Settings, kernels, magnitude::magnitude, weights};
use bochner_datasets::{DataStore, Policy, Protocol, RegressionSet, Rows, load};
use ndarray::{Array2, Array4};
use std::fmt::Write;

/// The bars of the picture: a caption, the work, its shape, and the label of the comparison.
const BARS: [(&str, &str, &[usize], &str); 5] = [
    (
        "squared kernel, T = 2048",
        "ika-ns",
        LONG,
        "best compiled form",
    ),
    (
        "in linear time, T = 16384",
        "ika-ns-linear-time",
        LONGER,
        "best linear form",
    ),
    ("RBF kernel, T = 2048", "rbf-only", LONG, "eager"),
    ("softmax, T = 2048", "softmax", LONG, "SDPA"),
    (
        "graph attention step, Cora",
        "gat",
        CORA,
        "PyTorch Geometric's classic GAT",
    ),
];
const LONG: &[usize] = &[1, 8, 2048, 64, 64, 64];
const LONGER: &[usize] = &[1, 8, 16_384, 64, 64, 16];
const CORA: &[usize] = &[2708, 10_556, 1433, 7];

const MONTHS: usize = 36;
const WINDOW: usize = 4;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 296.0;
/// The side of a matrix.
const SIDE: f64 = 162.0;
const TOP: f64 = 74.0;
const OURS: &str = "#0b5fa5";
const THEIRS: &str = "#b9bec6";

/// Softmax attention of each month to each month, as it is computed and as its two factors.
struct Attention {
    /// $\exp(-|q_i - k_j|^2 / (2 \sqrt d))$
    similarity: Array2<f64>,
    /// $\exp(|k_j|^2 / (2 \sqrt d))$
    magnitude: Vec<f64>,
    weights: Array2<f64>,
}

impl Attention {
    /// Attention to the airline passengers of 1950 to 1952: a month is known by how far it and the
    /// three months before it lie above or below their years.
    fn of_passengers() -> Result<Self, Error> {
        let store = DataStore::new(Policy::Offline);
        let data = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store)?;
        // In thousands, as before the data set was scaled to [-1, 1]; then logarithms.
        let series: Vec<f64> = data
            .target
            .iter()
            .map(|y| (363.0 + 259.0 * y).ln())
            .collect();
        let above = |month: usize| {
            let year = &series[month - 6..month + 6];
            series[month] - year.iter().sum::<f64>() / 12.0
        };
        let x = Array2::from_shape_fn((MONTHS, WINDOW), |(t, n)| 7.0 * above(12 + t - n));
        let heads: Array4<f64> = x.clone().into_shape_with_order((1, 1, MONTHS, WINDOW))?;
        let mask = Mask::none();
        let (softmax, alone) = (Settings::softmax(&mask), kernels::rbf(&mask));
        let of = |settings| -> Result<Array2<f64>, Error> {
            let weights = weights(settings, heads.view(), heads.view())?;
            Ok(weights.into_shape_with_order((MONTHS, MONTHS))?)
        };
        let mut similarity = of(&alone)?;
        // A month is as similar as can be to itself: that is 1 before rows are normalised.
        for (i, mut row) in similarity.rows_mut().into_iter().enumerate() {
            let own = row[i];
            row /= own;
        }
        Ok(Self {
            similarity,
            magnitude: magnitude(x.view(), 2.0)?.mapv(f64::exp).to_vec(),
            weights: of(&softmax)?,
        })
    }
}

/// The picture, as a file.
pub(super) fn svg(results: &Results) -> Result<String, Error> {
    let attention = Attention::of_passengers()?;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"11\" fill=\"#333\">\n\
         <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#fff\" stroke=\"#d0d4da\"/>\n",
        WIDTH - 1.0,
        HEIGHT - 1.0
    );
    let panels = [
        (34.0, "similarity", "exp(−|q − k|² / 2√d)"),
        (230.0, "× magnitude", "exp(|k|² / 2√d)"),
        (426.0, "= attention", "each row divided by its sum"),
    ];
    for (x, title, formula) in panels {
        text(
            &mut svg,
            [x, 36.0],
            "font-size=\"14\" font-weight=\"bold\"",
            title,
        );
        text(&mut svg, [x, 56.0], "fill=\"#667\"", formula);
        years(&mut svg, x);
    }
    matrix(&mut svg, panels[0].0, &attention.similarity);
    columns(&mut svg, panels[1].0, &attention.magnitude);
    matrix(&mut svg, panels[2].0, &attention.weights);
    let turned = format!(
        "text-anchor=\"middle\" fill=\"#667\" transform=\"rotate(-90 24 {})\"",
        TOP + SIDE / 2.0
    );
    text(&mut svg, [24.0, TOP + SIDE / 2.0], &turned, "query");
    let below =
        "Softmax attention of every month to every month of the airline passengers, 1950 to 1952.";
    text(&mut svg, [34.0, HEIGHT - 14.0], "fill=\"#667\"", below);
    bars(&mut svg, 640.0, results)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn text(svg: &mut String, [x, y]: [f64; 2], attributes: &str, content: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" {attributes}>{content}</text>"
    );
}

/// The years below a panel, and its name for the axis of keys.
fn years(svg: &mut String, x: f64) {
    for (i, year) in ["1950", "1951", "1952"].into_iter().enumerate() {
        let at = x + SIDE * (i as f64 + 0.5) / 3.0;
        text(
            svg,
            [at, TOP + SIDE + 15.0],
            "text-anchor=\"middle\" fill=\"#667\"",
            year,
        );
    }
}

/// Numbers as shades, the largest darkest: a path for each shade, a run of cells at a time.
fn matrix(svg: &mut String, x: f64, values: &Array2<f64>) {
    const SHADES: usize = 20;
    let most = values.iter().copied().fold(0.0, f64::max);
    let shade = |value: f64| (SHADES as f64 * value / most).round() as usize;
    let mut paths = vec![String::new(); SHADES + 1];
    for (i, row) in values.rows().into_iter().enumerate() {
        let shades: Vec<usize> = row.iter().map(|&value| shade(value)).collect();
        let mut start = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            let _ = write!(paths[run[0]], "M{start} {i}h{}v1H{start}z", run.len());
            start += run.len();
        }
    }
    let scale = SIDE / values.ncols() as f64;
    let _ = writeln!(
        svg,
        "<g transform=\"translate({x} {TOP}) scale({scale})\" shape-rendering=\"crispEdges\" fill=\"{OURS}\">"
    );
    for (shade, path) in paths
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, path)| !path.is_empty())
    {
        let opacity = shade as f64 / SHADES as f64;
        let _ = writeln!(svg, "<path fill-opacity=\"{opacity}\" d=\"{path}\"/>");
    }
    svg.push_str("</g>\n");
    frame(svg, x);
}

/// Numbers as columns, the largest highest.
fn columns(svg: &mut String, x: f64, values: &[f64]) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let width = SIDE / values.len() as f64;
    let mut path = String::new();
    for (j, value) in values.iter().enumerate() {
        let height = 0.96 * SIDE * value / most;
        let left = x + width * j as f64;
        let _ = write!(
            path,
            "M{left:.2} {:.2}v-{height:.2}h{:.2}v{height:.2}z",
            TOP + SIDE,
            width - 0.8
        );
    }
    let _ = writeln!(svg, "<path fill=\"{OURS}\" d=\"{path}\"/>");
    frame(svg, x);
}

fn frame(svg: &mut String, x: f64) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#c4c9d1\"/>"
    );
}

/// Times of the pass with gradients: PyTorch's as long as there is room, ours in proportion.
fn bars(svg: &mut String, x: f64, results: &Results) -> Result<(), Error> {
    const LENGTH: f64 = 240.0;
    text(
        svg,
        [x, 36.0],
        "font-size=\"14\" font-weight=\"bold\"",
        "time, forward and backward",
    );
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"56\" fill=\"#667\"><tspan fill=\"{OURS}\" font-weight=\"bold\">bochner</tspan> and \
         <tspan font-weight=\"bold\">PyTorch</tspan> on two threads ({}), in ms</text>",
        results.name
    );
    for (i, (name, work, shape, label)) in BARS.into_iter().enumerate() {
        let subject = Subject {
            work: work.to_owned(),
            shape: shape.to_vec(),
            threads: None,
            forced: None,
            retaining: false,
        };
        let rows = results.rows(&subject)?;
        let found = rows.last().and_then(|row| {
            let against = row.against.iter().find(|against| against.label == label)?;
            Some((row.ms, against.ratio?))
        });
        let (ms, ratio) = found.ok_or_else(|| format!("no time of {work} beside {label}"))?;
        let y = TOP + 5.0 + 42.0 * i as f64;
        text(svg, [x, y + 4.0], "", name);
        text(
            svg,
            [x + LENGTH + 46.0, y + 4.0],
            "text-anchor=\"end\" font-weight=\"bold\"",
            &format!("{ratio:.1}×"),
        );
        for (place, colour, length, ms) in [
            (0.0, OURS, LENGTH / ratio, ms),
            (11.0, THEIRS, LENGTH, ms * ratio),
        ] {
            let top = y + 9.0 + place;
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{length:.1}\" height=\"10\" fill=\"{colour}\"/>"
            );
            text(
                svg,
                [x + length + 4.0, top + 9.0],
                "font-size=\"10\"",
                &short(ms),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_similarity_times_magnitude() {
        let Attention {
            similarity,
            magnitude,
            weights,
        } = Attention::of_passengers().unwrap();
        for (similarity, weights) in similarity.rows().into_iter().zip(weights.rows()) {
            let product: Vec<f64> = similarity
                .iter()
                .zip(&magnitude)
                .map(|(s, m)| s * m)
                .collect();
            let sum: f64 = product.iter().sum();
            for (product, weight) in product.iter().zip(weights) {
                assert!((product / sum - weight).abs() < 1e-12);
            }
        }
    }
}
