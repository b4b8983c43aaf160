//! Frequencies of tokens.

use std::collections::HashMap;

/// The number of times that each token of a text occurs.
///
/// ```
/// use bochner_text::TokenCounts;
///
/// let counts: TokenCounts = "to be or not to be".split_whitespace().collect();
/// assert_eq!((counts.len(), counts.total(), counts.get("be")), (4, 6, 2));
/// // The most frequent first, equally frequent tokens by their code points.
/// assert_eq!(counts.by_frequency()[..3], [("be", 2), ("to", 2), ("not", 1)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    counts: HashMap<String, u64>,
}

impl TokenCounts {
    /// The counts of no text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counts of the words of lines: of the pieces between spaces, U+0020 and no other. A carriage return at
    /// either end of a line is no part of a word.
    pub fn of_words<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        lines.into_iter().flat_map(words_between_spaces).collect()
    }

    /// Counts a token once more.
    pub fn add(&mut self, token: &str) {
        match self.counts.get_mut(token) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(token.to_owned(), 1);
            }
        }
    }

    /// The number of distinct tokens.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The number of tokens.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The number of times that a token occurs.
    pub fn get(&self, token: &str) -> u64 {
        self.counts.get(token).copied().unwrap_or(0)
    }

    /// The tokens with their counts, the most frequent first, equally frequent ones by code points.
    pub fn by_frequency(&self) -> Vec<(&str, u64)> {
        let counts = self.counts.iter();
        let mut counts: Vec<_> = counts.map(|(token, &n)| (token.as_str(), n)).collect();
        counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        counts
    }

    /// The tokens with their counts, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.counts.iter();
        counts.map(|(token, &count)| (token.as_str(), count))
    }
}

/// The words of a line as subword-nmt finds them.
pub(crate) fn words_between_spaces(line: &str) -> impl Iterator<Item = &str> {
    let words = line.trim_matches(['\r', '\n', ' ']).split(' ');
    words.filter(|word| !word.is_empty())
}

impl<S: AsRef<str>> Extend<S> for TokenCounts {
    fn extend<I: IntoIterator<Item = S>>(&mut self, tokens: I) {
        tokens
            .into_iter()
            .for_each(|token| self.add(token.as_ref()));
    }
}

impl<S: AsRef<str>> FromIterator<S> for TokenCounts {
    fn from_iter<I: IntoIterator<Item = S>>(tokens: I) -> Self {
        let mut counts = Self::new();
        counts.extend(tokens);
        counts
    }
}
