//! The frequencies of pairs of symbols, and the most frequent one.

use super::symbols::Symbols;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

pub(super) type Pair = (u32, u32);

/// A map whose keys are pairs, which come from no adversary: the standard hasher would take half of the time.
pub(super) type PairMap<V> = HashMap<Pair, V, BuildHasherDefault<PairHasher>>;

/// The pairs of symbols, with their frequencies and the words that they occur in.
///
/// The heap holds, for every pair, an entry that is at least as high as its frequency: a rise adds an entry, and a fall
/// is noticed when the entry comes to the top.
#[derive(Default)]
pub(super) struct Pairs {
    pairs: PairMap<Occurrences>,
    heap: BinaryHeap<Entry>,
    /// The number of pairs with each frequency.
    sharing: HashMap<u64, usize>,
}

#[derive(Default)]
struct Occurrences {
    frequency: u64,
    /// The words that hold the pair or held it once; a word may be listed twice.
    words: Vec<u32>,
}

/// Ordered by frequency, then by the first symbol, then by the second, which are compared by code points: the
/// order of the bytes of UTF-8.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    frequency: u64,
    left: Arc<str>,
    right: Arc<str>,
    pair: Pair,
}

/// The most frequent pair.
pub(super) struct Top {
    pub(super) pair: Pair,
    pub(super) frequency: u64,
    pub(super) ties: usize,
}

impl Pairs {
    /// Notes that a word holds a pair.
    pub(super) fn occurs(&mut self, pair: Pair, word: u32) {
        let words = &mut self.pairs.entry(pair).or_default().words;
        if words.last() != Some(&word) {
            words.push(word);
        }
    }

    /// Adds to the frequency of a pair, which never falls below zero.
    pub(super) fn change(&mut self, pair: Pair, by: i64, symbols: &Symbols) {
        if by == 0 {
            return;
        }
        let occurrences = self.pairs.entry(pair).or_default();
        let before = occurrences.frequency;
        let after = before
            .checked_add_signed(by)
            .expect("a frequency counts what there is");
        occurrences.frequency = after;
        if let Some(sharing) = self.sharing.get_mut(&before) {
            *sharing -= 1;
        }
        if after > 0 {
            *self.sharing.entry(after).or_default() += 1;
        }
        if by > 0 {
            self.heap.push(Entry {
                frequency: after,
                left: symbols.text(pair.0).clone(),
                right: symbols.text(pair.1).clone(),
                pair,
            });
        }
    }

    /// The most frequent pair, among equals the greatest.
    pub(super) fn top(&mut self) -> Option<Top> {
        loop {
            let mut entry = self.heap.pop()?;
            let frequency = self
                .pairs
                .get(&entry.pair)
                .map_or(0, |found| found.frequency);
            if entry.frequency > frequency && frequency > 0 {
                entry.frequency = frequency;
                self.heap.push(entry);
            } else if entry.frequency == frequency {
                return Some(Top {
                    pair: entry.pair,
                    frequency,
                    ties: self.sharing[&frequency],
                });
            }
        }
    }

    /// The words that hold a pair, which is about to be merged everywhere.
    pub(super) fn take_words(&mut self, pair: Pair) -> Vec<u32> {
        let occurrences = self.pairs.get_mut(&pair);
        occurrences.map_or_else(Vec::new, |found| std::mem::take(&mut found.words))
    }
}

/// Mixes the two numbers of a pair by multiplication.
#[derive(Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        // The map takes its buckets from the low bits and its tags from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = self.0.rotate_left(29) ^ u64::from(number);
        self.0 = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
