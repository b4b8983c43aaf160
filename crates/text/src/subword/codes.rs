//! Subwords as the file of merges that subword-nmt writes and reads, its `codes`.

use super::{END, Split, Subwords, is_character};
use crate::Error;
use crate::lines::lines;
use std::collections::{BTreeSet, HashMap, HashSet};
use thiserror::Error;

/// The first line of a file. Files of version 0.1, which may lack it, mark the end of a word in another way.
const HEADER: &str = "#version: 0.2";

/// A defect of a line in a file of merges. Displayed with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodesDefect {
    /// The first line is not the header of version 0.2.
    #[error(
        "expected the header `#version: 0.2`, found {found:?}: learn the merges again with a subword-nmt from 2017 or \
         later, or add the header if the file has lost it"
    )]
    Header {
        /// The line.
        found: String,
    },
    /// The line is not two symbols with a space between.
    #[error("expected two symbols with one space between, found {found:?}: correct the line")]
    Malformed {
        /// The line.
        found: String,
    },
    /// A symbol is longer than a character and no earlier line makes it.
    #[error(
        "no earlier line makes the symbol `{missing}`: put the lines back into the order in which they were learnt"
    )]
    OutOfOrder {
        /// The symbol.
        missing: String,
    },
    /// The pair stands in the file before.
    #[error("line {first} holds the same pair: remove one of the two lines")]
    Repeated {
        /// The number of the earlier line, from 1.
        first: usize,
    },
    /// The symbol that the pair makes looks like another one.
    #[error(
        "the pair makes `{symbol}`, which looks like a piece whose word goes on or like the end of a word: remove the line"
    )]
    Ambiguous {
        /// The symbol.
        symbol: String,
    },
}

impl Subwords {
    /// The subwords of a `codes` file of subword-nmt, which split as `subword-nmt apply-bpe` does with it.
    ///
    /// The file begins with `#version: 0.2`. Each further line is a merge, two symbols with a space between, and its rank is
    /// its place. The name `file` is only for messages.
    ///
    /// The file does not hold the alphabet of its training text, so that [`alphabet`](Self::alphabet) holds the characters of
    /// merges alone. For a vocabulary without gaps, count the pieces of the training text:
    ///
    /// ```
    /// use bochner_text::{Subwords, TokenCounts, Vocabulary, VocabularyConfig};
    ///
    /// let codes = b"#version: 0.2\nl o\nlo w</w>\n";
    /// let subwords = Subwords::from_codes("codes.txt", codes)?;
    /// let pieces = subwords.encode("low slow");
    /// assert_eq!(pieces, ["low", "s@@", "low"]);
    /// let counts: TokenCounts = pieces.iter().collect();
    /// let vocabulary = Vocabulary::from_counts(&counts, &VocabularyConfig::default())?;
    /// assert_eq!(vocabulary.words(), ["low", "s@@"]);
    /// assert_eq!(subwords.to_codes()?.as_bytes(), codes);
    /// # Ok::<(), bochner_text::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Codes`] with the first line that cannot be used; those of [`lines()`].
    pub fn from_codes(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        let lines = lines(file, bytes)?;
        let refuse = |at: usize, defect| Error::Codes {
            file: file.to_owned(),
            line: at + 1,
            defect,
        };
        if lines[0].trim_end() != HEADER {
            let found = lines[0].to_owned();
            return Err(refuse(0, CodesDefect::Header { found }));
        }
        let mut alphabet = BTreeSet::new();
        let mut merges = Vec::with_capacity(lines.len());
        let mut places = HashMap::new();
        for (at, line) in lines.into_iter().enumerate().skip(1) {
            let Some((left, right)) = pair(line) else {
                let found = line.to_owned();
                return Err(refuse(at, CodesDefect::Malformed { found }));
            };
            if let Some(first) = places.insert((left, right), at + 1) {
                return Err(refuse(at, CodesDefect::Repeated { first }));
            }
            let characters = [left, right]
                .into_iter()
                .filter(|symbol| is_character(symbol));
            alphabet.extend(characters.map(str::to_owned));
            merges.push((left.to_owned(), right.to_owned()));
        }
        // The merge of place 0 is on the second line.
        Self::from_merges(Split::Spaces, alphabet.into_iter().collect(), merges).map_err(|error| {
            match error {
                Error::Merge { merge, missing, .. } => {
                    refuse(merge + 1, CodesDefect::OutOfOrder { missing })
                }
                Error::MarkedWord { merge, symbol } => {
                    refuse(merge + 1, CodesDefect::Ambiguous { symbol })
                }
                other => other,
            }
        })
    }

    /// The text of a `codes` file: with it, `subword-nmt apply-bpe` splits at spaces into the same pieces.
    ///
    /// # Errors
    /// [`Error::UnwritableSymbol`] for a symbol with a space or a line break inside.
    pub fn to_codes(&self) -> Result<String, Error> {
        let mut codes = format!("{HEADER}\n");
        // A pair that is listed twice counts at its first place.
        let mut seen = HashSet::new();
        for merge in self.merges.iter().filter(|merge| seen.insert(*merge)) {
            for symbol in [&merge.0, &merge.1] {
                if symbol.contains([' ', '\r', '\n']) {
                    return Err(Error::UnwritableSymbol {
                        symbol: symbol.clone(),
                    });
                }
            }
            codes.extend([&*merge.0, " ", &*merge.1, "\n"]);
        }
        Ok(codes)
    }
}

/// The two symbols of a line.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (left, right) = line.trim_matches(['\r', ' ']).split_once(' ')?;
    let is_symbol = |symbol: &str| !symbol.is_empty() && !symbol.contains(' ') && symbol != END;
    (is_symbol(left) && is_symbol(right)).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(text: &str) -> (usize, CodesDefect) {
        match Subwords::from_codes("codes", text.as_bytes()) {
            Err(Error::Codes { line, defect, .. }) => (line, defect),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_line_that_cannot_be_used_is_named() {
        let lines = |lines: &str| defect(&format!("{HEADER}\na b\n{lines}\n"));
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
}
