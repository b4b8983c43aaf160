//! The lines of a text.

use crate::Error;

/// The lines of a UTF-8 text, split at `\n` alone.
///
/// Other characters that some readers take for line breaks (U+0085, U+2028, `\r`) stay in their line, so
/// that the two sides of a parallel corpus keep the same number of lines. The name of the text, `file`,
/// is only for messages.
///
/// ```
/// let lines = bochner_text::lines("de.txt", "ein Mann\u{85}\nzwei Hunde\n".as_bytes())?;
/// assert_eq!(lines, ["ein Mann\u{85}", "zwei Hunde"]);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyText`] without a byte; [`Error::InvalidUtf8`], with the place of the first wrong byte.
pub fn lines<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<&'a str>, Error> {
    if bytes.is_empty() {
        return Err(Error::EmptyText {
            file: file.to_owned(),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let start = before.iter().rposition(|&byte| byte == b'\n');
        Error::InvalidUtf8 {
            file: file.to_owned(),
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: before.len() - start.map_or(0, |at| at + 1) + 1,
        }
    })?;
    Ok(text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_byte_is_named_by_line_and_column() {
        let wrong = lines("x", b"fine\n\nab\xffc\n\xfe").unwrap_err();
        let expected = Error::InvalidUtf8 {
            file: "x".into(),
            line: 3,
            column: 3,
        };
        assert_eq!(wrong, expected);
        assert_eq!(
            wrong.to_string(),
            "x, line 3: byte 3 is not valid UTF-8; convert the file, or read it as bytes, which `clean_str` takes"
        );
        assert!(matches!(
            lines("x", b"\xc3"),
            Err(Error::InvalidUtf8 {
                line: 1,
                column: 1,
                ..
            })
        ));
    }

    #[test]
    fn only_a_final_newline_ends_the_text() {
        assert_eq!(lines("x", b"\n").unwrap(), [""]);
        assert_eq!(lines("x", b"a\n\n").unwrap(), ["a", ""]);
        assert_eq!(lines("x", b"a\r\nb").unwrap(), ["a\r", "b"]);
        let empty = lines("x", b"").unwrap_err();
        assert!(matches!(empty, Error::EmptyText { .. }));
        let remedy = "x is empty: check that it was written or downloaded completely";
        assert_eq!(empty.to_string(), remedy);
    }
}
