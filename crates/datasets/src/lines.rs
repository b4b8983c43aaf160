//! Strict reading of text line by line, with positions for the errors.

use crate::Error;
use std::str;

/// The lines of a file, counted from 1.
pub(crate) struct Lines<'a> {
    file: &'a str,
    rest: &'a [u8],
    number: usize,
    terminated: bool,
}

/// What follows the last line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A line feed.
    LineFeed,
    /// Nothing: the last line is not terminated.
    Bare,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            file,
            rest: bytes,
            number: 0,
            terminated: true,
        }
    }

    /// The next line without its line feed, `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<&'a str>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let feed = self.rest.iter().position(|&byte| byte == b'\n');
        let line = &self.rest[..feed.unwrap_or(self.rest.len())];
        self.rest = &self.rest[feed.map_or(self.rest.len(), |at| at + 1)..];
        self.terminated = feed.is_some();
        let text = self.decode(line)?;
        if text.starts_with('\u{feff}') {
            return Err(self.malformed("text", "a byte-order mark"));
        }
        if text.contains('\r') {
            return Err(self.malformed("lines that end in a line feed", "a carriage return"));
        }
        Ok(Some(text))
    }

    /// The next line, which must be there: `what` says which one it is.
    pub(crate) fn require(&mut self, what: impl FnOnce() -> String) -> Result<&'a str, Error> {
        if let Some(line) = self.next()? {
            return Ok(line);
        }
        self.number += 1;
        Err(self.malformed(what(), "the end of the file"))
    }

    /// Reads the line of column names, which must be exactly `names`.
    pub(crate) fn header(&mut self, names: &str) -> Result<(), Error> {
        let line = self.require(|| "the column names".into())?;
        if line == names {
            return Ok(());
        }
        let same = line.chars().zip(names.chars()).take_while(|(a, b)| a == b);
        let at = same.map(|(a, _)| a.len_utf8()).sum();
        let expected = format!("column names that go on {}", excerpt(&names[at..]));
        let found = format!("{} after {at} bytes", excerpt(&line[at..]));
        Err(self.malformed(expected, found))
    }

    /// Checks that nothing follows and that the last line ended as it should.
    pub(crate) fn finish(mut self, end: End) -> Result<(), Error> {
        if let Some(line) = self.next()? {
            return Err(self.malformed("the end of the file", excerpt(line)));
        }
        match (end, self.terminated) {
            (End::LineFeed, false) => Err(self.malformed("a line feed", "the end of the file")),
            (End::Bare, true) => Err(self.malformed("the end of the file", "a line feed")),
            _ => Ok(()),
        }
    }

    /// An error at the line read last.
    pub(crate) fn malformed(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::Malformed {
            file: self.file.to_owned(),
            line: self.number,
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn decode(&self, line: &'a [u8]) -> Result<&'a str, Error> {
        str::from_utf8(line).map_err(|error| Error::Encoding {
            file: self.file.to_owned(),
            line: self.number,
            column: error.valid_up_to() + 1,
            byte: line[error.valid_up_to()],
        })
    }
}

/// The beginning of a text, quoted, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LENGTH: usize = 60;
    let head: String = text.chars().take(LENGTH).collect();
    let more = if head.len() < text.len() { "..." } else { "" };
    format!("{head:?}{more}")
}

/// A finite number in decimal notation.
pub(crate) fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second_line(bytes: &[u8]) -> Result<Option<&str>, Error> {
        let mut lines = Lines::new("f", bytes);
        lines.next()?;
        lines.next()
    }

    #[test]
    fn positions_are_counted_from_1() {
        let error = second_line(b"fine\nab\xf0c\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "f, line 2: byte 3 (0xf0) is not UTF-8; the file must be text"
        );
        let error = second_line(b"fine\nab\r\n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("f, line 2: expected lines that end in a line feed")
        );
        assert!(second_line("\u{feff}a\nb\n".as_bytes()).is_err());
        assert_eq!(second_line(b"a\n").unwrap(), None);
        assert_eq!(second_line(b"a\nb").unwrap(), Some("b"));
    }

    #[test]
    fn ends_are_told_apart() {
        let finish = |bytes: &'static [u8], end| {
            let mut lines = Lines::new("f", bytes);
            lines.require(|| "a line".into()).unwrap();
            lines.finish(end).is_ok()
        };
        assert!(finish(b"a\n", End::LineFeed) && finish(b"a", End::Bare));
        assert!(!finish(b"a\n", End::Bare) && !finish(b"a", End::LineFeed));
        assert!(!finish(b"a\n\n", End::LineFeed) && !finish(b"a\nb\n", End::LineFeed));
    }

    #[test]
    fn wrong_column_names_are_shown_from_where_they_differ() {
        let header = |bytes: &'static [u8]| Lines::new("f", bytes).header("a,bc");
        assert!(header(b"a,bc\n").is_ok());
        assert_eq!(
            header(b"a,bd\n").unwrap_err().to_string(),
            r#"f, line 1: expected column names that go on "c", found "d" after 3 bytes"#
        );
        assert!(header(b"a,b\n").is_err() && header(b"a,bcd\n").is_err() && header(b"").is_err());
    }

    #[test]
    fn only_finite_decimals_are_numbers() {
        assert_eq!(number("3.38e-005"), Some(3.38e-5));
        for cell in [
            "",
            "nan",
            "NaN",
            "inf",
            "-infinity",
            "1e999",
            "0x1",
            "1,0",
            " 1",
            "1 ",
        ] {
            assert_eq!(number(cell), None, "{cell}");
        }
    }

    #[test]
    fn excerpts_are_short_and_quoted() {
        assert_eq!(excerpt("a\t"), r#""a\t""#);
        assert!(excerpt(&"ä".repeat(500)).chars().count() < 70);
    }
}
