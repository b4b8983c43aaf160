//! The document as one HTML file: styles and pictures inside, nothing loaded from anywhere.

use super::{Block, Document, Picture, svg};
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");

/// Numbers and names stay in one line, so that columns can be compared. A longer cell is a sentence and is broken, and so is
/// a verdict with its reason.
const LONGEST_IN_A_LINE: usize = 32;

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
            caption, pictures, ..
        }
        | Block::Pictures { caption, pictures } => {
            html.push_str(&figure(caption, pictures));
        }
    }
}

fn figure(caption: &str, pictures: &[Picture]) -> String {
    let inside: String = pictures.iter().map(svg::element).collect();
    let caption = wrapped("figcaption", &inline(caption));
    wrapped(
        "figure",
        &format!("{caption}<div class=\"row\">{inside}</div>"),
    )
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let head: String = head
        .iter()
        .map(|cell| wrapped("th", &inline(cell)))
        .collect();
    let is_prose = |cell: &String| cell.chars().count() > LONGEST_IN_A_LINE || cell.contains(": ");
    let has_prose = |column: usize| rows.iter().filter_map(|row| row.get(column)).any(is_prose);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let tags: Vec<&str> = (0..columns)
        .map(|column| match has_prose(column) {
            true => "<td class=\"prose\">",
            false => "<td>",
        })
        .collect();
    let cell = |(cell, tag): (&String, &&str)| format!("{tag}{}</td>", inline(cell));
    let body: String = rows
        .iter()
        .map(|row| wrapped("tr", &row.iter().zip(&tags).map(cell).collect::<String>()))
        .collect();
    format!(
        "<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
}

fn wrapped(tag: &str, inside: &str) -> String {
    format!("<{tag}>{inside}</{tag}>")
}

/// Escapes text and turns back quotes into code, double asterisks into bold, single ones around words into emphasis.
fn inline(text: &str) -> String {
    let code = toggled(&escape(text), "`", "code");
    emphasised(&toggled(&code, "**", "strong"))
}

/// Emphasises what stands between an asterisk before a letter and the next one behind a letter: not a product.
fn emphasised(text: &str) -> String {
    let is_letter = |c: char| c.is_alphabetic();
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('*') {
        html.push_str(before);
        match behind.split_once('*') {
            Some((word, after)) if word.starts_with(is_letter) && word.ends_with(is_letter) => {
                let _ = write!(html, "<em>{word}</em>");
                rest = after;
            }
            _ => {
                html.push('*');
                rest = behind;
            }
        }
    }
    html + rest
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
    use super::super::{Axis, Chart, Colours, Document, Marks, Matrix, Picture, Series};

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
                Picture::Matrix(Matrix {
                    title: "heads".into(),
                    names: vec![],
                    side: 2,
                    values: vec![1.0, -0.5, -0.5, 1.0],
                    colours: Colours::Signed,
                }),
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

    #[test]
    fn single_asterisks_emphasise_words_and_not_products() {
        let mut document = Document::new("a");
        document.text("*By weight* is 2 * 3 * x, and **bold**, *partly*");
        let html = document.to_html();
        let want = "<em>By weight</em> is 2 * 3 * x, and <strong>bold</strong>, <em>partly</em>";
        assert!(html.contains(want), "{html}");
    }

    #[test]
    fn sentences_in_tables_are_broken_and_numbers_are_not() {
        let mut document = Document::new("a");
        let claim = "the mean error is below the Transformer's for every p";
        let row = |claim: &str| vec![claim.to_owned(), "+0.46 ± 0.05".to_owned()];
        document.table(&["claim", "d"], vec![row("short"), row(claim)]);
        let html = document.to_html();
        for cell in ["short", claim] {
            assert!(html.contains(&format!("<td class=\"prose\">{cell}</td><td>+0.46")));
        }
    }
}
