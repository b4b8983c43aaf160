//! Epochs of the sentence classifier on sentences as long as those of MR.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{IkanDirect, Mikan, Softmax, Variant};
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer, TrainingConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_numerics::Seed;
use bochner_text::BatchConfig;
use rand::Rng;
use std::num::NonZeroUsize;

/// The number of sentences of each length, from one word on: the training part of MR in fold 0.
const LENGTHS: [usize; 56] = [
    5, 45, 72, 107, 153, 135, 178, 218, 223, 240, 238, 252, 298, 294, 333, 318, 356, 338, 343, 349,
    311, 333, 300, 307, 292, 289, 262, 245, 202, 221, 184, 148, 155, 116, 99, 95, 92, 69, 54, 45,
    46, 26, 38, 27, 19, 14, 14, 9, 9, 3, 3, 3, 1, 1, 0, 1,
];
const WORDS: usize = 16_904;
const CLASSES: usize = 2;
const POINTS: usize = 32;
const BATCH: usize = 64;
/// The parts of a batch that ours computes side by side.
const PARTS: NonZeroUsize = NonZeroUsize::new(2).unwrap();
const DROPOUT: f64 = 0.1;

/// Heads of width 16, as the classifiers of Table 2 have them at these widths.
fn heads(width: usize) -> usize {
    width / 16
}

/// Classifiers of one layer, `(sentences, words, classes, width, heads, hidden, R)`.
pub(crate) fn workloads() -> Vec<Workload> {
    let (p, points) = (1.5, POINTS);
    let direct = IkanDirect {
        p,
        points,
        ..Default::default()
    };
    let mikan = Mikan {
        p,
        points,
        ..Default::default()
    };
    let kinds: [(_, Variant); 3] = [
        ("text-epoch-softmax", Softmax::default().into()),
        ("text-epoch-ikan-direct", direct.into()),
        ("text-epoch-mikan", mikan.into()),
    ];
    let of = |width| {
        kinds
            .each_ref()
            .map(|(name, attention)| workload(name, attention, width))
    };
    [64, 128].into_iter().flat_map(of).collect()
}

fn workload(name: &'static str, attention: &Variant, width: usize) -> Workload {
    let sentences: usize = LENGTHS.iter().sum();
    let (heads, hidden) = (heads(width), 2 * width);
    let shape = [sentences, WORDS, CLASSES, width, heads, hidden, POINTS];
    let tokens: usize = LENGTHS.iter().zip(1..).map(|(n, length)| n * length).sum();
    let passes = vec![Pass::new("epoch", bytes(width))];
    let attention = attention.clone();
    let start = move || Ok(vec![epochs(width, attention.clone())?]);
    Workload::new(name, shape, passes, start).with("tokens", tokens)
}

/// The bytes of an epoch of Adam, which reads and writes parameters and moments in every step.
fn bytes(width: usize) -> f64 {
    let steps = LENGTHS.iter().sum::<usize>().div_ceil(BATCH);
    let parameters = WORDS * width + 8 * width * width;
    28.0 * (steps * parameters) as f64
}

fn epochs(width: usize, attention: Variant) -> Result<Run, Error> {
    let mut stream = Seed::new(2).stream("data");
    let mut sentences = Vec::new();
    for (&count, length) in LENGTHS.iter().zip(1..) {
        // Words by Zipf's law, as their logarithms are uniform; 0 and 1 stand for padding and unknown words.
        let mut word = || {
            let rank = (WORDS as f64 - 2.0).powf(stream.gen_range(0.0..1.0));
            (2 + rank as usize - 1).min(WORDS - 1)
        };
        sentences.extend((0..count).map(|_| (0..length).map(|_| word()).collect::<Vec<_>>()));
    }
    let classes = (0..sentences.len()).map(|_| stream.gen_range(0..CLASSES));
    let classes = classes.collect();
    let batches = BatchConfig {
        tokens: BATCH * LENGTHS.len(),
        sentences: Some(BATCH),
        ..Default::default()
    };
    let layer = EncoderLayerConfig {
        width,
        heads: heads(width),
        hidden: 2 * width,
        attention,
        dropout: DROPOUT,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let encoder = EncoderConfig::new(1, layer);
    let config = TextClassifierConfig::transformer(WORDS, CLASSES, LENGTHS.len(), encoder);
    let training = TrainingConfig {
        clip_norm: Some(1.0),
        parts: PARTS,
        ..Default::default()
    };
    let task = Task::new(sentences, classes, batches)?;
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
    Ok(Box::new(move || {
        trainer.epoch()?;
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width and heads of the classifiers are those of the two sizes of Table 2.
    #[test]
    fn classifiers_have_the_heads_of_table_2() {
        let sizes = workloads().into_iter();
        let sizes: Vec<_> = sizes
            .map(|workload| [workload.shape[3], workload.shape[4]])
            .collect();
        assert_eq!(sizes, [[[64, 4]; 3], [[128, 8]; 3]].concat());
    }
}
