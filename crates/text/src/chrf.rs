//! chrF and chrF++ of a corpus and of sentences, as sacrebleu computes them.

use crate::Error;
use crate::bleu::{Case, SACREBLEU, check_streams, counts, is_space};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// The settings of chrF; the defaults are sacrebleu's. With `word_order: 2` the score is chrF++.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct ChrfConfig {
    /// The largest order of n-grams of characters; 6 by default.
    #[serde(alias = "char_order")]
    pub char_order: usize,
    /// The largest order of n-grams of words; 0 by default, which is chrF; 2 is chrF++.
    #[doc(alias = "chrF++")]
    #[serde(alias = "word_order")]
    pub word_order: usize,
    /// The weight of recall against precision, $\beta$; 2 by default.
    pub beta: u32,
    /// The treatment of case; it counts by default.
    pub case: Case,
}

impl Default for ChrfConfig {
    fn default() -> Self {
        Self {
            char_order: 6,
            word_order: 0,
            beta: 2,
            case: Case::Mixed,
        }
    }
}

impl ChrfConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("char_order", self.char_order)
    }

    /// The name of the score, such as `chrF2` or `chrF2++`.
    pub fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    /// The signature that sacrebleu prints beside a score: which settings it was computed with.
    ///
    /// ```
    /// let config = bochner_text::ChrfConfig { word_order: 2, ..Default::default() };
    /// assert_eq!(config.signature(1), "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0");
    /// ```
    pub fn signature(&self, references: usize) -> String {
        let Self {
            char_order,
            word_order,
            ..
        } = self;
        let case = self.case.signature();
        format!(
            "nrefs:{references}|case:{case}|eff:yes|nc:{char_order}|nw:{word_order}|space:no|version:{SACREBLEU}"
        )
    }

    /// The number of orders of n-grams, of characters and of words.
    fn orders(&self) -> usize {
        self.char_order + self.word_order
    }
}

bochner_numerics::checked_when_read!(ChrfConfig);

/// A chrF score with its parts, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChrfScore {
    /// The score, from 0 to 100 up to rounding.
    pub score: f64,
    /// The mean precision of the orders.
    pub precision: f64,
    /// The mean recall of the orders.
    pub recall: f64,
}

/// chrF of a corpus: hypotheses against one or more streams of references, line by line.
///
/// $$\mathrm{chrF}_\beta = (1 + \beta^2) \frac{P R}{\beta^2 P + R}$$
///
/// *where* $P$ and $R$ are the means of precision and recall over the orders of n-grams that both sides have, counted over
/// all lines. White space is left out for n-grams of characters; for those of words, punctuation at the end of a word, or
/// else at its beginning, is a word of its own. Of several references, the one with the best score of its line counts.
///
/// ```
/// use bochner_text::{ChrfConfig, corpus_chrf};
///
/// let hypotheses = ["the dog bit the man .", "everyone was surprised ."];
/// let references = [vec!["The dog bit the man.", "No one was surprised."]];
/// let chrf = corpus_chrf(&hypotheses, &references, &ChrfConfig::default())?;
/// assert!((chrf.score - 87.67).abs() < 0.01, "{}", chrf.score);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] without hypotheses or references, for streams of another length than the
/// hypotheses', or for a setting of zero.
///
/// # Reference
/// M. Popović, *chrF: character n-gram F-score for automatic MT evaluation*, 2015, and *chrF++: words helping character
/// n-grams*, 2017.
pub fn corpus_chrf<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
    config: &ChrfConfig,
) -> Result<ChrfScore, Error> {
    config.validate()?;
    check_streams(hypotheses.len(), references)?;
    let mut sum = vec![Matches::default(); config.orders()];
    for (at, hypothesis) in hypotheses.iter().enumerate() {
        let references = references.iter().map(|stream| stream[at].as_ref());
        let line = best(hypothesis.as_ref(), references, config);
        sum.iter_mut().zip(line).for_each(|(sum, line)| {
            sum.hypothesis += line.hypothesis;
            sum.reference += line.reference;
            sum.both += line.both;
        });
    }
    Ok(score(&sum, config))
}

