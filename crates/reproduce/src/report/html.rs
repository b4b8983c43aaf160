//! The document as one HTML file: styles and pictures inside, nothing loaded from anywhere.

use super::{Block, Document, Picture, png};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");

/// The styles of a chart outside of a page, readable on light and dark ground.
const SVG_STYLE: &str = "text{font:11px sans-serif;fill:#888}.title{font-size:13px}.grid{stroke:#8884}\
                         .line{fill:none;stroke-width:1.5}";

pub(super) fn render(document: &Document) -> String {
    let title = escape(&document.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    html.push_str(&contents(document));
    let mut headings = 0..;
    for part in &document.blocks {
        match (part, &mut headings) {
            (Block::Heading(text), headings) => {
                let place = headings.next().unwrap_or(0);
                let _ = write!(html, "<h2 id=\"part-{place}\">{}</h2>", inline(text));
            }
            (part, _) => block(&mut html, part),
        }
        html.push('\n');
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// Links to the headings.
fn contents(document: &Document) -> String {
    let headings = document.blocks.iter().filter_map(|part| match part {
        Block::Heading(text) => Some(inline(text)),
        _ => None,
    });
    let link = |(place, text): (usize, String)| {
        wrapped("li", &format!("<a href=\"#part-{place}\">{text}</a>"))
    };
    let links: String = headings.enumerate().map(link).collect();
    format!("<nav><ul>{links}</ul></nav>\n")
}

fn block(html: &mut String, part: &Block) {
    match part {
        // The page writes headings, which it links to.
        Block::Heading(_) => {}
        Block::Text(text) => html.push_str(&wrapped("p", &inline(text))),
        Block::List(points) => {
            let items: String = points.iter().map(|p| wrapped("li", &inline(p))).collect();
            html.push_str(&wrapped("ul", &items));
        }
        Block::Table { head, rows } => html.push_str(&table(head, rows)),
        Block::Figure {
            caption, picture, ..
        } => {
            let caption = wrapped("figcaption", &inline(caption));
            html.push_str(&wrapped(
                "figure",
                &format!("{}{caption}", self::picture(picture)),
            ));
        }
        Block::Pictures { caption, pictures } => {
            let inside: String = pictures.iter().map(picture).collect();
            let caption = wrapped("figcaption", &inline(caption));
            html.push_str(&wrapped(
                "figure",
                &format!("{caption}<div class=\"row\">{inside}</div>"),
            ));
        }
    }
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let head: String = head
        .iter()
        .map(|cell| wrapped("th", &inline(cell)))
        .collect();
    let body: String = rows
        .iter()
        .map(|row| {
            let cells: String = row
                .iter()
                .map(|cell| wrapped("td", &inline(cell)))
                .collect();
            wrapped("tr", &cells)
        })
        .collect();
    format!(
        "<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
}

fn picture(picture: &Picture) -> String {
    match picture {
        Picture::Chart(chart) => chart.to_svg(),
        Picture::Shades {
            title,
            side,
            levels,
        } => format!(
            "<div class=\"tile\"><img alt=\"{0}\" src=\"data:image/png;base64,{1}\">\
             <span>{0}</span></div>",
            escape(title),
            BASE64_STANDARD.encode(png::shades(*side, levels).expect("one level a cell")),
        ),
        Picture::Correlation {
            title,
            side,
            values,
        } => correlation(title, *side, values),
    }
}

/// A picture as an SVG file that carries its own styles; `None` if it is no drawing.
pub(super) fn svg_file(picture: &Picture) -> Option<String> {
    let Picture::Chart(chart) = picture else {
        return None;
    };
    let svg = chart.to_svg();
    let (start, rest) = svg.split_once('>')?;
    Some(format!(
        "{start} xmlns=\"http://www.w3.org/2000/svg\"><style>{SVG_STYLE}</style>{rest}\n"
    ))
}

/// Blue for -1, white for 0, red for 1.
fn correlation(title: &str, side: usize, values: &[f32]) -> String {
    let cell = 30;
    let size = cell * side;
    let mut svg = format!("<svg viewBox=\"0 0 {size} {size}\" width=\"{size}\" role=\"img\">");
    for (place, &value) in values.iter().enumerate() {
        let (x, y) = (place % side * cell, place / side * cell);
        let fade = (255.0 * (1.0 - value.abs().min(1.0))).round();
        let colour = if value < 0.0 {
            format!("rgb({fade},{fade},255)")
        } else {
            format!("rgb(255,{fade},{fade})")
        };
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{cell}\" height=\"{cell}\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\" class=\"cell\">{value:.2}</text>",
            x + cell / 2,
            y + cell / 2 + 3,
        );
    }
    let title = escape(title);
    format!("<div class=\"tile\">{svg}</svg><span>{title}</span></div>")
}

fn wrapped(tag: &str, inside: &str) -> String {
    format!("<{tag}>{inside}</{tag}>")
}

/// Escapes text and turns back quotes into code, double asterisks into bold.
fn inline(text: &str) -> String {
    let code = toggled(&escape(text), "`", "code");
    toggled(&code, "**", "strong")
}

fn toggled(text: &str, mark: &str, tag: &str) -> String {
    let mut parts = text.split(mark);
    let mut html = parts.next().unwrap_or_default().to_owned();
    let mut inside = false;
    for part in parts {
        inside = !inside;
        let slash = if inside { "" } else { "/" };
        let _ = write!(html, "<{slash}{tag}>{part}");
    }
    html
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Chart, Document, Marks, Picture, Series};

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let mut document = Document::new("A < B");
        document.heading("First");
        document.text("run `cargo` & **wait**");
        document.pictures(
            "all",
            vec![
                Picture::Shades {
                    title: "head 1".into(),
                    side: 2,
                    levels: vec![0, 128, 255, 64],
                },
                Picture::Correlation {
                    title: "heads".into(),
                    side: 2,
                    values: vec![1.0, -0.5, -0.5, 1.0],
                },
                Picture::Chart(Chart {
                    title: "loss".into(),
                    x: "epoch".into(),
                    y: Axis::Log("loss".into()),
                    series: vec![Series {
                        name: "MIKAN".into(),
                        marks: Marks::Line,
                        points: vec![(1.0, 1.0), (2.0, 0.1)],
                    }],
                }),
            ],
        );
        let html = document.to_html();
        assert!(html.contains("<p>run <code>cargo</code> &amp; <strong>wait</strong></p>"));
        assert!(html.contains("A &lt; B") && html.contains("data:image/png;base64,"));
        assert!(html.contains("-0.50") && html.contains("<svg"));
        assert!(
            html.contains("<a href=\"#part-0\">First") && html.contains("<h2 id=\"part-0\">First")
        );
        for outside in ["http://", "https://", "src=\"/", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
