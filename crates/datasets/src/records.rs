//! Records of cells between delimiters, with the lines that they begin on.

use crate::Error;
use csv::{ReaderBuilder, StringRecord, Terminator};
use serde::{Deserialize, Serialize};

/// The character between the cells of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delimiter {
    /// A comma. A cell in double quotes may hold commas and line breaks.
    #[default]
    Comma,
    /// A semicolon, with quotes as for commas.
    Semicolon,
    /// A tab. Quotes are part of the text.
    Tab,
    /// Runs of spaces and tabs. No cell is empty, and quotes are part of the text.
    Spaces,
}

/// A record.
pub(crate) struct Record {
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// Its cells, without white space at their ends.
    pub(crate) cells: Vec<String>,
}

/// The records of a text behind its first `skip` lines, which all have the same number of cells.
///
/// # Errors
/// [`Error::Malformed`] for a blank line that is not at the end, another number of cells than the first record has, and
/// quotes over several lines that are not closed.
pub(crate) fn records(
    file: &str,
    text: &str,
    skip: usize,
    delimiter: Delimiter,
) -> Result<Vec<Record>, Error> {
    let malformed = |line: usize, expected: String, found: String| Error::Malformed {
        file: file.to_owned(),
        line,
        expected,
        found,
    };
    // The skipped lines end behind a line break.
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let start = std::iter::once(0).chain(ends).nth(skip);
    let text = text[start.unwrap_or(text.len())..].trim_end_matches(['\r', '\n']);
    let mut records: Vec<Record> = Vec::new();
    let mut push = |line: usize, cells: Vec<String>| {
        let width = records
            .first()
            .map_or(cells.len(), |first| first.cells.len());
        if cells.len() != width {
            let found = format!("{} cells", cells.len());
            return Err(malformed(line, format!("{width} cells"), found));
        }
        records.push(Record { line, cells });
        Ok(())
    };
    let blank = |line| malformed(line, "a row".to_owned(), "a blank line".to_owned());
    let byte = match delimiter {
        Delimiter::Comma => b',',
        Delimiter::Semicolon => b';',
        Delimiter::Tab => b'\t',
        Delimiter::Spaces => {
            for (at, line) in text.lines().enumerate() {
                let cells: Vec<_> = line.split_ascii_whitespace().map(str::to_owned).collect();
                if cells.is_empty() {
                    return Err(blank(skip + at + 1));
                }
                push(skip + at + 1, cells)?;
            }
            return Ok(records);
        }
    };
    let mut reader = ReaderBuilder::new()
        .delimiter(byte)
        .quoting(delimiter != Delimiter::Tab)
        // A carriage return is white space at the end of a cell, and none ends a row.
        .terminator(Terminator::Any(b'\n'))
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let (mut line, mut counted) = (skip + 1, 0);
    let mut record = StringRecord::new();
    loop {
        // The reader passes over blank lines.
        let next = reader.position().byte() as usize;
        line += newlines(&text[counted..next]);
        counted = next;
        let rest = &text[next..];
        if rest.lines().next().is_some_and(|next| next.is_empty()) {
            return Err(blank(line));
        }
        let read = reader.read_record(&mut record);
        if !read.expect("cells of a text in memory are UTF-8") {
            return Ok(records);
        }
        let raw = &text[next..reader.position().byte() as usize];
        let is_open = raw.contains('\n') && raw.matches('"').count() % 2 == 1;
        if delimiter != Delimiter::Tab && next + raw.len() == text.len() && is_open {
            let found = "the end of the file inside quotes".to_owned();
            return Err(malformed(line, "a closing quote".to_owned(), found));
        }
        push(
            line,
            record.iter().map(|cell| cell.trim().to_owned()).collect(),
        )?;
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}
