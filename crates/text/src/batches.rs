//! Batches of sentences of similar length.

use crate::Error;
use bochner_numerics::{ArgumentError, argument};
use rand::RngCore;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The settings of batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct BatchConfig {
    /// The largest number of tokens in a batch, padding included; 4096 by default.
    pub tokens: usize,
    /// The largest number of sentences in a batch; no bound by default.
    pub sentences: Option<usize>,
    /// The sides of a sentence that the bound on tokens holds for.
    pub counted: Counted,
    /// The width of a bucket; 4 by default. Lengths within a bucket count as equal in the order. Wide buckets mix
    /// sentences better and are padded more.
    pub bucket: usize,
}

/// The sides of a sentence that the bound on tokens holds for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// The bound holds for each side.
    #[default]
    EverySide,
    /// The bound holds for the last side: the target of a translation.
    LastSide,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            tokens: 4096,
            sentences: None,
            counted: Counted::EverySide,
            bucket: 4,
        }
    }
}

impl BatchConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("tokens", self.tokens)?;
        argument::at_least_one("sentences", self.sentences.unwrap_or(1))?;
        argument::at_least_one("bucket", self.bucket)
    }

    /// The tokens of a sentence that count; an empty one is padded to one token.
    fn size<const SIDES: usize>(&self, lengths: &[usize; SIDES]) -> usize {
        let counted = match self.counted {
            Counted::EverySide => lengths.iter().max(),
            Counted::LastSide => lengths.last(),
        };
        counted.map_or(1, |&length| length.max(1))
    }
}

bochner_numerics::checked_when_read!(BatchConfig);

/// Batches of sentences in the order of their lengths, the shortest first: for evaluation.
///
/// `lengths` holds one entry for each sentence, with one length for each side: one for classification, the
/// source and the target for translation. Each batch is a list of places in it, and each place is in
/// exactly one batch. In a batch, the number of sentences times the longest length is at most
/// `config.tokens`.
///
/// ```
/// use bochner_text::{BatchConfig, ordered_batches};
///
/// let config = BatchConfig { tokens: 12, ..Default::default() };
/// let batches = ordered_batches(&[[9], [4], [3], [4]], &config)?;
/// assert_eq!(batches, [vec![2, 1, 3], vec![0]]);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for a setting of zero or no side; [`Error::TooLong`] for a sentence that does not
/// fit into a batch of its own.
pub fn ordered_batches<const SIDES: usize>(
    lengths: &[[usize; SIDES]],
    config: &BatchConfig,
) -> Result<Vec<Vec<usize>>, Error> {
    check(lengths, config)?;
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&at| key(&lengths[at], 1));
    Ok(cut(&order, lengths, config))
}

/// Batches of sentences of similar length in random order: for an epoch of training.
///
/// Sentences are shuffled, put in the order of their buckets, and cut into batches as in
/// [`ordered_batches`]; then the batches are shuffled. Another draw gives other batches.
///
/// ```
/// use bochner_numerics::Seed;
/// use bochner_text::{BatchConfig, shuffled_batches};
///
/// let lengths: Vec<[usize; 2]> = (0..1000).map(|i| [5 + i % 20, 5 + i % 21]).collect();
/// let config = BatchConfig { tokens: 500, ..Default::default() };
/// let epoch = |n| shuffled_batches(&lengths, &config, &mut Seed::new(1).nth(n).stream("batches"));
/// assert_eq!(epoch(0)?, epoch(0)?);
/// assert_ne!(epoch(0)?, epoch(1)?);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// Those of [`ordered_batches`].
pub fn shuffled_batches<const SIDES: usize>(
    lengths: &[[usize; SIDES]],
    config: &BatchConfig,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Vec<Vec<usize>>, Error> {
    check(lengths, config)?;
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.shuffle(rng);
    order.sort_by_key(|&at| key(&lengths[at], config.bucket));
    let mut batches = cut(&order, lengths, config);
    batches.shuffle(rng);
    Ok(batches)
}

fn check<const SIDES: usize>(
    lengths: &[[usize; SIDES]],
    config: &BatchConfig,
) -> Result<(), Error> {
    config.validate()?;
    argument::at_least_one("the sides of lengths", SIDES)?;
    let sizes = lengths.iter().map(|sides| config.size(sides));
    match sizes.enumerate().find(|&(_, size)| size > config.tokens) {
        None => Ok(()),
        Some((sentence, length)) => Err(Error::TooLong {
            sentence,
            length,
            tokens: config.tokens,
        }),
    }
}

/// The buckets of a sentence: that of its last side decides, then those of the sides before.
fn key<const SIDES: usize>(lengths: &[usize; SIDES], bucket: usize) -> [usize; SIDES] {
    let mut key = lengths.map(|length| length.div_ceil(bucket));
    key.reverse();
    key
}

/// Cuts sentences in a given order into batches as large as the bounds allow.
fn cut<const SIDES: usize>(
    order: &[usize],
    lengths: &[[usize; SIDES]],
    config: &BatchConfig,
) -> Vec<Vec<usize>> {
    let most = config.sentences.unwrap_or(usize::MAX);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut longest = 0;
    for &at in order {
        let size = config.size(&lengths[at]);
        let widest = size.max(longest);
        match batches.last_mut() {
            Some(batch) if batch.len() < most && (batch.len() + 1) * widest <= config.tokens => {
                batch.push(at);
                longest = widest;
            }
            _ => {
                batches.push(vec![at]);
                longest = size;
            }
        }
    }
    batches
}

/// Sentences of one length: each row is filled up to the longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded {
    /// The numbers, sentence by sentence, `width` of each.
    pub numbers: Vec<usize>,
    /// The length of the longest sentence, at least 1.
    pub width: usize,
    /// The lengths of the sentences.
    pub lengths: Vec<usize>,
}

/// The sentences at the places of a batch, filled up with `padding`.
///
/// ```
/// let padded = bochner_text::padded(&[vec![7, 8], vec![], vec![9]], &[0, 2], 0)?;
/// assert_eq!((padded.numbers, padded.width, padded.lengths), (vec![7, 8, 9, 0], 2, vec![2, 1]));
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for a place beyond the last sentence.
pub fn padded(sentences: &[Vec<usize>], batch: &[usize], padding: usize) -> Result<Padded, Error> {
    for &at in batch {
        argument::index("batch", at, sentences.len())?;
    }
    let chosen = || batch.iter().map(|&at| &sentences[at]);
    let width = chosen().map(Vec::len).max().unwrap_or(0).max(1);
    let mut numbers = Vec::with_capacity(batch.len() * width);
    for sentence in chosen() {
        numbers.extend_from_slice(sentence);
        numbers.resize(numbers.len() + width - sentence.len(), padding);
    }
    Ok(Padded {
        numbers,
        width,
        lengths: chosen().map(Vec::len).collect(),
    })
}
