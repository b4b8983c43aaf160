//! The lines of a text.

use crate::Error;
use std::fmt;

/// The lines of a UTF-8 text, split at `\n` alone.
///
/// Other characters that some readers take for line breaks (U+0085, U+2028, `\r`) stay in their line, so
/// that the two sides of a parallel corpus keep the same number of lines. A byte order mark before the first line is
/// left out. The name of the text, `file`, is only for messages.
///
/// ```
/// let lines = bochner_text::lines("de.txt", "\u{feff}ein Mann\u{85}\nzwei Hunde\n".as_bytes())?;
/// assert_eq!(lines, ["ein Mann\u{85}", "zwei Hunde"]);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyText`] without a character; those of [`utf8`].
pub fn lines<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<&'a str>, Error> {
    let text = utf8(file, bytes)?;
    if text.is_empty() {
        return Err(Error::EmptyText {
            file: file.to_owned(),
        });
    }
    Ok(text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect())
}

/// The text of a UTF-8 file, without its byte order mark. The name of the file is only for messages.
///
/// # Errors
/// [`Error::InvalidUtf8`] with the place of the first byte that is not UTF-8, or is zero: text in UTF-16 is full of zeros.
pub fn utf8<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Error> {
    let (text, end) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, bytes.len()),
        Err(error) => ("", error.valid_up_to()),
    };
    let zero = bytes[..end].iter().position(|&byte| byte == 0);
    let wrong = zero.or((end < bytes.len()).then_some(end));
    let Some(wrong) = wrong else {
        return Ok(text.strip_prefix('\u{feff}').unwrap_or(text));
    };
    let before = &bytes[..wrong];
    let start = before.iter().rposition(|&byte| byte == b'\n');
    Err(Error::InvalidUtf8 {
        file: file.to_owned(),
        line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
        column: wrong - start.map_or(0, |at| at + 1) + 1,
        likely: Encoding::guess(bytes, wrong),
    })
}

/// The bytes of a text in any encoding without the byte order mark of UTF-8.
pub fn strip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Whether a line has nothing but white space and characters without width, such as U+200B and U+FEFF.
///
/// ```
/// use bochner_text::is_blank;
///
/// assert!(["", " \t", "\u{200b}", "\u{feff} "].into_iter().all(is_blank));
/// assert!(!is_blank("\u{200b}a"));
/// ```
pub fn is_blank(line: &str) -> bool {
    let is_invisible = |c| matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    line.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// The likely encoding of a text that is not UTF-8. Displayed as the name and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16: the text has zero bytes, or begins with a byte order mark of UTF-16.
    Utf16,
    /// Latin-1 or another encoding with one byte a character: the first byte beyond ASCII is no UTF-8.
    Latin1,
    /// UTF-8 that was damaged: there are characters beyond ASCII before the first wrong byte.
    DamagedUtf8,
}

impl Encoding {
    fn guess(bytes: &[u8], wrong: usize) -> Self {
        let marks: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
        if bytes.contains(&0) || marks.iter().any(|mark| bytes.starts_with(mark)) {
            Self::Utf16
        } else if bytes[..wrong].is_ascii() {
            Self::Latin1
        } else {
            Self::DamagedUtf8
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf16 => {
                "UTF-16: convert it to UTF-8, as with `iconv --from-code UTF-16 --to-code UTF-8`"
            }
            Self::Latin1 => {
                "Latin-1: convert it to UTF-8, as with `iconv --from-code ISO-8859-1 --to-code UTF-8`, or read it as \
                 bytes, which `clean_str` takes"
            }
            Self::DamagedUtf8 => "UTF-8 that was damaged: correct the line, or get the file again",
        })
    }
}
