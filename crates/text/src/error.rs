//! The errors of this crate.

use crate::lines::Encoding;
use crate::subword::CodesDefect;
use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A number is out of its range, or two arguments do not fit each other.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A text is not UTF-8.
    #[error("{file}, line {line}: byte {column} is not UTF-8. The text looks like {likely}")]
    InvalidUtf8 {
        /// The name of the text.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The place of the first wrong byte in the line, from 1.
        column: usize,
        /// The likely encoding, displayed with the remedy.
        likely: Encoding,
    },
    /// A text has no bytes.
    #[error("{file} is empty: check that it was written or downloaded completely")]
    EmptyText {
        /// The name of the text.
        file: String,
    },
    /// A vocabulary or subwords would be made of nothing.
    #[error(
        "no word is left of {distinct} distinct words: give a text that has words, or lower the least \
         count {min_count}"
    )]
    NoWords {
        /// The number of distinct words counted.
        distinct: usize,
        /// The least count asked for.
        min_count: u64,
    },
    /// A word has two numbers.
    #[error(
        "the word `{word}` stands at {first} and at {second} in the list of words: remove one of them"
    )]
    RepeatedWord {
        /// The word.
        word: String,
        /// Its first place, from 0.
        first: usize,
        /// Its second place.
        second: usize,
    },
    /// A vocabulary knows no word of a text.
    #[error(
        "{part}: none of the {tokens} tokens in {sentences} sentences is among the vocabulary's {words} \
         words: clean and split the text in the way of the one that the vocabulary was made of, or load the vocabulary \
         that belongs to it"
    )]
    UnknownOnly {
        /// The name of the text.
        part: String,
        /// The number of sentences.
        sentences: usize,
        /// The number of tokens.
        tokens: usize,
        /// The number of words in the vocabulary.
        words: usize,
    },
    /// A vocabulary is not the one that something was made with.
    #[error(
        "the vocabulary has the fingerprint {got:016x}, but {expected:016x} is needed: it belongs to \
         another run; load the vocabulary that was saved with the model"
    )]
    AnotherVocabulary {
        /// The fingerprint that is needed.
        expected: u64,
        /// The fingerprint of this vocabulary.
        got: u64,
    },
    /// A sentence does not fit into any batch.
    #[error(
        "sentence {sentence} has {length} tokens, but a batch holds at most {tokens}: cut or leave out \
         such sentences, or raise `tokens`"
    )]
    TooLong {
        /// The sentence's place, from 0.
        sentence: usize,
        /// Its length.
        length: usize,
        /// The tokens that a batch may hold.
        tokens: usize,
    },
    /// A merge joins a symbol that does not exist before it.
    #[error(
        "merge {merge} joins `{left}` and `{right}`, but `{missing}` is neither a character of the \
         alphabet nor made by an earlier merge: the list is damaged or out of order"
    )]
    Merge {
        /// The merge's place, from 0.
        merge: usize,
        /// Its first symbol.
        left: String,
        /// Its second symbol.
        right: String,
        /// The symbol that does not exist.
        missing: String,
    },
    /// An alphabet holds something else than characters.
    #[error(
        "`{symbol}` stands in the alphabet, but is not one character, with `</w>` behind it or without: \
         longer symbols are made by merges"
    )]
    Alphabet {
        /// The symbol.
        symbol: String,
    },
    /// A `tokenizer.json` cannot be read.
    #[error("{place} is {got}, but must be {expected}")]
    TokenizerJson {
        /// The path of the entry, such as `model.type`.
        place: String,
        /// The values that are supported there.
        expected: &'static str,
        /// The value in the file.
        got: String,
    },
    /// A line in a file of merges cannot be used.
    #[error("{file}, line {line}: {defect}")]
    Codes {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The defect, displayed with the remedy.
        defect: CodesDefect,
    },
    /// A file of merges cannot hold a symbol.
    #[error(
        "the symbol {symbol:?} holds a space or a line break, which separate symbols in a file of merges: remove such \
         words from the text"
    )]
    UnwritableSymbol {
        /// The symbol.
        symbol: String,
    },
    /// A merge makes a symbol that looks like another one.
    #[error(
        "merge {merge} makes the symbol `{symbol}`, but `@@` marks pieces whose word goes on and `</w>` the end of a word: \
         remove the merge, or learn merges with `Subwords::learn`, which makes no such symbol"
    )]
    MarkedWord {
        /// The merge's place, from 0.
        merge: usize,
        /// The symbol.
        symbol: String,
    },
    /// A symbol has the name of one of the vocabulary's special tokens.
    #[error(
        "a merge makes the symbol `{symbol}`, which is the name of a special token in tokenizer.json: \
         remove such words from the text"
    )]
    ReservedSymbol {
        /// The symbol.
        symbol: String,
    },
}
