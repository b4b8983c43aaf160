//! Text for sequence models: cleaning, vocabularies, subwords, batches, BLEU, chrF, TER and beam search.
//!
//! Between a file of sentences and a model that learns from numbers lie a few steps that decide whether two
//! results can be compared: how a sentence is cleaned, which words are known, how a translation is scored.
//! Each step follows the tool whose numbers papers report, including its tie-breaking:
//!
//! * **Cleaning** is Kim's ([`clean_str`]), on bytes, since the classic corpora are not UTF-8.
//! * **A [`Vocabulary`]** comes from the training part alone, has numbers for padding and unknown words,
//!   and knows its fingerprint, so that a model refuses the vocabulary of another run.
//! * **[`Subwords`]** are subword-nmt's, whose `codes` files are read and written. Hugging Face's `tokenizers` chooses
//!   otherwise among equally frequent pairs; merges learnt by either are read from and written to its `tokenizer.json`.
//! * **BLEU, chrF and TER** are sacrebleu's ([`corpus_bleu`], [`corpus_chrf`], [`corpus_ter`]), BLEU with its resampling
//!   and its p-values ([`paired_bootstrap`]), for which numpy's generator is here, too ([`bleu::Pcg64`]).
//! * **[`beam_search`]** takes a function that gives probabilities, so that it knows no model.
//!
//! The crate reads no files: texts come in as bytes or lines. Two things are drawn at random: the batches
//! of an epoch, from the stream that is given, and the resampled lines, from their seed.
//!
//! # Example
//!
//! From parallel lines to the batches of an epoch:
//!
//! ```
//! use bochner_numerics::Seed;
//! use bochner_text::{
//!     BatchConfig, Marks, SubwordConfig, Subwords, TokenCounts, Vocabulary, lines, padded,
//!     shuffled_batches,
//! };
//!
//! let german = lines("train.de", b"ein hund schl\xc3\xa4ft\nzwei hunde schlafen\n")?;
//! let english = lines("train.en", b"a dog is asleep\ntwo dogs are asleep\n")?;
//!
//! // Merges are learnt on both sides together.
//! let words = TokenCounts::of_words(german.iter().chain(&english).copied());
//! let config = SubwordConfig { merges: 20, ..Default::default() };
//! let subwords = Subwords::learn(&words, &config)?.subwords;
//! let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
//!
//! let sources = vocabulary.encode_all("train.de", &subwords.encode_all(german))?;
//! let targets = vocabulary.encode_all("train.en", &subwords.encode_all(english))?;
//! assert_eq!(Subwords::decode(&vocabulary.decode(&targets[0])?), "a dog is asleep");
//!
//! let lengths: Vec<_> = sources.iter().zip(&targets).map(|(s, t)| [s.len(), t.len()]).collect();
//! let mut rng = Seed::new(1).stream("batches");
//! for batch in shuffled_batches(&lengths, &BatchConfig::default(), &mut rng)? {
//!     let sources = padded(&sources, &batch, Vocabulary::PADDING)?;
//!     assert_eq!(sources.numbers.len(), batch.len() * sources.width);
//! }
//! # Ok::<(), bochner_text::Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`clean`] | [`clean_str`] |
//! | [`lines`](mod@lines) | [`lines()`]: the lines of a text, checked; [`is_blank`] |
//! | [`counts`] | [`TokenCounts`] |
//! | [`detokenise`](mod@detokenise) | [`detokenise()`]: text from tokens |
//! | [`vocabulary`] | [`Vocabulary`] |
//! | [`batches`] | [`ordered_batches`], [`shuffled_batches`], [`padded`] |
//! | [`subword`] | [`Subwords`]: learning, splitting, subword-nmt's `codes`, `tokenizer.json` |
//! | [`bleu`] | [`corpus_bleu`], [`sentence_bleu`], [`tokenize_13a`], [`bootstrap`], [`paired_bootstrap`] |
//! | [`chrf`] | [`corpus_chrf`], [`sentence_chrf`]: chrF and chrF++ |
//! | [`ter`] | [`corpus_ter`], [`sentence_ter`] |
//! | [`beam`] | [`beam_search`], [`BeamSearch`], [`repeats`] |
//! | [`error`] | [`Error`] |

pub mod batches;
pub mod beam;
pub mod bleu;
pub mod chrf;
pub mod clean;
pub mod counts;
pub mod detokenise;
pub mod error;
pub mod lines;
pub mod subword;
pub mod ter;
pub mod vocabulary;

pub use batches::{BatchConfig, Counted, Padded, ordered_batches, padded, shuffled_batches};
pub use beam::{
    BeamConfig, BeamSearch, Found, Hypothesis, Live, SourceBound, Stop, Tokens, beam_search,
    repeats,
};
pub use bleu::{
    BleuConfig, BleuScore, BleuStatistics, BootstrapConfig, Case, Comparison, Interval, Orders,
    PairedBootstrap, Smoothing, Tokenisation, bootstrap, corpus_bleu, line_statistics,
    paired_bootstrap, sentence_bleu, tokenize_13a,
};
pub use chrf::{ChrfConfig, ChrfScore, corpus_chrf, sentence_chrf};
pub use clean::clean_str;
pub use counts::TokenCounts;
pub use detokenise::{Language, detokenise};
pub use error::Error;
pub use lines::{Encoding, is_blank, lines};
pub use rand;
pub use subword::{CodesDefect, Learned, Merge, Split, SubwordConfig, Subwords};
pub use ter::{TerConfig, TerScore, corpus_ter, sentence_ter};
pub use vocabulary::{Marks, Vocabulary, VocabularyConfig};
