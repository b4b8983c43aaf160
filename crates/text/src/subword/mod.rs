//! Subwords by byte-pair encoding.

mod codes;
mod learn;
mod pairs;
mod symbols;
mod tokenizer_json;

pub use codes::CodesDefect;
pub use learn::{Learned, Merge, SubwordConfig};

use crate::counts::words_between_spaces;
use crate::{Error, Marks, Vocabulary};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use symbols::Symbols;

/// Ends the last symbol of a word.
const END: &str = "</w>";

/// Ends a piece after which its word goes on.
const CONTINUES: &str = "@@";

/// Merges that split words into pieces, by the rule of subword-nmt.
///
/// A word begins as its characters, the last of them with the mark `</w>`. The merge of the lowest rank
/// that applies joins every occurrence of its pair, from left to right, until none applies. Pieces after
/// which their word goes on end in `@@`. Characters that the training text did not have stay pieces of
/// their own.
///
/// ```
/// use bochner_text::{SubwordConfig, Subwords, TokenCounts};
///
/// let text = ["low low low low low lower lower", "newest newest newest widest widest"];
/// let learned = Subwords::learn(&TokenCounts::of_words(text), &SubwordConfig::default())?;
/// let subwords = learned.subwords;
/// assert_eq!(subwords.encode("the lowest").join(" "), "t@@ h@@ e lo@@ west");
/// assert_eq!(Subwords::decode(&subwords.encode("the lowest")), "the lowest");
///
/// // subword-nmt reads and writes this file, and Hugging Face's `tokenizers` the next one.
/// let codes = subwords.to_codes()?;
/// assert!(codes.starts_with("#version: 0.2\nl o\n"));
///
/// let json = subwords.to_tokenizer_json()?;
/// assert_eq!(Subwords::from_tokenizer_json(json.as_bytes())?, subwords);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Reference
/// R. Sennrich, B. Haddow, A. Birch, *Neural machine translation of rare words with subword units*, 2016.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Subwords {
    split: Split,
    alphabet: Vec<String>,
    merges: Vec<(String, String)>,
    symbols: Symbols,
    /// The rank of a pair and the symbol that it makes.
    ranks: HashMap<(u32, u32), (u32, u32)>,
}

/// The rule by which text is split into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// At spaces, U+0020 and no other, as in subword-nmt, which takes no carriage return at the end of a line for a
    /// part of a word either.
    #[default]
    Spaces,
    /// At every white space of Unicode, the `WhitespaceSplit` of Hugging Face's `tokenizers`.
    WhiteSpace,
}

/// The serialised form of subwords.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    split: Split,
    alphabet: Vec<String>,
    merges: Vec<(String, String)>,
}

impl Subwords {
    /// Subwords of merges in the order of their ranks. The alphabet holds the characters of the training
    /// text, those at the end of a word with `</w>`.
    ///
    /// # Errors
    /// [`Error::Merge`] for a merge of a symbol that is neither in the alphabet nor made before;
    /// [`Error::Alphabet`] for a symbol of several characters in the alphabet; [`Error::MarkedWord`] for a merge whose
    /// symbol could not be told from another: of a word's end that is longer than `@@` and ends in this mark of pieces
    /// whose word goes on, or of a word's middle that ends in `</w>`.
    pub fn from_merges(
        split: Split,
        mut alphabet: Vec<String>,
        merges: Vec<(String, String)>,
    ) -> Result<Self, Error> {
        alphabet.sort_unstable();
        alphabet.dedup();
        let mut symbols = Symbols::default();
        for symbol in &alphabet {
            if !is_character(symbol) {
                return Err(Error::Alphabet {
                    symbol: symbol.clone(),
                });
            }
            symbols.number(symbol);
        }
        let mut ranks = HashMap::with_capacity(merges.len());
        for (rank, (left, right)) in merges.iter().enumerate() {
            let known = |symbol: &str| {
                symbols.get(symbol).ok_or_else(|| Error::Merge {
                    merge: rank,
                    left: left.clone(),
                    right: right.clone(),
                    missing: symbol.to_owned(),
                })
            };
            let pair = (known(left)?, known(right)?);
            let made = format!("{left}{right}");
            if is_ambiguous(&made, right) {
                return Err(Error::MarkedWord {
                    merge: rank,
                    symbol: made,
                });
            }
            let made = symbols.number(&made);
            // A pair that came back after it had been merged is in the list twice: the first one counts.
            ranks.entry(pair).or_insert((rank as u32, made));
        }
        Ok(Self {
            split,
            alphabet,
            merges,
            symbols,
            ranks,
        })
    }

    /// The merges in the order of their ranks.
    pub fn merges(&self) -> &[(String, String)] {
        &self.merges
    }

    /// The characters of the training text, those at the end of a word with `</w>`, by code points.
    pub fn alphabet(&self) -> &[String] {
        &self.alphabet
    }

    /// The rule by which text is split into words.
    pub fn split(&self) -> Split {
        self.split
    }

    /// The vocabulary of all pieces that the merges can make of the alphabet: first the characters, then
    /// what the merges make, in their order.
    ///
    /// # Errors
    /// [`Error::NoWords`] for an empty alphabet.
    pub fn vocabulary(&self, marks: Marks) -> Result<Vocabulary, Error> {
        let pieces = self
            .symbols
            .iter()
            .map(|symbol| match symbol.strip_suffix(END) {
                Some(last) => last.to_owned(),
                None => format!("{symbol}{CONTINUES}"),
            });
        Vocabulary::from_words(pieces, marks)
    }

