//! A translator learns to reverse sequences, translates token by token what it computes whole, goes on from a file with
//! the same bits, and refuses what does not fit.

use bochner_attention::{IkanDirect, Pass, Primal, Softmax, Variant};
use bochner_models::Error;
use bochner_models::decoder::{DecoderConfig, DecoderLayerConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{Pair, Task, Trainer, Translator, TranslatorConfig};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, BeamConfig};
use dfdx::prelude::*;
use rand::Rng;

const LETTERS: usize = 6;
const FIRST: usize = 4;
const START: usize = 2;
const END: usize = 3;
const LONGEST: usize = 10;

fn ikan() -> Variant {
    let points = 8;
    IkanDirect {
        points,
        p: 1.5,
        ..Default::default()
    }
    .into()
}

fn config(of: [Variant; 3], width: usize) -> TranslatorConfig {
    let [attention, itself, memory] = of;
    let (heads, hidden) = (2, 2 * width);
    TranslatorConfig {
        tokens: FIRST + LETTERS,
        start: START,
        end: END,
        longest: LONGEST,
        encoder: EncoderConfig {
            layers: 1,
            layer: EncoderLayerConfig {
                width,
                heads,
                hidden,
                attention,
                dropout: 0.0,
                norm: NormPlacement::Pre,
            },
        },
        decoder: DecoderConfig {
            layers: 2,
            layer: DecoderLayerConfig {
                width,
                heads,
                hidden,
                attention: itself,
                cross_attention: memory,
                dropout: 0.0,
            },
        },
    }
}

fn softmax() -> [Variant; 3] {
    [(); 3].map(|()| Softmax {}.into())
}

fn pairs(count: usize, purpose: &str) -> Vec<Pair> {
    let mut stream = Seed::new(4).stream(purpose);
    let pair = |_| {
        let length = stream.gen_range(1..6);
        let source: Vec<usize> = (0..length)
            .map(|_| FIRST + stream.gen_range(0..LETTERS))
            .collect();
        let target = source.iter().rev().copied().collect();
        Pair { source, target }
    };
    (0..count).map(pair).collect()
}

fn trainer(config: &TranslatorConfig, pairs: Vec<Pair>) -> Result<Trainer, Error> {
    let batches = BatchConfig {
        tokens: 150,
        ..Default::default()
    };
    let task = Task::new(pairs, batches)?.with_label_smoothing(0.1)?;
    let training = TrainingConfig {
        learning_rate: 0.01,
        clip_norm: Some(1.0),
        ..Default::default()
    };
    Trainer::new(config, &training, task, Seed::new(1))
}

fn beam(beam: usize) -> BeamConfig {
    BeamConfig {
        beam,
        max_length: LONGEST,
        ..Default::default()
    }
}

const PASS: Pass = Pass::Evaluation { seed: Seed::new(8) };

#[test]
fn it_learns_to_reverse() {
    let mut trainer = trainer(&config(softmax(), 32), pairs(600, "train")).unwrap();
    for _ in 0..25 {
        trainer.epoch().unwrap();
    }
    let others = pairs(50, "others");
    let sources: Vec<_> = others.iter().map(|pair| pair.source.clone()).collect();
    for width in [1, 4] {
        let translated = trainer.translate(&sources, &beam(width)).unwrap();
        let right = translated.iter().zip(&others);
        let right = right
            .filter(|(translated, pair)| translated.tokens == pair.target)
            .count();
        assert!(right >= 45, "beam {width}: {right} of 50");
    }
}

/// The logarithmic probability of a target, its end included, by the whole pass.
fn log_prob(model: &Translator<f64>, source: &[usize], target: &[usize]) -> f64 {
    let device = Cpu::default();
    let read = [&[START], target].concat();
    let lengths = [&[source.len()][..], &[read.len()]];
    let tensor = |tokens: &[usize]| device.tensor_from_vec(tokens.to_vec(), (1, tokens.len()));
    let logits = model
        .apply(tensor(source), tensor(&read), lengths, PASS)
        .unwrap()
        .output;
    let rows = logits.as_vec();
    let next = target.iter().copied().chain([END]);
    let each = rows.chunks(FIRST + LETTERS).zip(next).map(|(row, token)| {
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        row[token] - total.ln()
    });
    each.sum()
}

#[test]
fn token_by_token_is_the_whole_pass() {
    for of in [softmax(), [(); 3].map(|()| ikan())] {
        let model = Translator::<f64>::try_new(&Cpu::default(), &config(of, 16), Seed::new(3));
        let model = model.unwrap();
        for width in [1, 3] {
            for Pair { source, .. } in pairs(6, "sources") {
                let found = model
                    .translate(std::slice::from_ref(&source), &beam(width), PASS)
                    .unwrap();
                let whole = log_prob(&model, &source, &found[0].tokens);
                let error = (found[0].log_prob - whole).abs();
                assert!(error < 1e-9, "beam {width}, {source:?}: {error:e}");
            }
        }
    }
}

