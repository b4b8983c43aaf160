//! Epochs of the sentence classifier on sentences as long as those of MR.

use crate::Error;
use crate::workload::{Against, Pass, Run, Workload};
use bochner_attention::{IkanDirect, Mikan, Softmax, Variant};
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer, TrainingConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_numerics::Seed;
use bochner_text::BatchConfig;
use rand::Rng;
use serde_json::json;
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
const P: f64 = 1.5;

/// Heads of width 16, as the classifiers of Table 2 have them at these widths.
fn heads(width: usize) -> usize {
    width / 16
}

/// Classifiers of one layer, `(sentences, words, classes, width, heads, hidden, R)`.
pub(crate) fn workloads() -> Vec<Workload> {
    let (points, p) = (POINTS, P);
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
    let kinds: [(_, _, Variant, _); 3] = [
        (
            "text-epoch-softmax",
            "softmax",
            Softmax::default().into(),
            Some(2.5),
        ),
        (
            "text-epoch-ikan-direct",
            "ikan_direct",
            direct.into(),
            Some(2.0),
        ),
        ("text-epoch-mikan", "mikan", mikan.into(), None),
    ];
    let of = |width: usize| {
        let kinds = kinds.clone().into_iter();
        kinds.map(move |(name, peer, attention, target)| {
            // Targets are for the width of the smallest setting.
            let target = target.filter(|_| width == 64);
            workload(name, peer, attention, width, target)
        })
    };
    [64, 128].into_iter().flat_map(of).collect()
}

fn workload(
    name: &'static str,
    peer: &'static str,
    attention: Variant,
    width: usize,
    target: Option<f64>,
) -> Workload {
    let sentences: usize = LENGTHS.iter().sum();
    let shape = [
        sentences,
        WORDS,
        CLASSES,
        width,
        heads(width),
        2 * width,
        POINTS,
    ];
    let tokens: usize = LENGTHS.iter().zip(1..).map(|(n, length)| n * length).sum();
    let points = if peer == "softmax" { 0 } else { POINTS };
    let label = "batches of similar length, eager, fused Adam";
    let cases = [json!({ "impl": peer, "shape": shape, "tokens": tokens })];
    let (operations, bytes) = work(width, points);
    let pass = Pass {
        tokens: Some(tokens),
        against: vec![Against::new(label, "text_epoch", cases, "epoch", target)],
        ..Pass::new("epoch", operations, bytes)
    };
    let start = move || Ok(vec![epochs(width, attention.clone())?]);
    Workload::new(name, shape, vec![pass], start)
}

/// Three times the products of the forward pass, and for attention what the backward pass computes again; the
/// bytes of Adam, which reads and writes parameters and moments in every step.
fn work(width: usize, points: usize) -> (f64, f64) {
    let heads = heads(width);
    let own = width / heads;
    let (factor, features) = match points {
        0 => (own, 0),
        points => (2 * points, 4 * points * width),
    };
    let maps = 4 * width * width + 4 * width * width;
    let of_length = |(&count, time): (&usize, usize)| {
        let pairs = time * heads * (factor + own + 3 * factor + 2 * own);
        count * time * (3 * (maps + features) + pairs)
    };
    let products: usize = LENGTHS.iter().zip(1..).map(of_length).sum();
    let steps = LENGTHS.iter().sum::<usize>().div_ceil(BATCH);
    let parameters = WORDS * width + maps;
    (2.0 * products as f64, 28.0 * (steps * parameters) as f64)
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
    let encoder = EncoderConfig { layers: 1, layer };
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

    /// Width and heads of the classifiers are those of the two sizes of Table 2, and the peers are asked for as many.
    #[test]
    fn classifiers_have_the_heads_of_table_2() {
        let sizes = workloads().into_iter().map(|workload| {
            let asked = &workload.passes[0].against[0].peers[0].case["shape"][4];
            assert_eq!(asked, workload.shape[4], "{}", workload.id());
            [workload.shape[3], workload.shape[4]]
        });
        assert_eq!(
            sizes.collect::<Vec<_>>(),
            [[[64, 4]; 3], [[128, 8]; 3]].concat()
        );
    }
}
