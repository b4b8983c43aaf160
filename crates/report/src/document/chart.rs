//! Lines and dots over two axes, as SVG.

use super::number::short;
use super::templates::escape;
use std::fmt::Write;

/// Told apart also by people who do not tell red from green (Okabe and Ito 2008).
const COLOURS: [&str; 10] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#777777",
    "#7b3fbf", "#b8b800",
];

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const BOTTOM: f64 = 40.0;
const LEGEND: f64 = 26.0;
const LEGEND_LINE: f64 = 16.0;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
}

/// An axis and its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Equal steps.
    Linear(String),
    /// Equal factors; values that are not positive are left out.
    Log(String),
}

/// Points of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The marks.
    pub marks: Marks,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// The marks of points.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// Joined by a line, in their order.
    Line,
    /// Dots joined by a line, each with a bar that reaches so far up and down.
    Errors(Vec<f64>),
    /// Dots that no line joins.
    Dots,
}

impl From<&str> for Axis {
    /// Equal steps.
    fn from(name: &str) -> Self {
        Self::Linear(name.to_owned())
    }
}

impl Axis {
    fn name(&self) -> &str {
        match self {
            Self::Linear(name) | Self::Log(name) => name,
        }
    }

    /// The value on a scale of equal steps.
    fn place(&self, value: f64) -> Option<f64> {
        match self {
            Self::Linear(_) => Some(value),
            Self::Log(_) => (value > 0.0).then(|| value.log10()),
        }
        .filter(|place| place.is_finite())
    }

    /// The places of the lines across the chart, with their labels.
    fn ticks(&self, range: Range) -> Vec<(f64, String)> {
        match self {
            Self::Linear(_) => range.ticks().into_iter().map(|t| (t, short(t))).collect(),
            Self::Log(_) => range.powers(),
        }
    }
}

impl Chart {
    /// Width and height of every chart.
    pub(super) const SIZE: [f64; 2] = [WIDTH, HEIGHT];

    /// The chart as an SVG element.
    pub fn to_svg(&self) -> String {
        let series: Vec<Vec<(f64, f64)>> = self.series.iter().map(|s| self.places(s)).collect();
        let x = Range::of(series.iter().flatten().map(|point| point.0));
        let y = series.iter().flatten().map(|point| point.1);
        let y = Range::of(y.chain(self.ends()));
        let legend = self.legend();
        let frame = Frame {
            x,
            y,
            top: LEGEND + LEGEND_LINE * (legend.lines + 1) as f64,
        };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">\
             <text x=\"4\" y=\"16\" class=\"title\">{}</text>{}",
            escape(&self.title),
            legend.svg
        );
        self.axes(&mut svg, &frame);
        for (i, (series, points)) in self.series.iter().zip(&series).enumerate() {
            self.draw(&mut svg, &frame, series, points, i);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw(
        &self,
        svg: &mut String,
        frame: &Frame,
        series: &Series,
        points: &[(f64, f64)],
        number: usize,
    ) {
        match &series.marks {
            Marks::Line => line(svg, frame, points, number),
            Marks::Dots => dots(svg, frame, points, number),
            Marks::Errors(errors) => {
                for (&(x, y), error) in series.points.iter().zip(errors) {
                    let ends = [y - error, y + error].map(|end| self.y.place(end));
                    if let (Some(x), [Some(low), Some(high)]) = (self.x.place(x), ends) {
                        line(svg, frame, &[(x, low), (x, high)], number);
                    }
                }
                line(svg, frame, points, number);
                dots(svg, frame, points, number);
            }
        }
    }

    /// The ends of the bars of all series.
    fn ends(&self) -> impl Iterator<Item = f64> + '_ {
        self.series.iter().flat_map(|series| {
            let errors = match &series.marks {
                Marks::Errors(errors) => &errors[..],
                Marks::Line | Marks::Dots => &[],
            };
            let bars = series.points.iter().zip(errors);
            bars.flat_map(|(&(_, y), error)| [y - error, y + error].map(|end| self.y.place(end)))
                .flatten()
        })
    }