#[test]
fn a_wider_beam_finds_what_is_at_least_as_probable_by_score() {
    let model = Translator::<f64>::try_new(&Cpu::default(), &config(softmax(), 16), Seed::new(3));
    let (model, mut better) = (model.unwrap(), 0);
    for Pair { source, .. } in pairs(20, "sources") {
        let [greedy, wide] = [1, 8].map(|width| {
            let found = model
                .translate(std::slice::from_ref(&source), &beam(width), PASS)
                .unwrap();
            beam(width).score(found[0].log_prob, found[0].tokens.len() + 1)
        });
        assert!(wide >= greedy - 1e-12);
        better += usize::from(wide > greedy + 1e-9);
    }
    assert!(better > 0);
}

#[test]
fn padding_and_neighbours_change_nothing() {
    let model = Translator::<f64>::try_new(&Cpu::default(), &config(softmax(), 16), Seed::new(3));
    let (model, device) = (model.unwrap(), Cpu::default());
    let logits =
        |sources: &[usize], targets: &[usize], [s, t]: [usize; 2], lengths: [&[usize]; 2]| {
            let batch = lengths[0].len();
            let source = device.tensor_from_vec(sources.to_vec(), (batch, s));
            let target = device.tensor_from_vec(targets.to_vec(), (batch, t));
            model
                .apply(source, target, lengths, PASS)
                .unwrap()
                .output
                .as_vec()
        };
    let alone = logits(&[5, 6], &[START, 6], [2, 2], [&[2], &[2]]);
    let padded = [5, 6, 0, 7, 8, 9];
    let together = logits(
        &padded,
        &[START, 6, 9, START, 5, 4],
        [3, 3],
        [&[2, 3], &[2, 3]],
    );
    assert_eq!(alone, together[..alone.len()]);
}

#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    let fresh = || trainer(&config(softmax(), 8), pairs(60, "train")).unwrap();
    let mut whole = fresh();
    whole.epoch().unwrap();
    whole.save(&path).unwrap();
    let expected = whole.epoch().unwrap();
    let mut resumed = fresh();
    resumed.resume(&path).unwrap();
    assert_eq!(resumed.epoch().unwrap(), expected);

    let mut other = trainer(&config(softmax(), 8), pairs(60, "others")).unwrap();
    let error = other.resume(&path).unwrap_err().to_string();
    assert!(error.contains("task is \""), "{error}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |encoder: Variant, itself: Variant, memory: Variant| {
        let config = config([encoder, itself, memory], 8);
        Translator::<f32>::try_new(&Cpu::default(), &config, Seed::new(1))
    };
    let softmax_alone = || Variant::from(Softmax {});
    let primal = || Variant::from(Primal::default());
    assert!(matches!(
        of(softmax_alone(), primal(), softmax_alone()),
        Err(Error::Attention(_))
    ));

    let with = |change: fn(&mut TranslatorConfig), pairs: Vec<Pair>| {
        let mut config = config(softmax(), 8);
        change(&mut config);
        trainer(&config, pairs).map(|_| ())
    };
    let pair = |source: Vec<usize>, target: Vec<usize>| vec![Pair { source, target }];
    assert!(matches!(with(|_| (), vec![]), Err(Error::Argument(_))));
    assert!(matches!(
        with(|c| c.end = 10, pairs(3, "train")),
        Err(Error::Argument(_))
    ));
    let unknown = with(|_| (), pair(vec![4, 10], vec![4]))
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("source of pair 0"), "{unknown}");
    let long = with(|_| (), pair(vec![4], vec![4; LONGEST]));
    assert!(matches!(
        long,
        Err(Error::TooLong {
            got: 11,
            longest: LONGEST
        })
    ));

    let trained = trainer(&config(softmax(), 8), pairs(3, "train")).unwrap();
    let sources = [vec![4, 5]];
    assert!(matches!(
        trained.translate(&sources, &beam(0)),
        Err(Error::Text(_))
    ));
    let far = BeamConfig {
        max_length: LONGEST + 1,
        ..beam(2)
    };
    assert!(matches!(
        trained.translate(&sources, &far),
        Err(Error::TooLong { .. })
    ));
    assert!(matches!(
        trained.translate(&[vec![99]], &beam(2)),
        Err(Error::Argument(_))
    ));
    assert!(trained.translate(&[vec![]], &beam(2)).is_ok());
}
