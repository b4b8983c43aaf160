//! Lines of the bytes of a file.

use bochner_text::{Encoding, Error, lines};

#[test]
fn the_first_wrong_byte_is_named_by_line_and_column() {
    let wrong = lines("x", b"fine\n\nab\xffc\n\xfe").unwrap_err();
    let expected = Error::InvalidUtf8 {
        file: "x".into(),
        line: 3,
        column: 3,
        likely: Encoding::Latin1,
    };
    assert_eq!(wrong, expected);
    assert_eq!(
        wrong.to_string(),
        "x, line 3: byte 3 is not UTF-8. The text looks like Latin-1: convert it to UTF-8, as with `iconv --from-code \
         ISO-8859-1 --to-code UTF-8`, or read it as bytes, which `clean_str` takes"
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
fn the_likely_encoding_is_named() {
    let likely = |bytes: &[u8]| match lines("x", bytes) {
        Err(Error::InvalidUtf8 {
            line: 1, likely, ..
        }) => likely,
        other => panic!("{other:?}"),
    };
    assert_eq!(likely(b"a\0\n\0"), Encoding::Utf16);
    assert_eq!(likely(b"\xff\xfea\0\n\0"), Encoding::Utf16);
    assert_eq!(likely(b"\xfe\xff\0a"), Encoding::Utf16);
    assert_eq!(likely(b"caf\xe9\n"), Encoding::Latin1);
    assert_eq!(
        likely("é\u{feff}".as_bytes().split_last().unwrap().1),
        Encoding::DamagedUtf8
    );
}

#[test]
fn a_byte_order_mark_is_no_text() {
    assert_eq!(lines("x", b"\xef\xbb\xbfa\nb\n").unwrap(), ["a", "b"]);
    // It is one at the beginning alone.
    assert_eq!(
        lines("x", "a\n\u{feff}b".as_bytes()).unwrap(),
        ["a", "\u{feff}b"]
    );
    let empty = lines("x", b"\xef\xbb\xbf").unwrap_err();
    assert!(matches!(empty, Error::EmptyText { .. }));
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