    fn places(&self, series: &Series) -> Vec<(f64, f64)> {
        let points = series.points.iter();
        points
            .filter_map(|&(x, y)| Some((self.x.place(x)?, self.y.place(y)?)))
            .collect()
    }

    fn axes(&self, svg: &mut String, frame: &Frame) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (tick, label) in self.y.ticks(frame.y) {
            let at = frame.y(tick);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 4.0,
            );
        }
        for (tick, label) in self.x.ticks(frame.x) {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                frame.x(tick),
                bottom + 16.0,
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <text x=\"4\" y=\"{}\">{}</text>",
            HEIGHT - 6.0,
            escape(self.x.name()),
            frame.top - 8.0,
            escape(self.y.name()),
        );
    }

    /// Names in their colours, in as many lines as they need; a series alone may have none.
    fn legend(&self) -> Legend {
        let (mut x, mut lines, mut svg) = (4.0, 1, String::new());
        let named = self.series.iter().enumerate();
        for (i, series) in named.filter(|(_, series)| !series.name.is_empty()) {
            let width = 24.0 + 6.4 * series.name.chars().count() as f64;
            if x > 4.0 && x + width > WIDTH - RIGHT {
                (x, lines) = (4.0, lines + 1);
            }
            let y = LEGEND + LEGEND_LINE * (lines - 1) as f64;
            let _ = write!(
                svg,
                "<rect x=\"{x:.0}\" y=\"{y}\" width=\"10\" height=\"10\" {}/>\
                 <text x=\"{:.0}\" y=\"{}\">{}</text>",
                filled(i),
                x + 14.0,
                y + 9.0,
                escape(&series.name)
            );
            x += width;
        }
        Legend { lines, svg }
    }
}

struct Legend {
    lines: usize,
    svg: String,
}

/// The stroke of a series: dashed once the colours are used up.
fn drawn(series: usize) -> String {
    let colour = COLOURS[series % COLOURS.len()];
    match series < COLOURS.len() {
        true => format!("stroke=\"{colour}\""),
        false => format!("stroke=\"{colour}\" stroke-dasharray=\"5 3\""),
    }
}

/// The filling of the marks of a series: hollow once the colours are used up.
fn filled(series: usize) -> String {
    let colour = COLOURS[series % COLOURS.len()];
    match series < COLOURS.len() {
        true => format!("fill=\"{colour}\""),
        false => format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\""),
    }
}

fn line(svg: &mut String, frame: &Frame, points: &[(f64, f64)], series: usize) {
    let path: Vec<String> = points
        .iter()
        .map(|&(x, y)| format!("{:.1},{:.1}", frame.x(x), frame.y(y)))
        .collect();
    let _ = write!(
        svg,
        "<polyline class=\"line\" {} points=\"{}\"/>",
        drawn(series),
        path.join(" ")
    );
}

fn dots(svg: &mut String, frame: &Frame, points: &[(f64, f64)], series: usize) {
    let filled = filled(series);
    for &(x, y) in points {
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" {filled}/>",
            frame.x(x),
            frame.y(y)
        );
    }
}

struct Frame {
    x: Range,
    y: Range,
    top: f64,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - self.top - BOTTOM)
    }
}

/// The values that an axis spans.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// From the smallest to the largest value, never empty.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return Self {
                low: 0.0,
                high: 1.0,
            };
        }
        let room = if high > low {
            0.02 * (high - low)
        } else {
            low.abs().max(1.0) * 0.1
        };
        Self {
            low: low - room,
            high: high + room,
        }
    }

    fn share(self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// Round numbers inside the range: steps of 1, 2 or 5 times a power of ten.
    fn ticks(self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

impl Range {
    /// Powers of ten inside a range of logarithms, with their doubles and halves where there are
    /// few of them.
    fn powers(self) -> Vec<(f64, String)> {
        let factors: &[f64] = match self.high - self.low {
            decades if decades < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let values = decades.flat_map(|d| factors.iter().map(move |f| f * 10f64.powi(d)));
        values
            .map(|value| (value.log10(), short(value)))
            .filter(|(place, _)| (self.low..=self.high).contains(place))
            .collect()
    }
}
