//! Reading text line by line, with positions for the errors.

use crate::Error;
use bochner_text::lines::utf8;

/// Parses each line after the first `skip` lines; `expected` describes a line for the error.
///
/// # Errors
/// [`Error::Malformed`] for the first line that `parse` refuses; [`Error::Text`] for bytes that are not UTF-8.
pub(crate) fn parse<T>(
    file: &str,
    bytes: &[u8],
    skip: usize,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let lines = utf8(file, bytes)?.lines().enumerate().skip(skip);
    let malformed = |(i, line): (usize, &str)| Error::Malformed {
        file: file.to_owned(),
        line: i + 1,
        expected: expected.to_owned(),
        found: excerpt(line),
    };
    lines
        .map(|at| parse(at.1).ok_or_else(|| malformed(at)))
        .collect()
}

/// The beginning of a text, quoted, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LENGTH: usize = 60;
    let head: String = text.chars().take(LENGTH).collect();
    let more = if head.len() < text.len() { "..." } else { "" };
    format!("{head:?}{more}")
}

/// Finite numbers between spaces.
pub(crate) fn numbers(line: &str) -> Option<Vec<f64>> {
    line.split_ascii_whitespace().map(number).collect()
}

/// A finite number.
pub(crate) fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let numbers = |bytes: &[u8]| parse("f", bytes, 1, "numbers", numbers);
        assert_eq!(
            numbers(b"\xef\xbb\xbfa b\n1 2\n  3.38e-005 -4 ").unwrap(),
            [[1.0, 2.0], [3.38e-5, -4.0]]
        );
        assert!(numbers(b"").unwrap().is_empty());
        for (bytes, wanted) in [
            (
                &b"a\n1\nb 2\n"[..],
                r#"f, line 3: expected numbers, found "b 2""#,
            ),
            (b"a\nnan\n", r#"f, line 2: expected numbers, found "nan""#),
            (
                b"a\n1e999\n",
                r#"f, line 2: expected numbers, found "1e999""#,
            ),
        ] {
            let remedy = "; replace the file, or correct the line";
            let said = numbers(bytes).unwrap_err().to_string();
            assert_eq!(said, [wanted, remedy].concat());
        }
        assert!(excerpt(&"ä".repeat(500)).chars().count() < 70);
    }
}
