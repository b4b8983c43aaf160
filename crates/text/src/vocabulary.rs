//! Words and their numbers.

use crate::{Error, TokenCounts};
use bochner_numerics::{ArgumentError, argument, fingerprint};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The settings of a [`Vocabulary`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct VocabularyConfig {
    /// The number of times that a word must occur to be included; 1 by default.
    #[serde(alias = "min_count")]
    pub min_count: u64,
    /// The largest number of words, the most frequent ones; no bound by default.
    #[serde(alias = "max_words")]
    pub max_words: Option<usize>,
    /// The marks of sentences that have numbers; none by default.
    pub marks: Marks,
}

impl Default for VocabularyConfig {
    fn default() -> Self {
        Self {
            min_count: 1,
            max_words: None,
            marks: Marks::None,
        }
    }
}

impl VocabularyConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("min_count", self.min_count.min(1) as usize)?;
        argument::at_least_one("max_words", self.max_words.unwrap_or(1))
    }
}

bochner_numerics::checked_when_read!(VocabularyConfig);

/// The marks of a sentence that have numbers: its beginning and end, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marks {
    /// Neither mark, for classification.
    #[default]
    None,
    /// The beginning and the end, for generation.
    StartAndEnd,
}

/// The words of a training text and their numbers.
///
/// Number 0 fills sentences up to the length of a batch and number 1 stands for every unknown word. With
/// [`Marks::StartAndEnd`], 2 and 3 are the beginning and the end of a sentence. The words follow, the most
/// frequent first, equally frequent ones by code points, so that the same text always gives the same
/// numbers. The special numbers have no spelling that a text could contain.
///
/// ```
/// use bochner_text::{TokenCounts, Vocabulary, VocabularyConfig};
///
/// let train = ["a dog sees a cat", "a cat sleeps"].map(|line| line.split_whitespace().collect::<Vec<_>>());
/// let counts: TokenCounts = train.iter().flatten().collect();
/// let vocabulary = Vocabulary::from_counts(&counts, &VocabularyConfig::default())?;
/// assert_eq!(vocabulary.len(), 2 + 5);
/// assert_eq!(vocabulary.encode(["a", "bird", "sleeps"]), [2, Vocabulary::UNKNOWN, 6]);
/// assert_eq!(vocabulary.decode(&[2, 6, Vocabulary::PADDING])?, ["a", "sleeps"]);
///
/// // What was made with one vocabulary refuses another.
/// let saved = vocabulary.fingerprint();
/// let other = Vocabulary::from_words(["a".to_owned()], Default::default())?;
/// assert!(vocabulary.expect(saved).is_ok() && other.expect(saved).is_err());
/// # Ok::<(), bochner_text::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Vocabulary {
    marks: Marks,
    words: Vec<String>,
    numbers: HashMap<String, usize>,
}

/// The serialised form of a vocabulary; the fingerprint finds a list that was edited or cut.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    marks: Marks,
    words: Vec<String>,
    fingerprint: u64,
}

impl Vocabulary {
    /// The number that fills sentences up.
    pub const PADDING: usize = 0;
    /// The number of every unknown word.
    pub const UNKNOWN: usize = 1;

    /// The vocabulary of a text whose tokens were counted: the training part, and nothing else.
    ///
    /// # Errors
    /// [`Error::NoWords`] if no word is frequent enough; [`Error::Argument`] for a setting of zero.
    pub fn from_counts(counts: &TokenCounts, config: &VocabularyConfig) -> Result<Self, Error> {
        config.validate()?;
        let most = config.max_words.unwrap_or(usize::MAX);
        let frequent = counts.by_frequency().into_iter();
        let kept = frequent.take_while(|&(_, count)| count >= config.min_count);
        let words: Vec<_> = kept.take(most).map(|(word, _)| word.to_owned()).collect();
        if words.is_empty() {
            return Err(Error::NoWords {
                distinct: counts.len(),
                min_count: config.min_count,
            });
        }
        Self::from_words(words, config.marks)
    }

