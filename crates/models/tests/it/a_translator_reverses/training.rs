//! Effects of the settings on a translator's training.

use super::*;
use std::num::NonZeroUsize;

/// Tokens for all pairs of a test in one batch.
const ALL: usize = 100_000;

fn trainer_of(config: &TranslatorConfig, training: &TrainingConfig, tokens: usize) -> Trainer {
    let batches = BatchConfig {
        tokens,
        ..Default::default()
    };
    let task = Task::new(pairs(60, "train"), batches).unwrap();
    Trainer::new(config, training, task, Seed::new(1)).unwrap()
}

fn accumulating(batches: usize) -> TrainingConfig {
    TrainingConfig {
        learning_rate: 0.01,
        clip_norm: Some(1.0),
        accumulate: NonZeroUsize::new(batches).unwrap(),
        ..Default::default()
    }
}

/// A post-LN encoder, since all other tests have the other one.
fn dropping(rate: f64) -> TranslatorConfig {
    let mut config = config(softmax(), 8);
    config.encoder.layer.dropout = rate;
    config.encoder.layer.norm = NormPlacement::Post;
    config.decoder.layer.dropout = rate;
    config
}

/// Every source and target becomes zeros, so that all positions of all pairs get the same logits.
#[test]
fn vectors_of_tokens_are_dropped_from_in_training_alone() {
    let mut config = config(softmax(), 8);
    config.encoder.layer.dropout = 0.999_999;
    config.attention_dropout = Some(0.0);
    let model = Translator::<f64>::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
    let device = Cpu::default();
    let logits = |source: [usize; 2], target: [usize; 3], pass| {
        let source = device.tensor_from_vec(source.to_vec(), (1, 2));
        let target = device.tensor_from_vec(target.to_vec(), (1, 3));
        let logits = model.apply(source, target, [&[2], &[3]], pass);
        logits.unwrap().output.as_vec()
    };
    let training = Pass::Training {
        seed: Seed::new(7),
        dropout: 0.0,
    };
    let of = |pass| {
        [
            logits([5, 6], [START, 6, 4], pass),
            logits([8, 7], [START, 5, 9], pass),
        ]
    };
    let rows = of(training).concat();
    let (first, others) = rows.split_at(FIRST + LETTERS);
    let apart = others
        .chunks(first.len())
        .flat_map(|row| row.iter().zip(first));
    assert!(apart.into_iter().all(|(a, b)| (a - b).abs() < 1e-12));
    let [a, b] = of(PASS);
    assert_ne!(a, b);
}

#[test]
fn weights_are_dropped_from_at_the_rate_of_their_own() {
    let loss = |rate: f64, of_weights: Option<f64>| {
        let config = TranslatorConfig {
            attention_dropout: of_weights,
            ..dropping(rate)
        };
        trainer_of(&config, &accumulating(1), ALL)
            .epoch()
            .unwrap()
            .loss
    };
    let none = loss(0.0, None);
    assert_eq!(loss(0.0, Some(0.0)), none);
    assert_ne!(loss(0.0, Some(0.5)), none);
    // Where no rate is said, it is the encoder's.
    assert_eq!(loss(0.3, None), loss(0.3, Some(0.3)));
    assert_ne!(loss(0.3, Some(0.0)), loss(0.3, Some(0.3)));
}

#[test]
fn label_smoothing_reaches_the_objective() {
    let (config, pairs, smoothing) = (dropping(0.0), pairs(1, "train"), 0.25);
    let batches = BatchConfig::default();
    let task = Task::new(pairs.clone(), batches).unwrap();
    let task = task.with_label_smoothing(smoothing).unwrap();
    let mut trainer = Trainer::new(&config, &accumulating(1), task, Seed::new(1)).unwrap();

    let Pair { source, target } = &pairs[0];
    let read = [&[START], &target[..]].concat();
    let lengths = [&[source.len()][..], &[read.len()]];
    let device = Cpu::default();
    let tensor = |tokens: &[usize]| device.tensor_from_vec(tokens.to_vec(), (1, tokens.len()));
    let logits = trainer
        .model()
        .apply(tensor(source), tensor(&read), lengths, PASS);
    let rows = logits.unwrap().output.as_vec();
    let next = target.iter().copied().chain([END]);
    let each = rows.chunks(FIRST + LETTERS).zip(next).map(|(row, token)| {
        let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        let total = row.iter().map(|x| x.exp()).sum::<f64>().ln();
        let mean = row.iter().map(|x| total - x).sum::<f64>() / row.len() as f64;
        (1.0 - smoothing) * (total - row[token]) + smoothing * mean
    });
    let expected = each.sum::<f64>() / read.len() as f64;
    let plain = trainer.loss(pairs).unwrap();
    let loss = trainer.epoch().unwrap().loss;
    assert!((loss - expected).abs() < 1e-4, "{loss} and {expected}");
    assert!((loss - plain).abs() > 1e-3, "{loss} and {plain}");
}
