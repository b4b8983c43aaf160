//! Learning merges from the words of a text.

use super::pairs::{Pair, PairMap, Pairs, Top};
use super::symbols::Symbols;
use super::{Split, Subwords, characters, is_ambiguous};
use crate::{Error, TokenCounts};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// The settings of [`Subwords::learn`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct SubwordConfig {
    /// The number of merges, fewer if no pair is frequent enough; 10,000 by default.
    pub merges: usize,
    /// The least frequency of a pair that is merged; 2 by default.
    #[serde(alias = "min_frequency")]
    pub min_frequency: u64,
}

impl Default for SubwordConfig {
    fn default() -> Self {
        Self {
            merges: 10_000,
            min_frequency: 2,
        }
    }
}

impl SubwordConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("merges", self.merges)?;
        argument::at_least_one("min_frequency", self.min_frequency.min(1) as usize)
    }
}

bochner_numerics::checked_when_read!(SubwordConfig);

/// Subwords, and how they were learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The subwords.
    pub subwords: Subwords,
    /// One entry for each merge, in the order of their ranks.
    pub history: Vec<Merge>,
}

/// The choice of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The number of times that the pair occurred.
    pub frequency: u64,
    /// The number of pairs tied for this frequency, the merged one included.
    pub ties: usize,
}

impl Subwords {
    /// Learns merges from the words of a text, by the rule of subword-nmt.
    ///
    /// The most frequent pair of neighbouring symbols is merged, again and again; among equally frequent
    /// ones the greatest, compared by the code points of the first symbol, then of the second. Overlapping
    /// occurrences (`a a a`) count twice. Frequencies are updated where a merge changes a word and are
    /// exact at every step, where subword-nmt forgets rare pairs for a while.
    ///
    /// A pair that [`from_merges`](Self::from_merges) refuses is passed over, so that words that end in `@@` or hold
    /// `</w>` stay in more pieces than subword-nmt makes of them, and none of their characters is lost.
    ///
    /// # Errors
    /// [`Error::NoWords`] without words; [`Error::Argument`] for a setting of zero.
    ///
    /// # Numerics
    /// The time grows with the number of symbols that change, times the logarithm of the number of pairs:
    /// 6,000 merges of a million words take well under a second.
    pub fn learn(words: &TokenCounts, config: &SubwordConfig) -> Result<Learned, Error> {
        config.validate()?;
        let mut learner = Learner::of(words);
        if learner.words.is_empty() {
            return Err(Error::NoWords {
                distinct: words.len(),
                min_count: 1,
            });
        }
        let alphabet = learner.symbols.iter().map(str::to_owned).collect();
        let mut merges = Vec::new();
        let mut history = Vec::new();
        while merges.len() < config.merges
            && let Some(top) = learner.pairs.top()
            && top.frequency >= config.min_frequency
        {
            let Top {
                frequency, ties, ..
            } = top;
            if learner.is_ambiguous(top.pair) {
                continue;
            }
            history.push(Merge { frequency, ties });
            merges.push(learner.merge(top.pair));
        }
        Ok(Learned {
            subwords: Self::from_merges(Split::Spaces, alphabet, merges)?,
            history,
        })
    }
}

/// The words as they are split so far.
struct Learner {
    symbols: Symbols,
    words: Vec<Word>,
    pairs: Pairs,
    /// The changes of one merge, which are kept only for their memory.
    changes: PairMap<i64>,
}

struct Word {
    symbols: Vec<u32>,
    count: i64,
}

impl Learner {
    fn of(counts: &TokenCounts) -> Self {
        let mut learner = Self {
            symbols: Symbols::default(),
            words: Vec::with_capacity(counts.len()),
            pairs: Pairs::default(),
            changes: PairMap::default(),
        };
        for (word, count) in counts.iter().filter(|(word, _)| !word.is_empty()) {
            learner.add(word, count as i64);
        }
        learner.count_changes();
        learner
    }

    fn add(&mut self, word: &str, count: i64) {
        let symbols = characters(word).map(|(symbol, _)| self.symbols.number(&symbol));
        let symbols: Vec<u32> = symbols.collect();
        let at = self.words.len() as u32;
        for pair in pairs_of(&symbols) {
            *self.changes.entry(pair).or_default() += count;
            self.pairs.occurs(pair, at);
        }
        self.words.push(Word { symbols, count });
    }

    fn is_ambiguous(&self, (left, right): Pair) -> bool {
        let [left, right] = [left, right].map(|symbol| self.symbols.text(symbol));
        is_ambiguous(&format!("{left}{right}"), right)
    }

    /// Merges a pair in all words.
    fn merge(&mut self, pair: Pair) -> (String, String) {
        let (left, right) = (self.symbols.text(pair.0), self.symbols.text(pair.1));
        let texts = (left.to_string(), right.to_string());
        let made = self.symbols.number(&format!("{left}{right}"));
        for at in self.pairs.take_words(pair) {
            self.merge_in(at, pair, made);
        }
        self.count_changes();
        texts
    }

    fn merge_in(&mut self, at: u32, pair: Pair, made: u32) {
        let word = &mut self.words[at as usize];
        let Some((first, last)) = occurrences(&word.symbols, pair) else {
            return;
        };
        // What lies outside of the first and the last occurrence and their neighbours stays as it is.
        let (start, end) = (first.saturating_sub(1), last + 2);
        for old in pairs_of(&word.symbols[start..word.symbols.len().min(end + 1)]) {
            *self.changes.entry(old).or_default() -= word.count;
        }
        let rest = word.symbols.len() - end;
        join(&mut word.symbols, first, pair, made);
        let end = word.symbols.len() - rest;
        for new in pairs_of(&word.symbols[start..word.symbols.len().min(end + 1)]) {
            *self.changes.entry(new).or_default() += word.count;
            if new.0 == made || new.1 == made {
                self.pairs.occurs(new, at);
            }
        }
    }

    fn count_changes(&mut self) {
        for (pair, by) in self.changes.drain() {
            self.pairs.change(pair, by, &self.symbols);
        }
    }
}

fn pairs_of(symbols: &[u32]) -> impl Iterator<Item = Pair> {
    symbols.windows(2).map(|pair| (pair[0], pair[1]))
}

/// The places of the first and of the last occurrence of a pair.
fn occurrences(symbols: &[u32], pair: Pair) -> Option<(usize, usize)> {
    let first = pairs_of(symbols).position(|found| found == pair)?;
    let last = symbols
        .windows(2)
        .rposition(|found| (found[0], found[1]) == pair)?;
    Some((first, last))
}

/// Replaces every occurrence of a pair, from left to right, from the place of the first one on.
fn join(symbols: &mut Vec<u32>, first: usize, pair: Pair, made: u32) {
    let (mut kept, mut at) = (first, first);
    while at < symbols.len() {
        let joins = symbols[at] == pair.0 && symbols.get(at + 1) == Some(&pair.1);
        symbols[kept] = if joins { made } else { symbols[at] };
        kept += 1;
        at += if joins { 2 } else { 1 };
    }
    symbols.truncate(kept);
}
