//! Files of merges, as subword-nmt writes them.

use bochner_text::{CodesDefect, Error, Split, Subwords};

fn defect(text: &str) -> (usize, CodesDefect) {
    match Subwords::from_codes("codes", text.as_bytes()) {
        Err(Error::Codes { line, defect, .. }) => (line, defect),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_line_that_cannot_be_used_is_named() {
    let lines = |lines: &str| defect(&format!("#version: 0.2\na b\n{lines}\n"));
    for found in ["ab", "a b c", "a  b", "", "a", "a </w>"] {
        let malformed = CodesDefect::Malformed {
            found: found.to_owned(),
        };
        assert_eq!(lines(&format!("{found}\nx y")), (3, malformed));
    }
    let missing = "abc".to_owned();
    let early = (4, CodesDefect::OutOfOrder { missing });
    assert_eq!(lines("b c\nabc d\nab c"), early);
    let again = (4, CodesDefect::Repeated { first: 2 });
    assert_eq!(lines("b c\na b"), again);
    let symbol = "a@@</w>".to_owned();
    let marked = (4, CodesDefect::Ambiguous { symbol });
    assert_eq!(lines("a @\na@ @</w>"), marked);
    for found in ["a b", "#version: 0.1", ""] {
        let header = CodesDefect::Header {
            found: found.to_owned(),
        };
        assert_eq!(defect(&format!("{found}\na b\n")), (1, header));
    }
    let said = Subwords::from_codes("codes", b"#version: 0.2\na b c\n").unwrap_err();
    assert_eq!(
        said.to_string(),
        "codes, line 2: expected two symbols with one space between, found \"a b c\": correct the line"
    );
}

#[test]
fn marks_and_line_ends_of_other_systems_are_read() {
    let plain = Subwords::from_codes("codes", b"#version: 0.2\na b\n").unwrap();
    for text in ["\u{feff}#version: 0.2\r\na b\r\n", "#version: 0.2\na b"] {
        assert_eq!(
            Subwords::from_codes("codes", text.as_bytes()).unwrap(),
            plain
        );
    }
    // Without a merge, every character is a piece.
    let none = Subwords::from_codes("codes", b"#version: 0.2\n").unwrap();
    assert_eq!(none.encode("ab"), ["a@@", "b"]);
}

#[test]
fn symbols_that_a_file_cannot_hold_are_refused() {
    let merge = ("a".to_owned(), "\r</w>".to_owned());
    let alphabet = vec![merge.0.clone(), merge.1.clone()];
    let subwords = Subwords::from_merges(Split::Spaces, alphabet, vec![merge]).unwrap();
    let refused = subwords.to_codes().unwrap_err();
    assert!(matches!(refused, Error::UnwritableSymbol { symbol } if symbol == "\r</w>"));
}