    /// The pieces of a line. Runs of spaces separate words as one space does.
    pub fn encode(&self, line: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        for word in self.words(line) {
            pieces.extend(self.pieces(word));
        }
        pieces
    }

    /// The pieces of all lines of a text; each distinct word is split once.
    pub fn encode_all<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> Vec<Vec<String>> {
        let mut known: HashMap<&str, Vec<String>> = HashMap::new();
        let lines = lines.into_iter().map(|line| {
            let mut pieces = Vec::new();
            for word in self.words(line) {
                let of_word = known.entry(word).or_insert_with(|| self.pieces(word));
                pieces.extend_from_slice(of_word);
            }
            pieces
        });
        lines.collect()
    }

    /// The line of pieces. A last piece after which its word goes on, as in a translation that was cut,
    /// ends the line without its mark.
    ///
    /// No character of a line is lost by [`encode`](Self::encode) and this, `@@` in the text included; runs of
    /// spaces become one.
    pub fn decode<S: AsRef<str>>(pieces: &[S]) -> String {
        let mut line = String::new();
        let mut joins = true;
        for piece in pieces.iter().map(S::as_ref) {
            if !joins {
                line.push(' ');
            }
            // No piece is empty, so that the mark alone is text.
            let goes_on = piece
                .strip_suffix(CONTINUES)
                .filter(|text| !text.is_empty());
            line.push_str(goes_on.unwrap_or(piece));
            joins = goes_on.is_some();
        }
        line
    }

    fn words<'a>(&self, line: &'a str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        match self.split {
            Split::Spaces => Box::new(words_between_spaces(line)),
            Split::WhiteSpace => Box::new(line.split_whitespace()),
        }
    }

    fn pieces(&self, word: &str) -> Vec<String> {
        let parts = self.segment(word);
        let last = parts.len() - 1;
        let mut start = 0;
        let pieces = parts.iter().enumerate().map(|(at, &(_, end))| {
            let piece = &word[start..end];
            start = end;
            let mark = if at < last { CONTINUES } else { "" };
            format!("{piece}{mark}")
        });
        pieces.collect()
    }

    /// The symbols of a word, each with the place of its end; `None` is a character that has no symbol.
    fn segment(&self, word: &str) -> Vec<(Option<u32>, usize)> {
        let mut parts: Vec<_> = characters(word)
            .map(|(symbol, end)| (self.symbols.get(&symbol), end))
            .collect();
        while let Some((pair, made)) = self.next_merge(&parts) {
            let mut kept = 0;
            let mut at = 0;
            while at < parts.len() {
                let joins = at + 1 < parts.len() && rank_pair(&parts[at..]) == Some(pair);
                parts[kept] = match joins {
                    true => (Some(made), parts[at + 1].1),
                    false => parts[at],
                };
                kept += 1;
                at += if joins { 2 } else { 1 };
            }
            parts.truncate(kept);
        }
        parts
    }

    /// The pair of the lowest rank in a word, with the symbol that it makes.
    fn next_merge(&self, parts: &[(Option<u32>, usize)]) -> Option<((u32, u32), u32)> {
        let pairs = parts.windows(2).filter_map(rank_pair);
        let ranked = pairs.filter_map(|pair| self.ranks.get(&pair).map(|&found| (found, pair)));
        ranked.min().map(|((_, made), pair)| (pair, made))
    }
}

/// The pair at the beginning of some parts, if both have symbols.
fn rank_pair(parts: &[(Option<u32>, usize)]) -> Option<(u32, u32)> {
    Some((parts[0].0?, parts[1].0?))
}

/// Whether a symbol is one character, at the end of a word or not.
fn is_character(symbol: &str) -> bool {
    symbol.strip_suffix(END).unwrap_or(symbol).chars().count() == 1
}

/// Whether a symbol, made of `right` and one before it, looks like another one: the end of a word whose piece looks as if
/// its word went on, or the middle of a word that looks like the end of one.
fn is_ambiguous(made: &str, right: &str) -> bool {
    let is_last = right.ends_with(END);
    let looks_unfinished =
        |piece: &str| piece.len() > CONTINUES.len() && piece.ends_with(CONTINUES);
    match made.strip_suffix(END) {
        Some(piece) => !is_last || looks_unfinished(piece),
        None => false,
    }
}

/// The characters of a word as symbols, each with the place of its end.
fn characters(word: &str) -> impl Iterator<Item = (String, usize)> {
    word.char_indices().map(|(start, c)| {
        let end = start + c.len_utf8();
        let mut symbol = String::from(c);
        if end == word.len() {
            symbol.push_str(END);
        }
        (symbol, end)
    })
}

impl From<Subwords> for Written {
    fn from(subwords: Subwords) -> Self {
        Self {
            split: subwords.split,
            alphabet: subwords.alphabet,
            merges: subwords.merges,
        }
    }
}

impl TryFrom<Written> for Subwords {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self, Error> {
        Self::from_merges(written.split, written.alphabet, written.merges)
    }
}
