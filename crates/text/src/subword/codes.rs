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
