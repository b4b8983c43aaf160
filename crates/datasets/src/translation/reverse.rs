//! A task that needs no file: sequences of letters, to be written backwards.

use super::{ParallelText, TranslationData};
use crate::Error;
use crate::draws::Draws;
use bochner_numerics::{ArgumentError, Seed, argument};
use std::collections::HashSet;

/// Sequences of letters that are written backwards: a translation that can be learnt to the last token.
///
/// A letter is a word, `a` the first of them. Lengths and letters are drawn uniformly; a sequence that was drawn before
/// is drawn again, so that no part has one of another.
///
/// ```
/// use bochner_datasets::Reversal;
/// use bochner_numerics::Seed;
///
/// let task = Reversal { letters: 8, lengths: [4, 7], pairs: [500, 50, 50] };
/// let data = task.draw(Seed::new(1))?;
/// assert_eq!(data.test.len(), 50);
/// let backwards: Vec<&str> = data.test.source[0].split_whitespace().rev().collect();
/// assert_eq!(data.test.target[0], backwards.join(" "));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The number of letters, at most 26.
    pub letters: usize,
    /// The smallest and the largest length of a sequence.
    pub lengths: [usize; 2],
    /// The numbers of pairs for training, validation and test; at most half of the sequences of the smallest length for
    /// all parts together.
    pub pairs: [usize; 3],
}

impl Reversal {
    /// Draws the pairs.
    ///
    /// # Errors
    /// [`Error::Argument`] for numbers beyond their bounds.
    pub fn draw(self, seed: Seed) -> Result<TranslationData, Error> {
        self.check()?;
        let mut draws = Draws::new(seed.child("reversal"));
        let [shortest, longest] = self.lengths;
        let mut drawn = HashSet::new();
        let mut part = |pairs: usize| {
            let mut text = ParallelText::default();
            while text.len() < pairs {
                let length = shortest + draws.below(longest - shortest + 1);
                let letters = (0..length).map(|_| draws.below(self.letters) as u8);
                let letters: Vec<u8> = letters.map(|letter| b'a' + letter).collect();
                if drawn.insert(letters.clone()) {
                    text.source.push(words(letters.iter()));
                    text.target.push(words(letters.iter().rev()));
                }
            }
            text
        };
        let [train, validation, test] = self.pairs.map(&mut part);
        Ok(TranslationData {
            train,
            validation,
            test,
            ..TranslationData::default()
        })
    }

    /// The bounds leave at least half of the sequences of every length free in every draw, so that drawing ends.
    fn check(&self) -> Result<(), ArgumentError> {
        let Self {
            letters,
            lengths: [shortest, longest],
            pairs,
        } = *self;
        argument::at_least_one("lengths", shortest)?;
        argument::in_range(
            (1..=26).contains(&letters),
            "letters",
            letters as f64,
            "from 1 to 26",
        )?;
        let allowed = format!("at least the smallest, {shortest}");
        argument::in_range(longest >= shortest, "lengths", longest as f64, allowed)?;
        for pairs in pairs {
            argument::at_least_one("pairs", pairs)?;
        }
        let (all, half) = (
            pairs.iter().sum::<usize>() as f64,
            (letters as f64).powf(shortest as f64) / 2.0,
        );
        argument::in_range(all <= half, "pairs", all, format!("at most {half}"))
    }
}

/// Letters with spaces between them.
fn words<'a>(letters: impl Iterator<Item = &'a u8>) -> String {
    let letters: Vec<String> = letters
        .map(|&letter| char::from(letter).to_string())
        .collect();
    letters.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Reversal = Reversal {
        letters: 5,
        lengths: [4, 6],
        pairs: [200, 40, 40],
    };

    #[test]
    fn every_sequence_is_reversed_and_stands_once() {
        let data = TASK.draw(Seed::new(3)).unwrap();
        let mut seen = HashSet::new();
        for (text, pairs) in [&data.train, &data.validation, &data.test]
            .into_iter()
            .zip(TASK.pairs)
        {
            assert_eq!(text.len(), pairs);
            for (source, target) in text.source.iter().zip(&text.target) {
                assert!(source.chars().rev().eq(target.chars()));
                assert!((7..=11).contains(&source.len()) && seen.insert(source));
            }
        }
        assert_eq!(TASK.draw(Seed::new(3)).unwrap(), data);
        assert_ne!(TASK.draw(Seed::new(4)).unwrap(), data);
    }

    #[test]
    fn numbers_beyond_their_bounds_are_refused() {
        for task in [
            Reversal {
                letters: 27,
                ..TASK
            },
            Reversal {
                lengths: [0, 6],
                ..TASK
            },
            Reversal {
                lengths: [4, 3],
                ..TASK
            },
            Reversal {
                pairs: [200, 0, 40],
                ..TASK
            },
            Reversal {
                pairs: [300, 40, 40],
                ..TASK
            },
        ] {
            assert!(
                matches!(task.draw(Seed::new(1)), Err(Error::Argument(_))),
                "{task:?}"
            );
        }
    }
}
