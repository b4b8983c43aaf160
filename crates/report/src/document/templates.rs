//! The document as Markdown and as one HTML file with styles and pictures inside, which loads nothing from anywhere. Both
//! are written by a template.

use super::Document;
use minijinja::{Environment, Value, context};
use std::fmt::Write;

/// Numbers and names stay in one line, so that columns can be compared. A longer cell is a sentence and is broken, and so is
/// a verdict with its reason.
const LONGEST_IN_A_LINE: usize = 32;

/// Writes the document by one of the two templates.
fn render(name: &str, template: &str, document: &Document) -> String {
    let mut templates = Environment::new();
    templates.set_trim_blocks(true);
    templates.set_lstrip_blocks(true);
    templates.set_keep_trailing_newline(true);
    templates.add_filter("inline", |text: &str| Value::from_safe_string(inline(text)));
    templates.add_filter("prose_columns", prose_columns);
    let style = include_str!("report.css");
    let values = context! { title => document.title, blocks => document.blocks, style };
    let text = templates.render_named_str(name, template, values);
    text.expect("the template fits the document")
}

pub(super) fn html(document: &Document) -> String {
    render("report.html", include_str!("report.html"), document)
}

pub(super) fn markdown(document: &Document) -> String {
    render("report.md", include_str!("report.md"), document)
}

/// Returns for each column whether a cell of it is a sentence.
fn prose_columns(rows: Vec<Vec<String>>) -> Vec<bool> {
    let is_prose = |cell: &String| cell.chars().count() > LONGEST_IN_A_LINE || cell.contains(": ");
    let has_prose = |column: usize| rows.iter().filter_map(|row| row.get(column)).any(is_prose);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..columns).map(has_prose).collect()
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
