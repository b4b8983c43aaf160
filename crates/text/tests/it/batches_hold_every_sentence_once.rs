//! Batches are a partition of the sentences, and no batch is larger than allowed.

use bochner_numerics::Seed;
use bochner_text::{BatchConfig, Counted, Error, ordered_batches, padded, shuffled_batches};
use proptest::prelude::*;

fn lengths() -> impl Strategy<Value = Vec<[usize; 2]>> {
    prop::collection::vec([0_usize..40, 0_usize..40], 0..200)
}

fn config() -> impl Strategy<Value = BatchConfig> {
    let counted = prop::sample::select(vec![Counted::EverySide, Counted::LastSide]);
    let sentences = prop::option::of(1_usize..10);
    (40_usize..300, sentences, counted, 1_usize..9).prop_map(
        |(tokens, sentences, counted, bucket)| BatchConfig {
            tokens,
            sentences,
            counted,
            bucket,
        },
    )
}

/// The tokens of a batch with its padding.
fn tokens(batch: &[usize], lengths: &[[usize; 2]], counted: Counted) -> usize {
    let sides = |side: usize| {
        batch
            .iter()
            .map(move |&at| lengths[at][side])
            .max()
            .unwrap()
    };
    let longest = match counted {
        Counted::EverySide => sides(0).max(sides(1)),
        Counted::LastSide => sides(1),
    };
    batch.len() * longest
}

proptest! {
    #[test]
    fn each_sentence_is_in_one_batch_and_each_batch_within_bounds(
        lengths in lengths(), config in config(), seed in any::<u64>()
    ) {
        let mut rng = Seed::new(seed).stream("batches");
        let shuffled = shuffled_batches(&lengths, &config, &mut rng).unwrap();
        for batches in [ordered_batches(&lengths, &config).unwrap(), shuffled] {
            let mut all = batches.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
            for batch in batches {
                prop_assert!(!batch.is_empty());
                prop_assert!(batch.len() <= config.sentences.unwrap_or(usize::MAX));
                prop_assert!(tokens(&batch, &lengths, config.counted) <= config.tokens);
            }
        }
    }

    #[test]
    fn a_sentence_keeps_its_numbers_when_it_is_padded(
        sentences in prop::collection::vec(prop::collection::vec(1_usize..9, 0..6), 1..9)
    ) {
        let batch: Vec<usize> = (0..sentences.len()).rev().collect();
        let padded = padded(&sentences, &batch, 0).unwrap();
        prop_assert_eq!(padded.numbers.len(), batch.len() * padded.width);
        for ((row, &at), &length) in padded.numbers.chunks(padded.width).zip(&batch).zip(&padded.lengths) {
            prop_assert_eq!(&row[..length], &sentences[at][..]);
            prop_assert!(row[length..].iter().all(|&number| number == 0));
        }
    }
}

#[test]
fn lengths_in_a_batch_are_similar() {
    let lengths: Vec<[usize; 1]> = (0..2000).map(|i| [1 + (i * 7919) % 50]).collect();
    let config = BatchConfig {
        tokens: 400,
        ..Default::default()
    };
    let batches = shuffled_batches(&lengths, &config, &mut Seed::new(1).stream("batches")).unwrap();
    let longest = |batch: &Vec<usize>| batch.iter().map(|&at| lengths[at][0]).max().unwrap();
    let used: usize = batches
        .iter()
        .map(|batch| batch.len() * longest(batch))
        .sum();
    let tokens: usize = lengths.iter().flatten().sum();
    // In the order in which they come, sentences would fill half of each batch with padding.
    assert!((used as f64) < 1.1 * tokens as f64, "{used} for {tokens}");
    // The batches are not in the order of their lengths.
    assert!(!batches.is_sorted_by_key(longest));
}

#[test]
fn what_does_not_fit_is_named() {
    let config = BatchConfig {
        tokens: 10,
        ..Default::default()
    };
    let too_long = ordered_batches(&[[3], [11]], &config).unwrap_err();
    let expected = Error::TooLong {
        sentence: 1,
        length: 11,
        tokens: 10,
    };
    assert_eq!(too_long, expected);
    assert!(matches!(
        ordered_batches(&[[]], &config),
        Err(Error::Argument(_))
    ));
    assert!(matches!(
        padded(&[vec![1]], &[1], 0),
        Err(Error::Argument(_))
    ));
    assert!(ordered_batches::<1>(&[], &config).unwrap().is_empty());
}