    /// The vocabulary of the given words, which are numbered in their order.
    ///
    /// # Errors
    /// [`Error::NoWords`] for no word, [`Error::RepeatedWord`] for a word that is given twice.
    pub fn from_words(
        words: impl IntoIterator<Item = String>,
        marks: Marks,
    ) -> Result<Self, Error> {
        let words: Vec<String> = words.into_iter().collect();
        if words.is_empty() {
            return Err(Error::NoWords {
                distinct: 0,
                min_count: 1,
            });
        }
        let specials = specials(marks);
        let mut numbers = HashMap::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            if let Some(first) = numbers.insert(word.clone(), at + specials) {
                return Err(Error::RepeatedWord {
                    word: word.clone(),
                    first: first - specials,
                    second: at,
                });
            }
        }
        Ok(Self {
            marks,
            words,
            numbers,
        })
    }

    /// The number of words and special numbers: the rows of an embedding.
    #[expect(clippy::len_without_is_empty, reason = "no vocabulary is empty")]
    pub fn len(&self) -> usize {
        self.specials() + self.words.len()
    }

    /// The number of special numbers, which come before the words: 2, or 4 with marks.
    pub fn specials(&self) -> usize {
        specials(self.marks)
    }

    /// The words in the order of their numbers.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The marks of a sentence that have numbers.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The number of the beginning of a sentence, with [`Marks::StartAndEnd`].
    pub fn start(&self) -> Option<usize> {
        (self.marks == Marks::StartAndEnd).then_some(2)
    }

    /// The number of the end of a sentence, with [`Marks::StartAndEnd`].
    pub fn end(&self) -> Option<usize> {
        (self.marks == Marks::StartAndEnd).then_some(3)
    }

    /// The number of a word, [`UNKNOWN`](Self::UNKNOWN) if the vocabulary does not have it.
    pub fn number(&self, word: &str) -> usize {
        self.numbers.get(word).copied().unwrap_or(Self::UNKNOWN)
    }

    /// The word of a number; `None` for special numbers and beyond the end.
    pub fn word(&self, number: usize) -> Option<&str> {
        let at = number.checked_sub(self.specials())?;
        self.words.get(at).map(String::as_str)
    }

    /// The numbers of the tokens of a sentence, without marks.
    pub fn encode<S: AsRef<str>>(&self, tokens: impl IntoIterator<Item = S>) -> Vec<usize> {
        let tokens = tokens.into_iter();
        tokens.map(|token| self.number(token.as_ref())).collect()
    }

    /// The numbers of the tokens of all sentences of a text, whose name `part` is only for messages.
    ///
    /// # Errors
    /// [`Error::UnknownOnly`] if the text has tokens, but the vocabulary knows none of them: no text that
    /// was prepared like the vocabulary's is so.
    pub fn encode_all<S: AsRef<str>>(
        &self,
        part: &str,
        sentences: &[Vec<S>],
    ) -> Result<Vec<Vec<usize>>, Error> {
        let encoded: Vec<_> = sentences.iter().map(|tokens| self.encode(tokens)).collect();
        let mut numbers = encoded.iter().flatten().peekable();
        if numbers.peek().is_some() && numbers.all(|&number| number == Self::UNKNOWN) {
            return Err(Error::UnknownOnly {
                part: part.to_owned(),
                sentences: sentences.len(),
                tokens: sentences.iter().map(Vec::len).sum(),
                words: self.words.len(),
            });
        }
        Ok(encoded)
    }

    /// The words of numbers; padding and marks are left out, the unknown word is `<unk>`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number that the vocabulary does not have.
    pub fn decode(&self, numbers: &[usize]) -> Result<Vec<&str>, Error> {
        let mut words = Vec::with_capacity(numbers.len());
        for &number in numbers {
            argument::index("numbers", number, self.len())?;
            match self.word(number) {
                Some(word) => words.push(word),
                None if number == Self::UNKNOWN => words.push("<unk>"),
                None => {}
            }
        }
        Ok(words)
    }

    /// A hash of the words, their order and the marks: what is saved with a model that was trained on
    /// their numbers.
    pub fn fingerprint(&self) -> u64 {
        let words = self.words.iter();
        // No byte of UTF-8 is 255.
        let bytes = words.flat_map(|word| word.bytes().chain([255]));
        fingerprint(bytes.chain([self.specials() as u8]))
    }

    /// Refuses to be another vocabulary than the one that had this fingerprint.
    ///
    /// # Errors
    /// [`Error::AnotherVocabulary`].
    pub fn expect(&self, fingerprint: u64) -> Result<(), Error> {
        let got = self.fingerprint();
        if got == fingerprint {
            return Ok(());
        }
        Err(Error::AnotherVocabulary {
            expected: fingerprint,
            got,
        })
    }
}

const fn specials(marks: Marks) -> usize {
    match marks {
        Marks::None => 2,
        Marks::StartAndEnd => 4,
    }
}

impl From<Vocabulary> for Written {
    fn from(vocabulary: Vocabulary) -> Self {
        Self {
            marks: vocabulary.marks,
            fingerprint: vocabulary.fingerprint(),
            words: vocabulary.words,
        }
    }
}

impl TryFrom<Written> for Vocabulary {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self, Error> {
        let vocabulary = Self::from_words(written.words, written.marks)?;
        vocabulary.expect(written.fingerprint)?;
        Ok(vocabulary)
    }
}