/// chrF of one sentence, against the best of its references.
///
/// # Errors
/// [`Error::Argument`] without references or for a setting of zero.
pub fn sentence_chrf<R: AsRef<str>>(
    hypothesis: &str,
    references: &[R],
    config: &ChrfConfig,
) -> Result<ChrfScore, Error> {
    config.validate()?;
    argument::not_empty("references", &[references.len()])?;
    let references = references.iter().map(AsRef::as_ref);
    Ok(score(&best(hypothesis, references, config), config))
}

/// The n-grams of one order.
#[derive(Clone, Copy, Debug, Default)]
struct Matches {
    /// The number in the hypothesis; 0 if the reference has none, so that they are no mistakes.
    hypothesis: u64,
    /// The number in the reference.
    reference: u64,
    /// The number in both.
    both: u64,
}

/// The units of a line whose n-grams are counted.
struct Units<'a> {
    characters: Vec<char>,
    words: Vec<&'a str>,
}

impl<'a> Units<'a> {
    fn new(line: &'a str, config: &ChrfConfig) -> Self {
        let characters = line.chars().filter(|&c| !is_space(c)).collect();
        let words = match config.word_order {
            0 => Vec::new(),
            _ => line.split(is_space).flat_map(split_punctuation).collect(),
        };
        Self { characters, words }
    }

    /// The matches of each order with a reference.
    fn matches(&self, reference: &Self, config: &ChrfConfig) -> Vec<Matches> {
        let characters = (1..=config.char_order)
            .map(|order| matches(&self.characters, &reference.characters, order));
        let words =
            (1..=config.word_order).map(|order| matches(&self.words, &reference.words, order));
        characters.chain(words).collect()
    }
}

/// A word without the punctuation at its end, or else at its beginning, and that punctuation. Nothing is left of an empty
/// word.
fn split_punctuation(word: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| c.is_ascii_punctuation();
    let at = match word.chars().count() {
        0 | 1 => 0,
        _ if word.ends_with(is_mark) => word.len() - 1,
        _ if word.starts_with(is_mark) => 1,
        _ => 0,
    };
    let (before, after) = word.split_at(at);
    [before, after].into_iter().filter(|part| !part.is_empty())
}

fn matches<T: Eq + Hash>(hypothesis: &[T], reference: &[T], order: usize) -> Matches {
    let number = |units: &[T]| (units.len() + 1).saturating_sub(order) as u64;
    let allowed = counts(reference, order);
    let counted = counts(hypothesis, order).into_iter();
    let both = counted.map(|(gram, n)| n.min(allowed.get(gram).copied().unwrap_or(0)));
    Matches {
        hypothesis: match number(reference) {
            0 => 0,
            _ => number(hypothesis),
        },
        reference: number(reference),
        both: both.sum(),
    }
}

/// The matches with the reference of the best score, the first one among equals.
fn best<'a>(
    hypothesis: &str,
    references: impl Iterator<Item = &'a str>,
    config: &ChrfConfig,
) -> Vec<Matches> {
    let hypothesis = config.case.apply(hypothesis);
    let hypothesis = Units::new(&hypothesis, config);
    let mut best: Option<(f64, Vec<Matches>)> = None;
    for reference in references {
        let reference = config.case.apply(reference);
        let found = hypothesis.matches(&Units::new(&reference, config), config);
        let reached = score(&found, config).score;
        if best.as_ref().is_none_or(|(best, _)| reached > *best) {
            best = Some((reached, found));
        }
    }
    best.map_or_else(Vec::new, |(_, found)| found)
}

/// The score of summed counts.
fn score(orders: &[Matches], config: &ChrfConfig) -> ChrfScore {
    let counted = orders
        .iter()
        .filter(|order| order.hypothesis > 0 && order.reference > 0);
    let number = counted.clone().count().max(1) as f64;
    let mean = |of: fn(&Matches) -> u64| {
        let shares = counted
            .clone()
            .map(|order| order.both as f64 / of(order) as f64);
        shares.sum::<f64>() / number
    };
    let (precision, recall) = (
        mean(|order| order.hypothesis),
        mean(|order| order.reference),
    );
    let weight = f64::from(config.beta).powi(2);
    let score = match precision + recall > 0.0 {
        true => (1.0 + weight) * precision * recall / (weight * precision + recall),
        false => 0.0,
    };
    ChrfScore {
        score: 100.0 * score,
        precision: 100.0 * precision,
        recall: 100.0 * recall,
    }
}
